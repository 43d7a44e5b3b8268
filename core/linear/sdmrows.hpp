// The rows of a linear multiclass SVM in its dual: their coefficients, W, and visits to one row at a time [sdm].
//
// Primal   min_W  1/2 |W|^2 + sum_i C_i loss(x_i' W, y_i)                               [sdm] (1), (14)
// Dual     max_a  sum_i gain(a_i, y_i) - 1/2 |W(a)|^2,   w_m = sum_i a_i^m x_i           [sdm] (4), (16), negated
//   Crammer-Singer   loss = max_m (e^m + s_m) - s_y       gain = a^y,  a^m <= C_i^m, sum_m a^m = 0
//   Weston-Watkins   loss = sum_{m != y} [1 + s_m - s_y]+ gain = a^y,  -C_i <= a^m <= 0 for m != y, sum_m a^m = 0
//   One-versus-rest  loss = sum_m [1 -+ s_m]+             gain = sum |a^m|, 0 <= +-a^m <= C_i^m
// Costs of one-versus-rest are per class: C_i in the problem of the example's own class, another in all others.
// A visit to example i solves its QP exactly (linear/rowqp.hpp) and updates W. Who decides what is visited when, and
// how much costs are lowered at first, is linear/sdm.hpp, or linear/sdmpart.hpp where the rows are some of several
// parts'. There the quadratic term counts `sigma_` times: A_i is sigma |x_i|^2, and W moves sigma times as far.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "data/matrix.hpp"
#include "linear/coefficients.hpp"
#include "linear/visits.hpp"
#include "memory/aligned.hpp"
#include "memory/prefetch.hpp"
#include "memory/snapshot.hpp"
#include "simd/units.hpp"
#include "training/objectives.hpp"
#include "training/random.hpp"

namespace larank {

struct SdmOptions {
    Formulation formulation = Formulation::crammer_singer;
    int64_t classes = 2;
    double epsilon = 0.1;  // stop at this violation; 0: never
    bool shrinking = true;
    bool cooling = true;
    uint64_t seed = 0;
};

struct SdmCounters {
    int64_t visits = 0, steps = 0, full_loops = 0, shrunk_loops = 0, moves = 0;

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(visits, steps, full_loops, shrunk_loops, moves);
    }
};

template <class T>
class SdmRows {
  public:
    SdmRows(const Matrix<T>& X, const int32_t* labels, const double* costs, const double* rest_costs,
            const SdmOptions& options)
        : X_(X),
          options_(options),
          lanes_(padded<T>(options.classes)),
          random_(options.seed),
          coefficients_(X.rows),
          W_(X.weight_rows() * lanes_),
          scores_(lanes_),
          a_(lanes_),
          change_(lanes_),
          work_(lanes_),
          compress_(X),
          next_(X.rows) {
        examples_.reserve(std::size_t(X.rows));
        for (int64_t i = 0; i < X.rows; ++i) {
            examples_.push_back({T(X.squared_norm(i)), T(costs[i]), T(rest_costs[i]), labels[i]});
            stored_ += X.count(i);
            if (acts(i))
                everyone_.push_back(int32_t(i));
            else
                constant_loss_ += loss_of_zeros(costs[i], rest_costs[i]);
        }
        row_bytes_ = X.row_bytes();
        prefetch_weights_ = W_.size() * int64_t{sizeof(T)} > 256 * 1024;
        ahead_ = std::size_t(std::clamp<int64_t>(8192 / (row_bytes_ + 1), 1, 8));
    }

    // Starts example i from given coefficients. One that does not act has its share of the dual counted already.
    void seed(int64_t i, const int32_t* classes, const double* values, int64_t count) {
        if (!acts(i)) return;
        auto* entry = coefficients_.resize(i, count);
        for (int64_t e = 0; e < count; ++e) entry[e] = {T(values[e]), classes[e]};
    }

    const SdmCounters& counters() const { return counters_; }
    const Matrix<T>& matrix() const { return X_; }
    const SdmOptions& options() const { return options_; }
    const Coefficients<T>& coefficients() const { return coefficients_; }

  protected:
    struct Example {
        T norm;  // A_i = |x_i|^2
        T cost;  // C_i
        T rest;  // the same in the problems of the other classes, one-versus-rest
        int32_t label;
    };

    void check(const Coefficients<T>& coefficients) const {
        for (int64_t i = 0; i < X_.rows; ++i)
            for (auto e = coefficients.begin(i); e != coefficients.end(i); ++e)
                must_hold(e->label >= 0 && e->label < options_.classes && std::isfinite(e->value),
                          "a coefficient is out of range");
    }

