// The mean pairwise loss of one example and what to do about it [thesis] section 6.1.
//
//   L(s) = sum_{y in y_i} v_y / q  sum_{z not in y_i} [1 - s_y + s_z]_+        (6.5), with v_y = 1 / |y_i| there
//
// s are the scores of the classes, q the number of wrong classes z, v weights that add up to one. In the dual, pair
// (y, z) has a coefficient 0 <= a_yz <= c v_y / q, with c the cost of the example, and the coefficients of the classes
// are beta_y = sum_z a_yz and beta_z = -sum_y a_yz. All that is needed are the sums: no pair is ever visited.
//
//   ascend   line 2 of algorithm 23: the loss, and Psi(c) of (6.7) as coefficients psi of the classes. With both kinds
//            of classes sorted by score, the pairs a class violates are a run of the other kind: O(k log k).
//   solve    the best coefficients of the example while those of all others stay. With z the scores without it and
//            kappa = k(x, x), the new scores r = z + kappa beta (candidates less the margin of one) minimise
//              |r - z|^2 / (2 kappa) + sum_yz (c v_y / q) [r_z - r_y]_+,
//            the proximal step of a cut function. Its level sets are found by splitting: the set of classes above the
//            mean of a group is a cheapest cut; pairs across it are at their bound, and both sides go on alone. Every
//            cut takes O(k log k).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ambiguous/candidates.hpp"

namespace larank {

struct Ascent {
    double loss = 0;          // L(s)
    double delta = 0;         // Delta(c), which is also the sum of psi over the candidates
    double squared_norm = 0;  // of psi; |Psi|^2 is k(x, x) times it
};

class PairwiseLoss {
  public:
    // `psi` has an entry for every class of the set and is overwritten.
    Ascent ascend(const CandidateSet& set, const double* scores, double* psi) {
        sort_by_score(set, scores);
        const auto right = right_.size(), wrong = wrong_.size();
        std::fill(psi, psi + set.classes, 0.0);
        Ascent at;
        if (wrong == 0) return at;
        const double share = 1 / double(wrong);
        double wrong_scores = 0;
        for (const Entry& z : wrong_) wrong_scores += z.score;
        // Candidates from the lowest score up: ever fewer wrong classes, those from `first` on, come near.
        std::size_t first = 0;
        for (const Entry& y : right_) {
            while (first < wrong && !is_violated(y.score, wrong_[first].score)) wrong_scores -= wrong_[first++].score;
            const double count = double(wrong - first), weight = y.weight * share;
            if (first == wrong) break;
            psi[y.label] = weight * count;
            at.delta += weight * count;
            at.loss += weight * (count * (1 - y.score) + wrong_scores);
        }
        // Wrong classes from the lowest score up: ever more candidates, those before `end`, are near.
        std::size_t end = 0;
        double weight = 0;
        for (const Entry& z : wrong_) {
            while (end < right && is_violated(right_[end].score, z.score)) weight += right_[end++].weight;
            psi[z.label] = -weight * share;
        }
        for (int64_t c = 0; c < set.classes; ++c) at.squared_norm += psi[c] * psi[c];
        at.loss = std::max(0.0, at.loss);
        return at;
    }

    // `scores` are those without the example's own coefficients, and `kappa` > 0.
    void solve(const CandidateSet& set, const double* scores, double kappa, double cost, double* beta) {
        sort_by_score(set, scores);
        std::fill(beta, beta + set.classes, 0.0);
        if (wrong_.empty()) return;
        std::reverse(wrong_.begin(), wrong_.end());
        for (Entry& y : right_) y.score -= 1, y.weight *= cost / double(wrong_.size());
        groups_.assign(1, {0, right_.size(), 0, wrong_.size()});
        while (!groups_.empty()) {
            const Group group = groups_.back();
            groups_.pop_back();
            split_or_join(group, kappa);
        }
        // Each is a sum of coefficients of one sign.
        for (const Entry& y : right_) beta[y.label] = std::max(0.0, y.coefficient);
        for (const Entry& z : wrong_) beta[z.label] = std::min(0.0, z.coefficient);
    }

  private:
    struct Entry {
        double score;
        double weight;  // of a candidate: v_y, or the bound c v_y / q of its pairs
        double coefficient;
        int32_t label;
        double joins_at = 0;
    };
    // Candidates and wrong classes whose pairs with all others are settled.
    struct Group {
        std::size_t right, right_end, wrong, wrong_end;
    };

    // Monotone in both scores as it is rounded, so that both kinds of classes see the same pairs.
    static bool is_violated(double right, double wrong) { return 1 - right + wrong > 0; }

