// The structured SVM on a working set of outputs: its dual, ascended in steps on one pattern at a time.
//
//   max_beta  - sum_ic Delta_ic beta_ic - 1/2 |w|^2     with w = sum_ic beta_ic Phi_ic                [thesis] (5.3)
//   s.t.      beta_ic <= C_i [c = c_i],   sum_c beta_ic = 0
//   gradient  g_ic = - Delta_ic - <w, Phi_ic>                                                         [thesis] (5.4)
//
// SMOSTEP (algorithm 17) moves two coefficients of a pattern against each other to the maximum between them. A visit of
// a pattern computes its gradients once and takes such steps by the products among its own vectors, until less
// than half of the violation is left. Patterns that violate by less than the accuracy rest until the next look at the
// whole set.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "training/random.hpp"

namespace larank {

// Joint features as sparse rows, beside a dense w.
class FeatureRows {
  public:
    explicit FeatureRows(int64_t length) : scratch_(std::size_t(length)) {}

    int64_t length() const { return int64_t(scratch_.size()); }
    void add(const double* values, const int64_t* columns, int64_t count) {
        values_.insert(values_.end(), values, values + count);
        columns_.insert(columns_.end(), columns, columns + count);
        starts_.push_back(int64_t(values_.size()));
    }
    void work_on(double* w) { w_ = w; }

    void begin(int32_t) {}
    void end() {}
    int64_t cost(int32_t v) const { return starts_[std::size_t(v) + 1] - starts_[std::size_t(v)]; }
    double score(int32_t v) const { return dot(v, w_); }
    void step(int32_t v, double amount) { add_to(w_, v, amount); }
    double product(int32_t a, int32_t b) {
        add_to(scratch_.data(), a, 1.0);
        const double found = dot(b, scratch_.data());
        for (int64_t j = starts_[std::size_t(a)]; j < starts_[std::size_t(a) + 1]; ++j)
            scratch_[std::size_t(columns_[std::size_t(j)])] = 0;
        return found;
    }

  private:
    double dot(int32_t v, const double* with) const {
        double sum = 0;
        for (int64_t j = starts_[std::size_t(v)]; j < starts_[std::size_t(v) + 1]; ++j)
            sum += values_[std::size_t(j)] * with[columns_[std::size_t(j)]];
        return sum;
    }
    void add_to(double* to, int32_t v, double amount) const {
        for (int64_t j = starts_[std::size_t(v)]; j < starts_[std::size_t(v) + 1]; ++j)
            to[columns_[std::size_t(j)]] += amount * values_[std::size_t(j)];
    }

    std::vector<double> values_;
    std::vector<int64_t> columns_, starts_{0};
    std::vector<double> scratch_;
    double* w_ = nullptr;
};

// Kernel values among vectors that have slots, beside the scores of all slots.
class GramRows {
  public:
    void add(int64_t slot) {
        slots_.push_back(slot);
        end_ = std::max(end_, slot + 1);
    }
    int64_t end_of_slots() const { return end_; }  // one more than the largest
    void work_on(const double* K, double* scores, int64_t slots) { K_ = K, scores_ = scores, size_ = slots; }

    void begin(int32_t) {}
    void end() {}
    int64_t cost(int32_t) const { return 1; }
    double score(int32_t v) const { return scores_[slots_[std::size_t(v)]]; }
    void step(int32_t v, double amount) {
        const double* row = K_ + slots_[std::size_t(v)] * size_;
        for (int64_t n = 0; n < size_; ++n) scores_[n] += amount * row[n];
    }
    double product(int32_t a, int32_t b) const { return K_[slots_[std::size_t(a)] * size_ + slots_[std::size_t(b)]]; }

  private:
    std::vector<int64_t> slots_;
    int64_t end_ = 0;
    const double* K_ = nullptr;
    double* scores_ = nullptr;
    int64_t size_ = 0;
};

// What a look at a pattern finds: g of its own output, the largest g that may grow, the smallest g and whose it is.
struct PatternLook {
    double truth, best, worst;
    int32_t worst_vector;
};

// `Rows` has the vectors: their scores <w, Phi>, steps that add to w, products of two vectors of one pattern, and what
// a score or a step costs. Before the scores of a pattern are asked for, `begin` is told its first vector.
template <class Rows>
class StructuredWorkingSet {
  public:
    template <class... Arguments>
    explicit StructuredWorkingSet(uint64_t seed, Arguments&&... arguments)
        : rows_(std::forward<Arguments>(arguments)...), random_(seed) {}

