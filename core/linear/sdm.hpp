// The Sequential Dual Method for linear multiclass SVMs [sdm].
//
// Primal   min_W  1/2 |W|^2 + sum_i C_i loss(x_i' W, y_i)                               [sdm] (1), (14)
// Dual     max_a  sum_i gain(a_i, y_i) - 1/2 |W(a)|^2,   w_m = sum_i a_i^m x_i           [sdm] (4), (16), negated
//   Crammer-Singer   loss = max_m (e^m + s_m) - s_y       gain = a^y,  a^m <= C_i^m, sum_m a^m = 0
//   Weston-Watkins   loss = sum_{m != y} [1 + s_m - s_y]+ gain = a^y,  -C_i <= a^m <= 0 for m != y, sum_m a^m = 0
//   One-versus-rest  loss = sum_m [1 -+ s_m]+             gain = sum |a^m|, 0 <= +-a^m <= C_i^m
// Costs of one-versus-rest are per class: C_i in the problem of the example's own class, another in all others.
// A visit to example i solves its QP exactly (linear/rowqp.hpp) and updates W. A full loop visits all examples in
// random order. With shrinking, loops over those with a free coefficient follow; an example whose violation falls below
// epsilon leaves them until the next full loop. Cooling lowers epsilon with the violations that full loops see, and
// where C_i |x_i|^2 is large, starts from smaller costs. Where shrunk loops keep using up their visits, coefficients
// are moved on from one full loop to the next, in the direction in which they came.
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
class Sdm {
  public:
    Sdm(const Matrix<T>& X, const int32_t* labels, const double* costs, const double* rest_costs,
        const SdmOptions& options)
        : X_(X),
          options_(options),
          lanes_(padded<T>(options.classes)),
          random_(options.seed),
          coefficients_(X.rows),
          W_(X.weight_rows() * lanes_),
          average_(0),
          scores_(lanes_),
          a_(lanes_),
          change_(lanes_),
          work_(lanes_),
          compress_(X),
          next_(X.rows) {
        int64_t stored = 0;
        examples_.reserve(std::size_t(X.rows));
        for (int64_t i = 0; i < X.rows; ++i) {
            examples_.push_back({T(X.squared_norm(i)), T(costs[i]), T(rest_costs[i]), labels[i]});
            stored += X.count(i);
            if (acts(i))
                everyone_.push_back(int32_t(i));
            else
                constant_loss_ += loss_of_zeros(costs[i], rest_costs[i]);
        }
        row_bytes_ = X.row_bytes();
        prefetch_weights_ = W_.size() * int64_t{sizeof(T)} > 256 * 1024;
        ahead_ = std::size_t(std::clamp<int64_t>(8192 / (row_bytes_ + 1), 1, 8));
        if (W_.size() <= stored / 8) average_ = AlignedArray<T>(W_.size());
        epsilon_ = options.cooling ? std::max(1.0, options.epsilon) : options.epsilon;
        if (options.cooling) ramp_ = first_ramp();
        cooling_rate_ = at_full_cost() ? 1.0 : 0.1;
        begin_loop(everyone_);
    }

    // Starts example i from given coefficients; call `start_from_seeds` when all are in. One that does not act has
    // its share of the dual counted already.
    void seed(int64_t i, const int32_t* classes, const double* values, int64_t count) {
        if (!acts(i)) return;
        auto* entry = coefficients_.resize(i, count);
        for (int64_t e = 0; e < count; ++e) entry[e] = {T(values[e]), classes[e]};
    }
    void start_from_seeds() {
        ramp_ = 1;
        rebuild_weights();
    }

    // Visits examples until about `work` multiply-adds are done or a loop ends. True once the violation stop holds.
    bool advance(int64_t work) {
        if (is_move_due_) move_on();
        while (!converged_ && work > 0) {
            if (order_.is_over()) {
                end_loop();
                break;
            }
            prefetch_ahead();
            const int64_t i = order_.next();
            work -= (X_.count(i) + 8) * lanes_;
            visit(i);
        }
        return converged_;
    }

