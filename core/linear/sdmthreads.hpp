// Visits to the rows of a linear multiclass SVM by several threads, in short rounds over one loop.
//
// Every visitor has a part of the loop, and a round is a few hundred rows of each part. Visitor p starts from W with a
// copy V_p of its own, and its visits add D_p to it. D, the sum of all D_p, is the common direction. Along it the dual
// is a concave quadratic of the step s with its maximum at
//   s = (change of the linear part - <W, D>) / |D|^2.
// W becomes W + s D and the coefficients keep the share s of their change, which is feasible for s <= 1. This is one
// round of CoCoA+ with sigma = 1 [cocoa+]. The mean of all D_p, s = 1 / visitors, does not lower the dual: no step is
// shorter. A step above `nearly_all` is taken as 1: it has at least 0.93 of the round's gain, and no coefficient has to
// be touched again. What is computed depends on the number of visitors, not on who they are or how long they take.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "linear/sdmrows.hpp"
#include "training/team.hpp"

namespace larank {

template <class T>
class SdmThreads : public SdmRows<T> {
    using Rows = SdmRows<T>;

  public:
    SdmThreads(const Matrix<T>& X, const int32_t* labels, const double* costs, const double* rest_costs,
               const SdmOptions& options)
        : Rows(X, labels, costs, rest_costs, options) {
        if (!weights_are_few()) return;  // to bring W together would take longer than the visits
        parts_ = std::clamp<int64_t>(options.threads, 1, std::max<int64_t>(1, int64_t(everyone_.size())));
        if (parts_ == 1) return;
        before_round_ = merged_ = AlignedArray<T>(main_.W.size());
        for (int64_t p = 1; p < parts_; ++p) others_.emplace_back(X, lanes_, p);
        for (int64_t p = 0; p < parts_; ++p) journals_.emplace_back(X.rows);
        shares_.resize(std::size_t(parts_));
        const int64_t visit = (Rows::stored_ / int64_t(everyone_.size()) + 8) * lanes_;
        visits_of_round_ = std::max(least_visits, work_per_weight * main_.W.size() / visit);
    }

  protected:
    int64_t parts() const { return parts_; }
    bool weights_are_few() const { return main_.W.size() <= Rows::stored_ / 8; }

    // Goes on with the loop until about `work` multiply-adds are done or it ends. What is left of the work.
    int64_t visit_rows(Team& team, int64_t work) {
        return parts_ == 1 ? visit_alone(work) : visit_in_rounds(team, work);
    }

    // The terms of both objectives that depend on rows, at W, added to `sums`.
    Objectives add_terms(const AlignedArray<T>& W, Objectives sums) {
        if (parts_ == 1) return Rows::terms(W.data(), 0, everyone_.size(), sums);
        std::vector<Objectives> of(shares_.size());
        Team(parts_).each([&](int64_t p) {
            const auto [first, last] = part(p, int64_t(everyone_.size()));
            of[std::size_t(p)] = Rows::terms(W.data(), std::size_t(first), std::size_t(last), {});
        });
        for (const Objectives& terms : of) {
            sums.primal += terms.primal, sums.dual += terms.dual;
            sums.violation = std::max(sums.violation, terms.violation);
        }
        return sums;
    }

    // W from the coefficients, in double precision, its rows `stride` apart; it is zero before.
    void sum_up(AlignedArray<double>& W, int64_t stride) const {
        if (parts_ == 1) return Rows::sum_into(W.data(), stride, 0, Rows::X_.rows);
        std::vector<AlignedArray<double>> of(shares_.size(), AlignedArray<double>(W.size()));
        Team(parts_).each([&](int64_t p) {
            const auto [first, last] = part(p, Rows::X_.rows);
            Rows::sum_into(of[std::size_t(p)].data(), stride, first, last);
        });
        for (const AlignedArray<double>& sums : of)
            for (int64_t j = 0; j < sums.size(); ++j) W.data()[j] += sums.data()[j];
    }

    using Rows::lanes_, Rows::everyone_, Rows::main_, Rows::order_, Rows::shrunk_;

  private:
    using typename Rows::Visitor;
    using Entry = typename Coefficients<T>::Entry;

    // What belongs to a part: its rows, and in a round what it adds up on them and on its slice of W.
    struct alignas(cache_lines) Share {
        std::size_t end = 0;  // of its rows, in the order of the loop
        int64_t work = 0;
        double gain = 0;     // change of the linear part of the dual
        double slope = 0;    // <W, D>
        double squared = 0;  // |D|^2
    };

    Visitor& visitor(int64_t p) { return p == 0 ? main_ : others_[std::size_t(p - 1)]; }

    // Where part p of so many things begins and ends.
    std::pair<int64_t, int64_t> part(int64_t p, int64_t count) const {
        return {count * p / parts_, count * (p + 1) / parts_};
    }

    int64_t visit_alone(int64_t work) {
        main_.position = order_.position();
        work = Rows::visit_until(main_, order_.size(), work);
        order_.go_on_from(main_.position);
        return work;
    }