    Rows& rows() { return rows_; }
    Random& random() { return random_; }
    int64_t patterns() const { return int64_t(patterns_.size()); }
    int64_t vectors() const { return int64_t(beta_.size()); }
    int64_t looks() const { return looks_; }
    int64_t steps() const { return steps_; }
    double gap() const { return gap_; }
    double linear() const { return linear_; }  // - sum Delta beta, at the last look
    const std::vector<double>& beta() const { return beta_; }
    const std::vector<PatternLook>& seen() const { return seen_; }

    void add_pattern(double cost) {
        patterns_.push_back({cost, {}, {}, 0});
        active_.clear();
    }

    // The row of the vector has just been added. The first vector of a pattern is that of its own output.
    void add_vector(int64_t pattern, double loss, double beta) {
        patterns_[std::size_t(pattern)].vectors.push_back(int32_t(beta_.size()));
        loss_.push_back(loss);
        beta_.push_back(beta);
        active_.clear();
    }

    // Looks at all patterns with w as it is.
    void look(double accuracy) {
        ++looks_;
        seen_.resize(patterns_.size());
        active_.clear();
        double norm = 0, losses = 0, linear = 0;
        for (std::size_t p = 0; p < patterns_.size(); ++p) {
            const Pattern& pattern = patterns_[p];
            gradients(pattern);
            seen_[p] = seen_of(pattern);
            losses += pattern.cost * (seen_[p].truth - seen_[p].worst);
            for (std::size_t n = 0; n < g_.size(); ++n) {
                const std::size_t v = std::size_t(pattern.vectors[n]);
                linear -= loss_[v] * beta_[v];
                norm -= beta_[v] * (g_[n] + loss_[v]);
            }
            if (seen_[p].best - seen_[p].worst > accuracy) active_.push_back(int32_t(p));
        }
        linear_ = linear;
        gap_ = norm + losses - linear;
    }

    // Works for a while; true once the gap on the set is `small`, or nothing violates by more than `accuracy`, or
    // rounding leaves nothing to gain.
    bool advance(double accuracy, double small, int64_t work) {
        for (work_ = 0; work_ < work;) {
            look(accuracy);
            if (gap_ <= small || active_.empty()) return true;
            double gained = 0;
            for (int sweep = 0; sweep < sweeps_between_looks && !active_.empty(); ++sweep)
                gained += sweep_once(accuracy);
            if (gained <= rounding * linear_) {
                look(accuracy);
                return true;
            }
        }
        return false;
    }

    // Looks at one pattern with w as it is.
    PatternLook look_at(int64_t pattern) {
        gradients(patterns_[std::size_t(pattern)]);
        return seen_of(patterns_[std::size_t(pattern)]);
    }

    // Takes steps on one pattern, if it violates by more than this; what they add to the dual.
    double step_on(int64_t pattern, double accuracy) { return visit(patterns_[std::size_t(pattern)], accuracy); }

    // The vectors of a pattern.
    const std::vector<int32_t>& vectors_of(int64_t pattern) const { return patterns_[std::size_t(pattern)].vectors; }

    // Adds w of the coefficients to zeros.
    void sum_up() {
        for (std::size_t v = 0; v < beta_.size(); ++v)
            if (beta_[v] != 0) rows_.step(int32_t(v), beta_[v]);
    }

  private:
    struct Pattern {
        double cost;
        std::vector<int32_t> vectors;
        std::vector<double> products;  // among the first `known` of them
        std::size_t known;
    };

    static constexpr int sweeps_between_looks = 10;
    static constexpr double kappa = 1e-12;  // [thesis] section 5.1.5, relative to the cost
    static constexpr double tie = 1e-10;    // gradients are equal after a step, but for rounding, which must not decide
    static constexpr double rounding = 1e-15;  // a gain this small against the dual is none
    static constexpr double share_left = 0.4;  // of a pattern's violation, when a visit ends

    void gradients(const Pattern& pattern) {
        g_.resize(pattern.vectors.size());
        rows_.begin(pattern.vectors[0]);
        for (std::size_t n = 0; n < g_.size(); ++n) {
            const int32_t v = pattern.vectors[n];
            g_[n] = -loss_[std::size_t(v)] - rows_.score(v);
            work_ += rows_.cost(v);
        }
    }

    bool may_grow(const Pattern& pattern, std::size_t n) const {
        const double beta = beta_[std::size_t(pattern.vectors[n])];
        return n == 0 ? beta < pattern.cost * (1 - kappa) : beta < 0;
    }