    // Everything from scratch: W from the coefficients, then primal, dual and the largest violation at that W. Where
    // an average of W was kept and its primal is lower, it becomes the model.
    Objectives evaluate() {
        const T ramp = std::exchange(ramp_, T(1));
        rebuild_weights();
        Objectives at = objectives();
        average_is_better_ = false;
        if (average_weight_ > 0) {
            std::swap(W_, average_);
            const double primal = objectives().primal;
            std::swap(W_, average_);
            average_is_better_ = primal < at.primal;
            at.primal = std::min(at.primal, primal);
        }
        ramp_ = ramp;
        return at;
    }

    // What the last full loop saw: losses as they were when each example was visited, and whether at full costs.
    const Objectives& estimate() const { return estimate_; }
    bool estimate_is_at_full_cost() const { return estimate_is_at_full_cost_; }
    const SdmCounters& counters() const { return counters_; }
    const Matrix<T>& matrix() const { return X_; }
    const SdmOptions& options() const { return options_; }
    // The weights, [feature][class] without padding. The session ends here.
    AlignedArray<T> take_model() {
        AlignedArray<T> model = std::move(average_is_better_ ? average_ : W_);
        for (int64_t j = 0; j < X_.weight_rows(); ++j)
            std::copy(model.data() + j * lanes_, model.data() + j * lanes_ + options_.classes,
                      model.data() + j * options_.classes);
        return model;
    }
    const Coefficients<T>& coefficients() const { return coefficients_; }