    void sort_by_score(const CandidateSet& set, const double* scores) {
        right_.clear(), wrong_.clear();
        int64_t n = 0;
        for (int32_t c = 0; c < int32_t(set.classes); ++c) {
            if (n < set.size && set.labels[n] == c)
                right_.push_back({scores[c], set.weights[n++], 0, c});
            else
                wrong_.push_back({scores[c], 0, 0, c});
        }
        const auto by_score = [](const Entry& a, const Entry& b) {
            return a.score < b.score || (a.score == b.score && a.label < b.label);
        };
        std::sort(right_.begin(), right_.end(), by_score);
        std::sort(wrong_.begin(), wrong_.end(), by_score);
    }

    // Wrong classes of a group descend by score.
    void split_or_join(const Group& g, double kappa) {
        if (g.right == g.right_end || g.wrong == g.wrong_end) return;
        double lowest = right_[g.right].score;
        for (std::size_t n = g.right; n < g.right_end; ++n) lowest = std::min(lowest, right_[n].score);
        if (wrong_[g.wrong].score <= lowest) return;
        const std::size_t size = g.right_end - g.right + g.wrong_end - g.wrong;
        double sum = 0;
        for (std::size_t n = g.right; n < g.right_end; ++n) sum += right_[n].score;
        for (std::size_t n = g.wrong; n < g.wrong_end; ++n) sum += wrong_[n].score;
        const double level = sum / double(size);
        const Cut cut = cheapest_cut(g, level, kappa);
        if (cut.is_none)
            join(g, level, kappa);
        else
            split(g, cut, kappa);
    }

    // The classes above: the first so many candidates, as they were sorted to find it, and wrong classes of the group.
    struct Cut {
        std::size_t right, wrong;
        bool is_none;
    };

    // Of all sets A of classes, with m wrong ones in it, the one with the least
    //   sum_{y not in A} m u_y - sum_{c in A} (s_c - level) / kappa,
    // here times kappa. The wrong ones in it are the m highest, and a candidate is in it if m exceeds `joins_at`.
    Cut cheapest_cut(const Group& g, double level, double kappa) {
        double bounds = 0, scale = 0;
        for (std::size_t n = g.right; n < g.right_end; ++n) {
            Entry& y = right_[n];
            y.joins_at = (level - y.score) / (kappa * y.weight);
            bounds += y.weight;
            scale += std::abs(y.score - level);
        }
        std::sort(right_.begin() + std::ptrdiff_t(g.right), right_.begin() + std::ptrdiff_t(g.right_end),
                  [](const Entry& a, const Entry& b) {
                      return a.joins_at < b.joins_at || (a.joins_at == b.joins_at && a.label < b.label);
                  });
        const std::size_t all_right = g.right_end - g.right, all_wrong = g.wrong_end - g.wrong;
        Cut best{0, 0, true};
        double gain = 0, most = 0;
        for (std::size_t m = 0, joined = 0; m <= all_wrong; ++m) {
            if (m > 0) {
                gain += wrong_[g.wrong + m - 1].score - level;
                scale += std::abs(wrong_[g.wrong + m - 1].score - level);
            }
            for (; joined < all_right && right_[g.right + joined].joins_at < double(m); ++joined) {
                bounds -= right_[g.right + joined].weight;
                gain += right_[g.right + joined].score - level;
            }
            // All and none are no cut, whatever rounding says.
            if (m + joined == 0 || m + joined == all_wrong + all_right) continue;
            const double gained = gain - kappa * double(m) * bounds;
            if (gained > most) most = gained, best = {joined, m, false};
        }
        best.is_none = !(most > rounding * scale);
        return best;
    }

    // All of the group have the same score in the end.
    void join(const Group& g, double level, double kappa) {
        for (std::size_t n = g.right; n < g.right_end; ++n) right_[n].coefficient += (level - right_[n].score) / kappa;
        for (std::size_t n = g.wrong; n < g.wrong_end; ++n) wrong_[n].coefficient += (level - wrong_[n].score) / kappa;
    }

    // Pairs of a wrong class above and a candidate below are at their bound.
    void split(const Group& g, const Cut& cut, double kappa) {
        const std::size_t right = g.right + cut.right, wrong = g.wrong + cut.wrong;
        double bounds = 0;
        for (std::size_t n = right; n < g.right_end; ++n) {
            const double of_all = right_[n].weight * double(cut.wrong);
            bounds += right_[n].weight;
            right_[n].coefficient += of_all;
            right_[n].score += kappa * of_all;
        }
        for (std::size_t n = g.wrong; n < wrong; ++n) {
            wrong_[n].coefficient -= bounds;
            wrong_[n].score -= kappa * bounds;
        }
        groups_.push_back({g.right, right, g.wrong, wrong});
        groups_.push_back({right, g.right_end, wrong, g.wrong_end});
    }

    static constexpr double rounding = 1e-14;

    std::vector<Entry> right_, wrong_;
    std::vector<Group> groups_;
};

}  // namespace larank