    const Example& example(int64_t i) const { return examples_[std::size_t(i)]; }
    T cost(int64_t i) const { return example(i).cost * ramp_; }
    T rest(int64_t i) const { return example(i).rest * ramp_; }
    T curvature(int64_t i) const { return sigma_ * example(i).norm; }
    // The largest absolute value of a_i^m, at full costs.
    T bound(int64_t i, int32_t m) const { return m == example(i).label ? example(i).cost : example(i).rest; }
    double loss(int64_t i, const RowStep<T>& step) const {
        return double(cost(i)) * double(step.loss) + double(rest(i)) * double(step.rest_loss);
    }
    bool at_full_cost() const { return ramp_ == 1; }
    // An example without features or weight keeps its loss whatever W is.
    bool acts(int64_t i) const { return example(i).norm > 0 && largest_cost(i) > 0; }
    T largest_cost(int64_t i) const { return std::max(example(i).cost, example(i).rest); }

    // Examples come in random order: what a visit needs is asked for a few visits ahead, addresses first.
    void prefetch_ahead() const {
        order_.fetch_ahead([&](int64_t i) { X_.prefetch_row_for_later(i); }, [&](int64_t i) { X_.prefetch_start(i); });
        if (const int64_t far = order_.later(2 * ahead_); far >= 0) {
            prefetch(&example(far));
            X_.prefetch_start(far);
            coefficients_.prefetch_list(far);
        }
        if (const int64_t near = order_.later(ahead_); near >= 0) {
            X_.prefetch_row(near);
            coefficients_.prefetch_entries(near);
        }
    }

    // Scores example i into scores_, its coefficients into a_, the QP's answer into change_.
    RowStep<T> look(int64_t i, T skip) {
        spread(i);
        row_ = compress_(X_.row(i));
        units<T>().scores(row_, W_.data(), lanes_, prefetch_weights_, scores_.data());
        return solve(i, options_.classes, example(i).label, skip);
    }

    void spread(int64_t i) {
        std::fill(a_.data(), a_.data() + lanes_, T(0));
        for (auto e = coefficients_.begin(i); e != coefficients_.end(i); ++e) a_.data()[e->label] = e->value;
    }

    RowStep<T> solve(int64_t i, int64_t classes, int64_t label, T skip) {
        const RowProblem<T> problem{scores_.data(), a_.data(), classes, padded<T>(classes), label, curvature(i),
                                    cost(i),        skip,      rest(i)};
        return units<T>().solve_row[int(options_.formulation)](problem, work_.data(), change_.data());
    }

    // The same for the classes few_ alone, their scores and coefficients side by side: those with a coefficient to
    // move and, in a full loop, the most violating one, [sdm] sec. 2 and 2.1. The label comes first.
    RowStep<T> look_at_few(int64_t i, T skip) {
        RowStep<T> all{};
        int32_t worst = example(i).label;
        if (!shrunk_) {
            all = look(i, std::numeric_limits<T>::infinity());
            if (!(all.violation > skip)) return all;
            worst = most_violating(i);
        }
        few_.assign(1, example(i).label);
        few_values_.assign(1, T(0));
        for (auto e = coefficients_.begin(i); e != coefficients_.end(i); ++e) {
            if (e->label == example(i).label)
                few_values_[0] = e->value;
            else if (options_.formulation == Formulation::crammer_singer || !is_at(e->value, rest(i))) {
                few_.push_back(e->label);
                few_values_.push_back(e->value);
            }
        }
        if (std::find(few_.begin(), few_.end(), worst) == few_.end()) {
            few_.push_back(worst);
            few_values_.push_back(T(0));
        }
        const int64_t count = int64_t(few_.size());
        if (shrunk_) {
            row_ = compress_(X_.row(i));
            units<T>().scores_of(row_, W_.data(), lanes_, few_.data(), count, scores_.data());
        } else {
            for (int64_t c = 0; c < count; ++c) work_.data()[c] = scores_.data()[few_[std::size_t(c)]];
            std::copy(work_.data(), work_.data() + count, scores_.data());
        }
        std::fill(a_.data(), a_.data() + padded<T>(count), T(0));
        std::copy(few_values_.begin(), few_values_.end(), a_.data());
        const RowStep<T> step = solve(i, count, 0, skip);
        return shrunk_ ? step : RowStep<T>{all.violation, all.loss, step.moved, all.rest_loss};
    }

