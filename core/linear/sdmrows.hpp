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
#include "linear/losses.hpp"
#include "linear/shrinking.hpp"
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
    int64_t threads = 1;
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
          coefficients_(X.rows, options.threads),
          main_(X, lanes_, 0) {
        examples_.reserve(std::size_t(X.rows));
        for (int64_t i = 0; i < X.rows; ++i) {
            examples_.push_back({T(X.squared_norm(i)), T(costs[i]), T(rest_costs[i]), labels[i]});
            if (rounds_costs) exact_costs_.push_back({costs[i], rest_costs[i]});
            stored_ += X.count(i);
            const double loss = loss_of_zeros(costs[i], rest_costs[i]);
            loss_at_zero_ += loss;
            if (acts(i))
                everyone_.push_back(int32_t(i));
            else
                constant_loss_ += loss;
        }
        row_bytes_ = X.row_bytes();
        prefetch_weights_ = main_.W.size() * int64_t{sizeof(T)} > 256 * 1024;
        ahead_ = std::size_t(std::clamp<int64_t>(8192 / (row_bytes_ + 1), 1, 8));
    }

    // Starts example i from given coefficients. One that does not act has its share of the dual counted already.
    void seed(int64_t i, const int32_t* classes, const double* values, int64_t count) {
        if (!acts(i)) return;
        auto* entry = coefficients_.resize(i, count);
        for (int64_t e = 0; e < count; ++e) entry[e] = {T(values[e]), classes[e]};
    }

    const SdmCounters& counters() const { return main_.counters; }
    const Matrix<T>& matrix() const { return X_; }
    const SdmOptions& options() const { return options_; }
    const Coefficients<T>& coefficients() const { return coefficients_; }

    struct ExactEntry {
        double value;
        int32_t label;
    };

    // Sets `list` to the coefficients of example i, without the rounding that takes them out of the constraints: if
    // they must sum to zero, the coefficient of the label follows from the others.
    void make_feasible(int64_t i, std::vector<ExactEntry>& list) const {
        list.clear();
        const bool sums_to_zero = options_.formulation != Formulation::one_vs_rest;
        const int32_t label = example(i).label;
        const ExampleCosts costs = exact_costs(i);
        double others = 0;
        std::size_t own = 0;  // one more than where the label stands: no branch can foretell that
        for (auto e = coefficients_.begin(i); e != coefficients_.end(i); ++e) {
            list.push_back({double(e->value), e->label});
            own = e->label == label ? list.size() : own;
            others += double(e->value) * double(e->label != label);
        }
        if (sums_to_zero && !list.empty()) {
            if (own == 0) list.push_back({0, label}), own = list.size();
            list[own - 1].value = -others;
        }
        double most = 1;
        if (options_.formulation == Formulation::crammer_singer) {
            if (std::abs(others) > costs.own) most = std::abs(others) / costs.own;
        } else {
            for (const ExactEntry& e : list) {
                const double bound = costs.of(e.label, label);
                if ((e.label != label || !sums_to_zero) && std::abs(e.value) > most * bound)
                    most = std::abs(e.value) / bound;
            }
        }
        if (most > 1)
            for (ExactEntry& entry : list) entry.value /= most;
    }

  protected:
    using Entry = typename Coefficients<T>::Entry;

    struct Example {
        T norm;  // A_i = |x_i|^2
        T cost;  // C_i
        T rest;  // the same in the problems of the other classes, one-versus-rest
        int32_t label;
    };

    // Room for one example in double precision.
    struct ExactRow {
        ExactRow(const Matrix<T>& X, int64_t lanes)
            : scores(lanes), a(lanes), change(lanes), work(lanes), compress(X) {}

        AlignedArray<double> scores, a, change, work;
        RowCompressor<T> compress;
        std::vector<ExactEntry> list;
    };

    // What visits saw: losses and violations as they were then, and the linear part of the dual after them.
    struct Seen {
        double violation = 0, violations = 0, loss = 0, gain = 0;
    };

    // Who visits rows: the W that it sees and changes, room to work in, and what it has seen. Several may be on their
    // way at the same time, each with rows of its own.
    struct alignas(cache_lines) Visitor {
        Visitor(const Matrix<T>& X, int64_t lanes, int64_t number)
            : pool(number),
              W(X.weight_rows() * lanes),
              scores(lanes),
              a(lanes),
              change(lanes),
              work(lanes),
              compress(X),
              next(X.rows) {}

        int64_t pool;              // where it takes memory for coefficients from
        std::size_t position = 0;  // of the row that it visits next, in the order of the loop
        AlignedArray<T> W, scores, a, change, work;
        RowCompressor<T> compress;
        Row<T> row{};
        std::vector<int32_t> few;
        std::vector<T> few_values;
        std::vector<Entry> kept;
        CoefficientJournal<T>* journal = nullptr;  // where coefficients are noted before they change
        RowSet next;                               // those the next loop may visit
        Seen seen;                                 // in this loop
        SdmCounters counters;
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
    // The full costs, as they were before they were rounded.
    ExampleCosts exact_costs(int64_t i) const {
        if (rounds_costs) return exact_costs_[std::size_t(i)];
        return {double(example(i).cost), double(example(i).rest)};
    }
    bool at_full_cost() const { return ramp_ == 1; }
    // An example without features or weight keeps its loss whatever W is.
    bool acts(int64_t i) const { return example(i).norm > 0 && largest_cost(i) > 0; }
    T largest_cost(int64_t i) const { return std::max(example(i).cost, example(i).rest); }

    // Examples come in random order: what a visit needs is asked for a few visits ahead, addresses first.
    void prefetch_ahead(const Visitor& at) const {
        order_.fetch_ahead(
            at.position, [&](int64_t i) { X_.prefetch_row_for_later(i); }, [&](int64_t i) { X_.prefetch_start(i); });
        if (const int64_t far = order_.later(at.position, 2 * ahead_); far >= 0) {
            prefetch(&example(far));
            X_.prefetch_start(far);
            coefficients_.prefetch_list(far);
        }
        if (const int64_t near = order_.later(at.position, ahead_); near >= 0) {
            X_.prefetch_row(near);
            coefficients_.prefetch_entries(near);
        }
    }

    // Scores example i into at.scores, its coefficients into at.a, the QP's answer into at.change.
    RowStep<T> look(Visitor& at, const T* W, int64_t i, T skip) {
        spread(at, i);
        at.row = at.compress(X_.row(i));
        units<T>().scores(at.row, W, lanes_, prefetch_weights_, at.scores.data());
        if (prefetch_weights_) prefetch_first_weights(W, order_.later(at.position, 0));
        return solve(at, i, options_.classes, example(i).label, skip);
    }

    // What the scores of an example will read before they ask for anything themselves, on its way during a row QP.
    void prefetch_first_weights(const T* W, int64_t i) const {
        if (i < 0 || !X_.columns32) return;
        const int32_t* const columns = X_.columns32 + X_.begin(i);
        for (int64_t j = 0; j < std::min(prefetch_distance, X_.count(i)); ++j)
            for (int64_t m = 0; m < lanes_; m += lane_count<T>) prefetch(W + columns[j] * lanes_ + m);
    }

    void spread(Visitor& at, int64_t i) {
        std::fill(at.a.data(), at.a.data() + lanes_, T(0));
        for (auto e = coefficients_.begin(i); e != coefficients_.end(i); ++e) at.a.data()[e->label] = e->value;
    }

    RowStep<T> solve(Visitor& at, int64_t i, int64_t classes, int64_t label, T skip) {
        const RowProblem<T> problem{at.scores.data(), at.a.data(), classes, padded<T>(classes), label, curvature(i),
                                    cost(i),          skip,        rest(i)};
        return units<T>().solve_row[int(options_.formulation)](problem, at.work.data(), at.change.data());
    }

    // The same for the classes at.few alone, their scores and coefficients side by side: those with a coefficient to
    // move and, in a full loop, the most violating one, [sdm] sec. 2 and 2.1. The label comes first.
    RowStep<T> look_at_few(Visitor& at, int64_t i, T skip) {
        RowStep<T> all{};
        int32_t worst = example(i).label;
        if (!shrunk_) {
            all = look(at, at.W.data(), i, std::numeric_limits<T>::infinity());
            if (!(all.violation > skip)) return all;
            worst = most_violating(at, i);
        }
        at.few.assign(1, example(i).label);
        at.few_values.assign(1, T(0));
        for (auto e = coefficients_.begin(i); e != coefficients_.end(i); ++e) {
            if (e->label == example(i).label)
                at.few_values[0] = e->value;
            else if (options_.formulation == Formulation::crammer_singer || !is_at(e->value, rest(i))) {
                at.few.push_back(e->label);
                at.few_values.push_back(e->value);
            }
        }
        if (std::find(at.few.begin(), at.few.end(), worst) == at.few.end()) {
            at.few.push_back(worst);
            at.few_values.push_back(T(0));
        }
        const int64_t count = int64_t(at.few.size());
        if (shrunk_) {
            at.row = at.compress(X_.row(i));
            units<T>().scores_of(at.row, at.W.data(), lanes_, at.few.data(), count, at.scores.data());
        } else {
            for (int64_t c = 0; c < count; ++c) at.work.data()[c] = at.scores.data()[at.few[std::size_t(c)]];
            std::copy(at.work.data(), at.work.data() + count, at.scores.data());
        }
        std::fill(at.a.data(), at.a.data() + padded<T>(count), T(0));
        std::copy(at.few_values.begin(), at.few_values.end(), at.a.data());
        const RowStep<T> step = solve(at, i, count, 0, skip);
        return shrunk_ ? step : RowStep<T>{all.violation, all.loss, step.moved, all.rest_loss};
    }

    int32_t most_violating(const Visitor& at, int64_t i) const {
        int32_t worst = example(i).label == 0 ? 1 : 0;
        for (int32_t m = 0; m < options_.classes; ++m)
            if (m != example(i).label && at.scores.data()[m] > at.scores.data()[worst]) worst = m;
        return worst;
    }

    // Visits the rows of the loop from its position on, up to `end` or until about `work` multiply-adds are done. What
    // is left of the work.
    int64_t visit_until(Visitor& at, std::size_t end, int64_t work) {
        while (at.position < end && work > 0) {
            prefetch_ahead(at);
            const int64_t i = order_[at.position++];
            work -= (X_.count(i) + 8) * lanes_;
            visit(at, i);
        }
        return work;
    }

    void visit(Visitor& at, int64_t i) {
        const bool few = few_classes_pay(i);
        const T skip = T(0.1 * epsilon_);
        const RowStep<T> step = few ? look_at_few(at, i, skip) : look(at, at.W.data(), i, skip);
        ++at.counters.visits;
        at.seen.violation = std::max(at.seen.violation, double(step.violation));
        at.seen.violations += double(step.violation);
        at.seen.loss += loss(i, step);
        if (step.moved) {
            ++at.counters.steps;
            if (few)
                take_step_of_few(at, i);
            else
                take_step(at, i);
        }
        if (!shrunk_) at.seen.gain += gain(i);
        const bool again = shrunk_ ? double(step.violation) >= epsilon_ : options_.shrinking && is_free(i);
        if (again) at.next.insert(i);
    }

    // Beyond eight vectors a row of W no longer fits the registers. In shrunk loops the few classes with a coefficient
    // serve as well with fewer, as long as they touch fewer cache lines than whole rows do.
    bool few_classes_pay(int64_t i) const {
        const int64_t vectors = lanes_ / lane_count<T>;
        if (shrunk_) return vectors > 8 || coefficients_.count(i) < vectors;
        return vectors > 8 && options_.formulation == Formulation::crammer_singer;
    }

    void note(Visitor& at, int64_t i) {
        if (at.journal) at.journal->note(i, coefficients_);
    }

    // What W changes by, in the scores' memory where it is not the change itself.
    const T* scaled_change(Visitor& at, int64_t count) {
        if (sigma_ == 1) return at.change.data();
        for (int64_t m = 0; m < count; ++m) at.scores.data()[m] = sigma_ * at.change.data()[m];
        return at.scores.data();
    }

    void take_step(Visitor& at, int64_t i) {
        note(at, i);
        units<T>().add_row(at.row, scaled_change(at, lanes_), lanes_, at.W.data());
        // Which coefficients are zero no branch can foretell: all are written, and those overwritten by the next.
        at.kept.resize(std::size_t(options_.classes));
        Entry* const list = at.kept.data();
        int64_t count = 0;
        for (int64_t m = 0; m < options_.classes; ++m) {
            const T value = at.a.data()[m] + at.change.data()[m];
            list[count] = {value, int32_t(m)};
            count += value != 0;
        }
        coefficients_.assign(i, list, count, at.pool);
    }

    void take_step_of_few(Visitor& at, int64_t i) {
        note(at, i);
        units<T>().add_row_of(at.row, scaled_change(at, int64_t(at.few.size())), at.few.data(), int64_t(at.few.size()),
                              lanes_, at.W.data());
        at.kept.clear();
        for (auto e = coefficients_.begin(i); e != coefficients_.end(i); ++e)
            if (std::find(at.few.begin(), at.few.end(), e->label) == at.few.end()) at.kept.push_back(*e);
        for (std::size_t c = 0; c < at.few.size(); ++c) {
            const T value = at.a.data()[c] + at.change.data()[c];
            if (value != 0) at.kept.push_back({value, at.few[c]});
        }
        std::copy(at.kept.begin(), at.kept.end(), coefficients_.resize(i, int64_t(at.kept.size()), at.pool));
    }

    // a_i becomes before + step (a_i - before), class by class.
    void go_to(Visitor& at, int64_t i, const Entry* before, int64_t count, T step) {
        at.kept.assign(before, before + count);
        for (Entry& entry : at.kept) {
            const Entry* const now = std::find_if(coefficients_.begin(i), coefficients_.end(i),
                                                  [&](const Entry& e) { return e.label == entry.label; });
            const T target = now == coefficients_.end(i) ? T(0) : now->value;
            entry.value += step * (target - entry.value);
        }
        for (auto e = coefficients_.begin(i); e != coefficients_.end(i); ++e)
            if (std::none_of(before, before + count, [&](const Entry& b) { return b.label == e->label; }))
                at.kept.push_back({step * e->value, e->label});
        at.kept.erase(std::remove_if(at.kept.begin(), at.kept.end(), [](const Entry& e) { return e.value == 0; }),
                      at.kept.end());
        coefficients_.assign(i, at.kept.data(), int64_t(at.kept.size()), at.pool);
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
        main_.next.clear();
        main_.seen = {};
    }

    void move_from(const Coefficients<T>& before, T momentum) {
        Visitor& at = main_;
        ++at.counters.moves;
        for (const int32_t i : everyone_) {
            if (coefficients_.equals(before, i)) continue;
            spread(at, i);
            T* const g = at.scores.data();  // such that a_i - g / A_i is where the row would be without constraints
            const T own = options_.formulation == Formulation::one_vs_rest ? T(1) : T(0),
                    scale = momentum * curvature(i);
            for (int64_t m = 0; m < lanes_; ++m) g[m] = T(-1) - scale * at.a.data()[m];
            g[example(i).label] += T(1) + own;
            for (auto e = before.begin(i); e != before.end(i); ++e) g[e->label] += scale * e->value;
            solve(at, i, options_.classes, example(i).label, -std::numeric_limits<T>::infinity());
            at.row = at.compress(X_.row(i));
            take_step(at, i);
            ++at.counters.visits, ++at.counters.steps;
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

    // ---- The certificate: everything in double precision, from the coefficients that are kept ----

    // Adds what rows `first` to `last` - 1 have in W, whose rows are `stride` apart.
    void sum_into(double* W, int64_t stride, int64_t first, int64_t last) const {
        std::vector<ExactEntry> list;
        for (int64_t i = first; i < last; ++i) {
            if (!coefficients_.count(i)) continue;
            make_feasible(i, list);
            X_.each(i, [&](int64_t feature, T value) {
                double* w = W + feature * stride;
                for (const ExactEntry& e : list) w[e.label] += e.value * double(value);
            });
        }
    }

    // The share of rows `first` to `last` - 1 of those that act in both objectives at W, and their largest
    // violation, added to `sums`.
    Objectives terms(const T* W, std::size_t first, std::size_t last, Objectives sums) const {
        ExactRow at(X_, lanes_);
        for (std::size_t n = first; n < last; ++n) {
            const int64_t i = everyone_[n];
            set_scores(at, W, i);
            if (prefetch_weights_ && n + 1 < last) prefetch_first_weights(W, everyone_[n + 1]);
            make_feasible(i, at.list);
            sums.dual += gain(i, at.list.data(), at.list.data() + at.list.size());
            const RowStep<double> step = solve_exactly(at, i);
            sums.primal += exact_loss(i, step);
            sums.violation = std::max(sums.violation, step.violation);
        }
        return sums;
    }

    // Adds the losses of rows `first` to `last` - 1 of those that act at W times each factor of `shrinking`.
    void add_shrunk_losses(const T* W, std::size_t first, std::size_t last, std::vector<double>& sums) const {
        ExactRow at(X_, lanes_);
        for (std::size_t n = first; n < last; ++n) {
            const int64_t i = everyone_[n];
            set_scores(at, W, i);
            for (double& sum : sums) {
                for (int64_t m = 0; m < lanes_; ++m) at.scores.data()[m] *= shrinking;
                sum += exact_loss(i, solve_exactly(at, i));
            }
        }
    }

    void set_scores(ExactRow& at, const T* W, int64_t i) const {
        units<T>().scores_in_double(at.compress(X_.row(i)), W, lanes_, prefetch_weights_, at.scores.data());
    }

    RowStep<double> solve_exactly(ExactRow& at, int64_t i) const {
        std::fill(at.a.data(), at.a.data() + lanes_, 0.0);
        for (const ExactEntry& e : at.list) at.a.data()[e.label] = e.value;
        const RowProblem<double> problem{at.scores.data(),   at.a.data(),
                                         options_.classes,   padded<double>(options_.classes),
                                         example(i).label,   double(example(i).norm),
                                         exact_costs(i).own, std::numeric_limits<double>::infinity(),
                                         exact_costs(i).rest};
        return units<double>().solve_row[int(options_.formulation)](problem, at.work.data(), at.change.data());
    }

    // At full costs.
    double exact_loss(int64_t i, const RowStep<double>& step) const {
        return exact_costs(i).own * step.loss + exact_costs(i).rest * step.rest_loss;
    }

    // W as it is published: two classes have one function, which is rounded as one.
    void pair_up(T* W) const {
        if (options_.classes != 2) return;
        for (int64_t j = 0; j < X_.weight_rows(); ++j, W += lanes_) {
            W[1] = T((double(W[1]) - double(W[0])) / 2);
            W[0] = -W[1];
        }
    }

    double gain(int64_t i) const { return gain(i, coefficients_.begin(i), coefficients_.end(i)); }
    // The same with these coefficients.
    template <class SomeEntry>
    double gain(int64_t i, const SomeEntry* first, const SomeEntry* last) const {
        const bool counts_all = options_.formulation == Formulation::one_vs_rest;
        double all = 0;
        for (auto e = first; e != last; ++e) {
            if (counts_all)
                all += std::abs(double(e->value));
            else  // a product, for no branch can foretell where the label stands
                all -= double(e->value) * double(e->label != example(i).label);
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

    // Several sums side by side, because one alone waits for every addition.
    template <class Number>
    static double squared_norm(const AlignedArray<Number>& W) {
        constexpr int64_t lanes = lane_count<T>;
        double sums[lane_count<T>] = {};
        int64_t j = 0;
        for (; j + lanes <= W.size(); j += lanes)
            for (int64_t c = 0; c < lanes; ++c) sums[c] += double(W.data()[j + c]) * double(W.data()[j + c]);
        for (; j < W.size(); ++j) sums[0] += double(W.data()[j]) * double(W.data()[j]);
        return std::accumulate(sums, sums + lanes, 0.0);
    }

    Matrix<T> X_;
    SdmOptions options_;
    int64_t lanes_;
    Random random_;
    static constexpr bool rounds_costs = sizeof(T) < sizeof(double);
    LargeVector<Example> examples_;
    LargeVector<ExampleCosts> exact_costs_;  // if training rounds them
    Coefficients<T> coefficients_;
    std::vector<int32_t> everyone_;  // all examples that act
    VisitOrder order_;
    int64_t row_bytes_ = 0, stored_ = 0;
    std::size_t ahead_ = 1;
    bool shrunk_ = false, prefetch_weights_ = false;
    T ramp_ = 1, sigma_ = 1;
    double epsilon_ = 1;
    double constant_loss_ = 0, loss_at_zero_ = 0;
    Visitor main_;
};

}  // namespace larank