    struct Direction {
        std::size_t up = 0, down = 0;
        double best = -std::numeric_limits<double>::infinity(), worst = std::numeric_limits<double>::infinity();
    };
    Direction direction(const Pattern& pattern) const {
        Direction found;
        for (std::size_t n = 0; n < g_.size(); ++n) {
            const double tied = tie * std::abs(g_[n]);
            if (g_[n] - found.best > tied && may_grow(pattern, n)) found.best = g_[n], found.up = n;
            if (found.worst - g_[n] > tied) found.worst = g_[n], found.down = n;
        }
        return found;
    }
    PatternLook seen_of(const Pattern& pattern) const {
        const Direction found = direction(pattern);
        return {g_[0], found.best, found.worst, pattern.vectors[found.down]};
    }

    double sweep_once(double accuracy) {
        double gained = 0;
        random_.shuffle(active_);
        std::size_t kept = 0;
        for (std::size_t n = 0; n < active_.size(); ++n) {
            const double gain = visit(patterns_[std::size_t(active_[n])], accuracy);
            gained += gain;
            if (gain > 0) active_[kept++] = active_[n];
        }
        active_.resize(kept);
        return gained;
    }

    // Steps on the vectors of a pattern; what they add to the dual.
    double visit(Pattern& pattern, double accuracy) {
        gradients(pattern);
        Direction now = direction(pattern);
        if (!(now.best - now.worst > accuracy)) return 0;
        complete_products(pattern);
        const std::size_t size = g_.size();
        change_.assign(size, 0.0);
        const double enough = share_left * (now.best - now.worst);
        double gained = 0;
        for (std::size_t most = 4 * size; most > 0 && now.best - now.worst > enough; --most) {
            gained += smo_step(pattern, now);
            now = direction(pattern);
        }
        for (std::size_t n = 0; n < size; ++n)
            if (change_[n] != 0) rows_.step(pattern.vectors[n], change_[n]), work_ += rows_.cost(pattern.vectors[n]);
        rows_.end();
        return gained;
    }

    double smo_step(const Pattern& pattern, const Direction& now) {  // [thesis] algorithm 17
        const std::size_t size = g_.size();
        const double* up = pattern.products.data() + now.up * size;
        const double* down = pattern.products.data() + now.down * size;
        double& raised = beta_[std::size_t(pattern.vectors[now.up])];
        double& lowered = beta_[std::size_t(pattern.vectors[now.down])];
        const double violation = now.best - now.worst;
        const double room = now.up == 0 ? pattern.cost - raised : -raised;
        const double squared = up[now.up] - 2 * up[now.down] + down[now.down];
        const double step = squared * room > violation ? violation / squared : room;  // (5.6), (5.7)
        ++steps_;
        raised = step == room ? (now.up == 0 ? pattern.cost : 0.0) : raised + step;
        lowered = lowered - step;
        if (now.up != 0 && now.down == 0) settle_truth(pattern);
        change_[now.up] += step, change_[now.down] -= step;
        for (std::size_t n = 0; n < size; ++n) g_[n] -= step * (up[n] - down[n]);
        return step * (violation - step * squared / 2);
    }

    // The coefficient of the truth is the sum of the others, so that all vanish together in spite of rounding.
    void settle_truth(const Pattern& pattern) {
        double others = 0;
        for (std::size_t n = 1; n < pattern.vectors.size(); ++n) others += beta_[std::size_t(pattern.vectors[n])];
        beta_[std::size_t(pattern.vectors[0])] = -others;
    }

    // Those among the vectors that were there before are kept.
    void complete_products(Pattern& pattern) {
        const std::size_t size = pattern.vectors.size(), before = pattern.known;
        if (before == size) return;
        std::vector<double> products(size * size);
        for (std::size_t a = 0; a < size; ++a)
            for (std::size_t b = 0; b <= a; ++b)
                products[a * size + b] = products[b * size + a] =
                    a < before ? pattern.products[a * before + b]
                               : rows_.product(pattern.vectors[a], pattern.vectors[b]);
        pattern.products.swap(products);
        pattern.known = size;
    }

    Rows rows_;
    Random random_;
    std::vector<Pattern> patterns_;
    std::vector<double> loss_, beta_;
    std::vector<PatternLook> seen_;
    std::vector<int32_t> active_;
    std::vector<double> g_, change_;
    double gap_ = std::numeric_limits<double>::infinity(), linear_ = 0;
    int64_t looks_ = 0, steps_ = 0, work_ = 0;
};

}  // namespace larank