    int32_t most_violating(int64_t i) const {
        int32_t worst = example(i).label == 0 ? 1 : 0;
        for (int32_t m = 0; m < options_.classes; ++m)
            if (m != example(i).label && scores_.data()[m] > scores_.data()[worst]) worst = m;
        return worst;
    }

    void visit(int64_t i) {
        const bool few = few_classes_pay(i);
        const T skip = T(0.1 * epsilon_);
        const RowStep<T> step = few ? look_at_few(i, skip) : look(i, skip);
        ++counters_.visits;
        loop_violation_ = std::max(loop_violation_, double(step.violation));
        loop_violations_ += double(step.violation);
        loop_loss_ += loss(i, step);
        if (step.moved) {
            ++counters_.steps;
            if (few)
                take_step_of_few(i);
            else
                take_step(i);
        }
        if (!shrunk_) loop_gain_ += gain(i);
        const bool again = shrunk_ ? double(step.violation) >= epsilon_ : options_.shrinking && is_free(i);
        if (again) next_.insert(i);
    }

    // Beyond eight vectors a row of W no longer fits the registers. In shrunk loops the few classes with a coefficient
    // serve as well with fewer, as long as they touch fewer cache lines than whole rows do.
    bool few_classes_pay(int64_t i) const {
        const int64_t vectors = lanes_ / lane_count<T>;
        if (shrunk_) return vectors > 8 || coefficients_.count(i) < vectors;
        return vectors > 8 && options_.formulation == Formulation::crammer_singer;
    }

    void note(int64_t i) {
        if (journal_) journal_->note(i, coefficients_);
    }

    // What W changes by, in the scores' memory where it is not the change itself.
    const T* scaled_change(int64_t count) {
        if (sigma_ == 1) return change_.data();
        for (int64_t m = 0; m < count; ++m) scores_.data()[m] = sigma_ * change_.data()[m];
        return scores_.data();
    }

    void take_step(int64_t i) {
        note(i);
        units<T>().add_row(row_, scaled_change(lanes_), lanes_, W_.data());
        T* a = a_.data();
        const T* change = change_.data();
        int64_t count = 0;
        for (int64_t m = 0; m < options_.classes; ++m) {
            a[m] += change[m];
            count += a[m] != 0;
        }
        auto* entry = coefficients_.resize(i, count);
        for (int64_t m = 0; m < options_.classes; ++m)
            if (a[m] != 0) *entry++ = {a[m], int32_t(m)};
    }

    void take_step_of_few(int64_t i) {
        note(i);
        units<T>().add_row_of(row_, scaled_change(int64_t(few_.size())), few_.data(), int64_t(few_.size()), lanes_,
                              W_.data());
        kept_.clear();
        for (auto e = coefficients_.begin(i); e != coefficients_.end(i); ++e)
            if (std::find(few_.begin(), few_.end(), e->label) == few_.end()) kept_.push_back(*e);
        for (std::size_t c = 0; c < few_.size(); ++c) {
            const T value = a_.data()[c] + change_.data()[c];
            if (value != 0) kept_.push_back({value, few_[c]});
        }
        std::copy(kept_.begin(), kept_.end(), coefficients_.resize(i, int64_t(kept_.size())));
    }

    // Whether a coefficient is at its bound, up to the rounding of the step that took it there.
    static bool is_at(T value, T bound) {
        return std::abs(std::abs(value) - bound) <= 4 * std::numeric_limits<T>::epsilon() * bound;
    }

    // Whether some coefficient of example i lies strictly inside its bounds.
    bool is_free(int64_t i) const {
        const bool label_is_bounded = options_.formulation != Formulation::weston_watkins;
        for (auto e = coefficients_.begin(i); e != coefficients_.end(i); ++e)
            if (!is_at(e->value, bound(i, e->label) * ramp_) && (label_is_bounded || e->label != example(i).label))
                return true;
        return false;
    }

    void begin_loop(std::vector<int32_t> examples) {
        order_.begin(std::move(examples), row_bytes_, random_);
        next_.clear();
        loop_violation_ = loop_violations_ = loop_loss_ = loop_gain_ = 0;
    }

    void move_from(const Coefficients<T>& before, T momentum) {
        ++counters_.moves;
        for (const int32_t i : everyone_) {
            if (coefficients_.equals(before, i)) continue;
            spread(i);
            T* const g = scores_.data();  // such that a_i - g / A_i is where the row would be without constraints
            const T own = options_.formulation == Formulation::one_vs_rest ? T(1) : T(0),
                    scale = momentum * curvature(i);
            for (int64_t m = 0; m < lanes_; ++m) g[m] = T(-1) - scale * a_.data()[m];
            g[example(i).label] += T(1) + own;
            for (auto e = before.begin(i); e != before.end(i); ++e) g[e->label] += scale * e->value;
            solve(i, options_.classes, example(i).label, -std::numeric_limits<T>::infinity());
            row_ = compress_(X_.row(i));
            take_step(i);
            ++counters_.visits, ++counters_.steps;
        }
    }