    // Parts are neighbours in the order: rows that share a page, and what lies beside them, stay with one thread.
    int64_t visit_in_rounds(Team& team, int64_t work) {
        const int64_t first = int64_t(order_.position()), rows = int64_t(order_.size()) - first;
        for (int64_t p = 0; p < parts_; ++p) {
            const auto [from, to] = part(p, rows);
            visitor(p).position = std::size_t(first + from);
            shares_[std::size_t(p)].end = std::size_t(first + to);
        }
        before_round_ = main_.W;
        const int64_t longest = part(parts_ - 1, rows).second - part(parts_ - 1, rows).first;
        const int64_t visits = std::clamp<int64_t>(longest / rounds_of_loop, 1, visits_of_round_);
        for (int64_t visited = 0; visited < longest && work > 0; visited += visits) {
            round(team, visits);
            for (const Share& share : shares_) work -= share.work;
        }
        main_.W = before_round_;
        order_.go_on_from(order_.size());
        for (int64_t p = parts_ - 1; p >= 0; --p) order_.take_back(visitor(p).position, shares_[std::size_t(p)].end);
        for (Visitor& other : others_) gather(other);
        return work;
    }

    void round(Team& team, int64_t visits) {
        team.each([&](int64_t p) { visit_some(p, visits); });
        team.each([&](int64_t p) { add_up(p); });
        if (const double step = best_step(); step < nearly_all) team.each([&](int64_t p) { go_back(p, T(step)); });
        std::swap(before_round_, merged_);
    }

    void visit_some(int64_t p, int64_t visits) {
        constexpr int64_t all = std::numeric_limits<int64_t>::max();
        Visitor& at = visitor(p);
        Share& share = shares_[std::size_t(p)];
        CoefficientJournal<T>& journal = journals_[std::size_t(p)];
        journal.clear();
        at.W = before_round_;
        at.journal = &journal;
        share.work = all - Rows::visit_until(at, std::min(at.position + std::size_t(visits), share.end), all);
        at.journal = nullptr;
        share.gain = 0;
        journal.each([&](int64_t i, const Entry* before, int64_t count) {
            share.gain += Rows::gain(i) - Rows::gain(i, before, before + count);
        });
    }

    // Slice p of W + D, with its part of the sums over D.
    void add_up(int64_t p) {
        constexpr int64_t width = lane_count<T>;
        const auto [first, last] = part(p, main_.W.size() / width);
        double slopes[std::size_t(width)] = {}, squares[std::size_t(width)] = {};
        for (int64_t j = first * width; j < last * width; j += width) {
            const T *const W = before_round_.data() + j, *const V = main_.W.data() + j;
            T D[std::size_t(width)];
            for (int64_t c = 0; c < width; ++c) D[c] = V[c] - W[c];
            for (const Visitor& other : others_)
                for (int64_t c = 0; c < width; ++c) D[c] += other.W.data()[j + c] - W[c];
            for (int64_t c = 0; c < width; ++c) {
                merged_.data()[j + c] = W[c] + D[c];
                slopes[c] += double(W[c]) * double(D[c]);
                squares[c] += double(D[c]) * double(D[c]);
            }
        }
        Share& share = shares_[std::size_t(p)];
        share.slope = std::accumulate(slopes, slopes + width, 0.0);
        share.squared = std::accumulate(squares, squares + width, 0.0);
    }

    double best_step() const {
        double gain = 0, slope = 0, squared = 0;
        for (const Share& share : shares_) gain += share.gain, slope += share.slope, squared += share.squared;
        if (squared == 0) return 1;
        const double step = (gain - slope) / squared, least = 1 / double(parts_);
        return step > least ? step : least;  // also where rounding has made it no number
    }

    // Slice p of W and the coefficients of its visitor, to the share `step` of the way.
    void go_back(int64_t p, T step) {
        const auto [first, last] = part(p, main_.W.size());
        const T* const W = before_round_.data();
        for (int64_t j = first; j < last; ++j) merged_.data()[j] = W[j] + step * (merged_.data()[j] - W[j]);
        Visitor& at = visitor(p);
        journals_[std::size_t(p)].each([&](int64_t i, const Entry* before, int64_t count) {
            if (!shrunk_) at.seen.gain -= Rows::gain(i);
            Rows::go_to(at, i, before, count, step);
            if (shrunk_) return;
            at.seen.gain += Rows::gain(i);
            if (Rows::options_.shrinking && Rows::is_free(i)) at.next.insert(i);  // which a bound may have kept out
        });
    }

    void gather(Visitor& other) {
        main_.next.take_over(other.next);
        main_.seen.violation = std::max(main_.seen.violation, other.seen.violation);
        main_.seen.violations += other.seen.violations;
        main_.seen.loss += other.seen.loss;
        main_.seen.gain += other.seen.gain;
        other.seen = {};
        main_.counters.visits += other.counters.visits;
        main_.counters.steps += other.counters.steps;
        other.counters = {};
    }

    static constexpr double nearly_all = 0.8;
    // Of a part, in a round: enough for what a round costs to be little, and no more than a quarter of the loop.
    static constexpr int64_t least_visits = 256, work_per_weight = 40, rounds_of_loop = 4;

    int64_t parts_ = 1, visits_of_round_ = 1;
    std::deque<Visitor> others_;
    std::deque<CoefficientJournal<T>> journals_;
    std::vector<Share> shares_;
    AlignedArray<T> before_round_{0}, merged_{0};  // W as the round began, and as it ends
};

}  // namespace larank