    // All that does not follow from the data and the options.
    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(random_, coefficients_, W_, average_, order_, next_);
        snapshot(shrunk_, converged_, average_is_better_, estimate_is_at_full_cost_, ramp_, ramp_loops_);
        snapshot(epsilon_, cooling_rate_, loop_violation_, loop_violations_, loop_loss_, loop_gain_);
        snapshot(average_weight_, shrunk_visits_, counters_, estimate_.primal, estimate_.dual, estimate_.violation);
        snapshot(patience_, moves_, is_move_due_, dual_before_);
        if (moves_ > 0) {
            if constexpr (Snapshot::reads) before_ = Coefficients<T>(X_.rows);
            snapshot(before_);
        }
        if constexpr (!Snapshot::reads) return;
        must_hold(order_.is_within(X_.rows), "an example is out of range");
        must_hold(ramp_ > 0 && ramp_ <= 1, "the costs are out of range");
        check(coefficients_);
        if (moves_ > 0) check(before_);
    }

  private:
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
        if (prefetch_weights_) prefetch_first_weights(order_.later(0));
        return solve(i, options_.classes, example(i).label, skip);
    }

    // What the scores of an example will read before they ask for anything themselves, on its way during a row QP.
    void prefetch_first_weights(int64_t i) const {
        constexpr int64_t rows = 12;
        if (i < 0 || !X_.columns32) return;
        const int32_t* const columns = X_.columns32 + X_.begin(i);
        for (int64_t j = 0; j < std::min(rows, X_.count(i)); ++j)
            for (int64_t m = 0; m < lanes_; m += lane_count<T>) prefetch(W_.data() + columns[j] * lanes_ + m);
    }

    void spread(int64_t i) {
        std::fill(a_.data(), a_.data() + lanes_, T(0));
        for (auto e = coefficients_.begin(i); e != coefficients_.end(i); ++e) a_.data()[e->label] = e->value;
    }

    RowStep<T> solve(int64_t i, int64_t classes, int64_t label, T skip) {
        const RowProblem<T> problem{scores_.data(), a_.data(), classes, padded<T>(classes), label, example(i).norm,
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

    void take_step(int64_t i) {
        units<T>().add_row(row_, change_.data(), lanes_, W_.data());
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
        units<T>().add_row_of(row_, change_.data(), few_.data(), int64_t(few_.size()), lanes_, W_.data());
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

    void end_loop() {
        if (shrunk_)
            end_shrunk_loop();
        else
            end_full_loop();
        begin_loop(shrunk_ ? next_.take() : everyone_);
    }

    void end_full_loop() {
        ++counters_.full_loops;
        note_objectives();
        converged_ = at_full_cost() && loop_violation_ < options_.epsilon;
        if (options_.cooling) {
            const double mean = loop_violations_ / double(std::max<std::size_t>(everyone_.size(), 1));
            epsilon_ = std::max(options_.epsilon, std::min(epsilon_, cooling_rate_ * mean));
        }
        shrunk_ = !next_.is_empty();
        shrunk_visits_ = 0;
        if (sizeof(T) == sizeof(float) && counters_.full_loops % 10 == 0) rebuild_weights();  // rounding adds up
        is_move_due_ = is_slow();
        ++ramp_loops_;
        const bool gap_is_small = estimate_.primal - estimate_.dual < ramp_gap * estimate_.primal;
        if (!at_full_cost() && (gap_is_small || ramp_loops_ >= ramp_patience)) raise_ramp();
    }

    // The shrunk loops end when no example is left or their visits come to five full loops, [sdm] sec. 2.1; to two,
    // where coefficients are moved on after that.
    void end_shrunk_loop() {
        ++counters_.shrunk_loops;
        if (shrunk_visits_ == 0) begin_average();
        shrunk_visits_ += int64_t(order_.size());
        const bool is_over = shrunk_visits_ > (is_slow() ? 2 : 5) * int64_t(everyone_.size());
        shrunk_ = !next_.is_empty() && !is_over;
        if (average_.size() && at_full_cost()) average_weights(double(order_.size()));
        if (!shrunk_ && at_full_cost()) patience_ = std::max(0, patience_ - (is_over ? 5 : 1));
    }

    // After three phases that used up their visits, or fifteen that did not.
    bool is_slow() const { return options_.cooling && patience_ <= 0; }

    // The phases that follow moves are short, and their W swings about the same mean.
    void begin_average() {
        average_weight_ = is_slow() ? std::min(average_weight_, 5.0 * double(everyone_.size())) : 0;
    }

    // From full loop to full loop coefficients creep on in much the same direction. Nesterov's extrapolation takes them
    // further, each row projected on its constraints; where that has lowered the dual, they go back to where they were.
    void move_on() {
        is_move_due_ = false;
        const bool has_fallen = moves_ > 0 && estimate_.dual < dual_before_;
        if (has_fallen) {
            coefficients_ = before_;
            moves_ = 0;
            return rebuild_weights();
        }
        dual_before_ = estimate_.dual;
        Coefficients<T> now = coefficients_;
        if (moves_ > 0) move_from(before_, T(moves_) / T(moves_ + 3));
        before_ = std::move(now);
        ++moves_;
    }

    void move_from(const Coefficients<T>& before, T momentum) {
        ++counters_.moves;
        for (const int32_t i : everyone_) {
            if (coefficients_.equals(before, i)) continue;
            spread(i);
            T* const g = scores_.data();  // such that a_i - g / A_i is where the row would be without constraints
            const T own = options_.formulation == Formulation::one_vs_rest ? T(1) : T(0),
                    scale = momentum * example(i).norm;
            for (int64_t m = 0; m < lanes_; ++m) g[m] = T(-1) - scale * a_.data()[m];
            g[example(i).label] += T(1) + own;
            for (auto e = before.begin(i); e != before.end(i); ++e) g[e->label] += scale * e->value;
            solve(i, options_.classes, example(i).label, -std::numeric_limits<T>::infinity());
            row_ = compress_(X_.row(i));
            take_step(i);
            ++counters_.visits, ++counters_.steps;
        }
    }

    // W swings about its mean within a phase, the more so the fewer features and the more examples there are; the
    // mean of the shrunk phase, weighted by visits, is then a better primal point than the last W.
    void average_weights(double visits) {
        average_weight_ += visits;
        const T share = T(visits / average_weight_);
        for (int64_t j = 0; j < W_.size(); ++j) average_.data()[j] += share * (W_.data()[j] - average_.data()[j]);
    }

    // One visit moves a coefficient by about 1 / A_i on its way to C_i. Where C_i A_i is large the way is long, so
    // training starts with costs lowered to `ramp_` C_i and raises them, coefficients with them, as the gap closes.
    T first_ramp() const {
        double total = 0;
        for (int32_t i : everyone_) total += double(largest_cost(i)) * double(example(i).norm);
        const double mean = total / double(std::max<std::size_t>(everyone_.size(), 1));
        return mean > 2 ? T(std::min(0.01, 1 / mean)) : T(1);
    }

    void raise_ramp() {
        const T old = ramp_, factor = std::min(T(1) / old, T(ramp_factor));
        ramp_ = factor * old > T(0.99) ? T(1) : factor * old;
        for (int32_t i : everyone_) {
            const int64_t count = coefficients_.count(i);
            auto* entry = coefficients_.resize(i, count);
            for (int64_t e = 0; e < count; ++e) {
                T& value = entry[e].value;
                const T most = bound(i, entry[e].label);
                value = is_at(value, most * old) ? std::copysign(most * ramp_, value) : value * (ramp_ / old);
            }
        }
        for (int64_t j = 0; j < W_.size(); ++j) W_.data()[j] *= ramp_ / old;
        ramp_loops_ = 0;
        epsilon_ = std::max(1.0, options_.epsilon);
        shrunk_ = false;
    }

    void rebuild_weights() {
        if constexpr (sizeof(T) == sizeof(double)) {
            W_.clear();
            sum_into(W_.data());
        } else {
            AlignedArray<double> W(W_.size());
            sum_into(W.data());
            std::transform(W.data(), W.data() + W.size(), W_.data(), [](double w) { return T(w); });
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

    void note_objectives() {
        estimate_is_at_full_cost_ = at_full_cost();
        const double half = 0.5 * squared_norm();
        const double constant = double(ramp_) * constant_loss_;
        estimate_ = {half + loop_loss_ + constant, loop_gain_ - half + constant, loop_violation_};
    }

    double gain(int64_t i) const {
        double all = 0;
        for (auto e = coefficients_.begin(i); e != coefficients_.end(i); ++e) {
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

    static constexpr double ramp_factor = 3.2, ramp_gap = 0.2;
    static constexpr int ramp_patience = 4;  // full loops per stage

    Matrix<T> X_;
    SdmOptions options_;
    int64_t lanes_;
    Random random_;
    LargeVector<Example> examples_;
    Coefficients<T> coefficients_;
    AlignedArray<T> W_, average_, scores_, a_, change_, work_;
    RowCompressor<T> compress_;
    Row<T> row_{};
    std::vector<int32_t> few_;
    std::vector<T> few_values_;
    std::vector<typename Coefficients<T>::Entry> kept_;
    std::vector<int32_t> everyone_;  // all examples that act
    RowSet next_;                    // those the next loop may visit
    VisitOrder order_;
    int64_t row_bytes_ = 0;
    std::size_t ahead_ = 1;
    bool shrunk_ = false, converged_ = false, average_is_better_ = false, prefetch_weights_ = false,
         estimate_is_at_full_cost_ = false;
    T ramp_ = 1;
    int ramp_loops_ = 0;
    double epsilon_ = 1, cooling_rate_ = 1;  // epsilon falls to this share of the mean violation
    double loop_violation_ = 0, loop_violations_ = 0, loop_loss_ = 0, loop_gain_ = 0;
    double constant_loss_ = 0, average_weight_ = 0;
    int64_t shrunk_visits_ = 0;
    Coefficients<T> before_{0};  // those after the full loop before the last, where they are moved on
    int patience_ = 15, moves_ = 0;
    bool is_move_due_ = false;
    double dual_before_ = 0;
    SdmCounters counters_;
    Objectives estimate_;
};

}  // namespace larank