    // The sum of C_i A_i, which says how long the way of the coefficients is.
    double total_way() const {
        double total = 0;
        for (int32_t i : everyone_) total += double(largest_cost(i)) * double(example(i).norm);
        return total;
    }

    // Costs lowered to the share `ramp` of their value, and coefficients with them; those at bounds stay there.
    void scale_costs(T ramp) {
        const T old = std::exchange(ramp_, ramp);
        for (int32_t i : everyone_) {
            const int64_t count = coefficients_.count(i);
            auto* entry = coefficients_.resize(i, count);
            for (int64_t e = 0; e < count; ++e) {
                T& value = entry[e].value;
                const T most = bound(i, entry[e].label);
                value = is_at(value, most * old) ? std::copysign(most * ramp_, value) : value * (ramp_ / old);
            }
        }
    }

    void sum_into(double* W) const {
        for (int64_t i = 0; i < X_.rows; ++i) {
            if (!coefficients_.count(i)) continue;
            X_.each(i, [&](int64_t feature, T value) {
                double* w = W + feature * lanes_;
                for (auto e = coefficients_.begin(i); e != coefficients_.end(i); ++e)
                    w[e->label] += double(e->value) * double(value);
            });
        }
    }

    Objectives objectives() {
        const double half = 0.5 * squared_norm();
        Objectives at{half + constant_loss_, constant_loss_ - half, 0};
        for (int32_t i : everyone_) {
            at.dual += gain(i);
            const RowStep<T> step = look(i, std::numeric_limits<T>::infinity());
            at.primal += loss(i, step);
            at.violation = std::max(at.violation, double(step.violation));
        }
        return at;
    }

    double gain(int64_t i) const { return gain(i, coefficients_.begin(i), coefficients_.end(i)); }
    // The same with these coefficients.
    double gain(int64_t i, const typename Coefficients<T>::Entry* first,
                const typename Coefficients<T>::Entry* last) const {
        double all = 0;
        for (auto e = first; e != last; ++e) {
            if (options_.formulation == Formulation::one_vs_rest)
                all += std::abs(double(e->value));
            else if (e->label != example(i).label)
                all -= double(e->value);
        }
        return all;
    }

    // What an example that cannot act adds to the primal and, its coefficients at their bounds, to the dual.
    double loss_of_zeros(double cost, double rest) const {
        switch (options_.formulation) {
            case Formulation::crammer_singer: return cost;
            case Formulation::weston_watkins: return cost * double(options_.classes - 1);
            default: return cost + rest * double(options_.classes - 1);
        }
    }

    // Of W, whose size is a multiple of the lanes: several sums side by side, for one alone waits for every addition.
    double squared_norm() const {
        double sums[lane_count<T>] = {};
        for (int64_t j = 0; j < W_.size(); j += lane_count<T>)
            for (int64_t c = 0; c < lane_count<T>; ++c) sums[c] += double(W_.data()[j + c]) * double(W_.data()[j + c]);
        return std::accumulate(sums, sums + lane_count<T>, 0.0);
    }

    Matrix<T> X_;
    SdmOptions options_;
    int64_t lanes_;
    Random random_;
    LargeVector<Example> examples_;
    Coefficients<T> coefficients_;
    CoefficientJournal<T>* journal_ = nullptr;  // where coefficients are noted before they change
    AlignedArray<T> W_, scores_, a_, change_, work_;
    RowCompressor<T> compress_;
    Row<T> row_{};
    std::vector<int32_t> few_;
    std::vector<T> few_values_;
    std::vector<typename Coefficients<T>::Entry> kept_;
    std::vector<int32_t> everyone_;  // all examples that act
    RowSet next_;                    // those the next loop may visit
    VisitOrder order_;
    int64_t row_bytes_ = 0, stored_ = 0;
    std::size_t ahead_ = 1;
    bool shrunk_ = false, prefetch_weights_ = false;
    T ramp_ = 1, sigma_ = 1;
    double epsilon_ = 1;
    double loop_violation_ = 0, loop_violations_ = 0, loop_loss_ = 0, loop_gain_ = 0;
    double constant_loss_ = 0;
    SdmCounters counters_;
};

}  // namespace larank
