// A part of the rows of a linear multiclass SVM that is trained in rounds with other parts: CoCoA+ with the visits of
// the Sequential Dual Method as its local solver [cocoa+].
//
// W is that of all parts. A round holds it fixed for the others and maximises, from a on, part p's subproblem
//   max_d  sum_i gain(a_i + d_i, y_i) - <W, D> - sigma/2 |D|^2,   D = sum_i x_i d_i'  over the rows i of p,
// by visits that see V = W + sigma D. Whoever adds up the D of all parts says how far to go: coefficients become
// a + step d, which is feasible for steps up to 1. A phase is a full loop and shrunk loops after it, as in
// linear/sdm.hpp; it may last many rounds, or a round a whole phase. Epsilon and the share of the costs are set from
// outside, where all parts are seen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "linear/sdmrows.hpp"

namespace larank {

struct PartRound {
    int64_t visits = 0;      // made
    double gain_change = 0;  // of the linear part of the dual, by the whole change
    bool full_loop_is_over = false;
    bool is_idle = false;  // no row is left to visit in this phase
};

// What the full loop of this phase saw: losses and violations as they were when each row was visited.
struct PartLoop {
    double losses = 0, violations = 0, violation = 0;
};

// At a given W: the losses of all rows, the linear part of the dual and the largest violation.
struct PartTerms {
    double losses = 0, gain = 0, violation = 0;
};

template <class T>
class SdmPart : public SdmRows<T> {
    using Rows = SdmRows<T>;

  public:
    SdmPart(const Matrix<T>& X, const int32_t* labels, const double* costs, const double* rest_costs,
            const SdmOptions& options)
        : Rows(X, labels, costs, rest_costs, options), journal_of_round_(X.rows) {
        Rows::journal_ = &journal_of_round_;
    }
    SdmPart(const SdmPart&) = delete;
    SdmPart& operator=(const SdmPart&) = delete;

    using Rows::scale_costs, Rows::total_way;
    int64_t rows_that_act() const { return int64_t(everyone_.size()); }
    int64_t stored() const { return Rows::stored_; }
    int64_t lanes() const { return lanes_; }
    int64_t weight_values() const { return W_.size(); }
    double constant_loss() const { return Rows::constant_loss_; }

    // Its order of visits follows from the seed. Shrunk loops have the epsilon that `cooling` times the mean violation
    // of the full loop is, if that is smaller and not below `least`.
    void begin_phase(uint64_t seed, double epsilon, double cooling, double least) {
        Rows::random_ = Random(seed);
        Rows::epsilon_ = epsilon;
        cooling_ = cooling;
        least_epsilon_ = least;
        shrunk_ = false;
        loop_ = {};
        begin_loop(everyone_);
        if (everyone_.empty()) end_full_loop();
    }

    // Up to `visits` of them from W on. The next round may begin as soon as `take` was called, or without it where the
    // whole step is taken.
    PartRound visit(const T* W, double sigma, int64_t visits) {
        begin_round(W, sigma);
        PartRound round;
        while (round.visits < visits) {
            if (order_.is_over() && !begin_next_loop()) break;
            if (order_.is_over()) continue;
            prefetch_ahead();
            Rows::visit(order_.next());
            ++round.visits;
        }
        if (order_.is_over() && !shrunk_) end_full_loop();
        round.full_loop_is_over = shrunk_;
        round.is_idle = shrunk_ && order_.is_over() && next_.is_empty();
        round.gain_change = gain_change();
        return round;
    }
    const PartLoop& loop() const { return loop_; }

    // Adds D of the last round, which began at W, to rows `first` to `last` - 1 of `total`.
    void add_change(const T* W, int64_t first, int64_t last, T* total) const {
        const T share = T(1) / Rows::sigma_;
        const T* const V = W_.data();
        for (int64_t j = first * lanes_; j < last * lanes_; ++j) total[j] += share * (V[j] - W[j]);
    }

    // Of the last change of the coefficients, takes over this share.
    void take(double step) {
        if (step != 1)
            journal_of_round_.each(
                [&](int64_t i, const Entry* before, int64_t count) { go_to(i, before, count, T(step)); });
        journal_of_round_.clear();
    }

    // Coefficients go on in the direction in which they came since the last call, by so much of that way; those before
    // are kept. The change counts as that of a round that began at W.
    PartRound move_on(const T* W, double momentum) {
        begin_round(W, 1);
        Coefficients<T> now = coefficients_;
        const int64_t visits = counters_.visits;
        if (momentum > 0) Rows::move_from(before_, T(momentum));
        before_ = std::move(now);
        return {counters_.visits - visits, gain_change(), true, false};
    }
    // To where they were before they moved on.
    void move_back() {
        journal_of_round_.clear();
        coefficients_ = before_;
    }

    // X'a over the rows of this part, [feature][lane].
    void add_weights(double* W) const { Rows::sum_into(W); }

    // At full costs.
    PartTerms terms(const T* W) {
        const T ramp = std::exchange(ramp_, T(1));
        std::copy(W, W + W_.size(), W_.data());
        PartTerms at{Rows::constant_loss_, Rows::constant_loss_, 0};
        for (const int32_t i : everyone_) {
            at.gain += Rows::gain(i);
            const RowStep<T> step = Rows::look(i, std::numeric_limits<T>::infinity());
            at.losses += Rows::loss(i, step);
            at.violation = std::max(at.violation, double(step.violation));
        }
        ramp_ = ramp;
        return at;
    }

    const SdmCounters& counters() const { return counters_; }

  private:
    using Entry = typename Coefficients<T>::Entry;
    using Rows::lanes_, Rows::coefficients_, Rows::W_, Rows::everyone_, Rows::next_, Rows::order_, Rows::shrunk_,
        Rows::ramp_, Rows::counters_;
    using Rows::prefetch_ahead, Rows::begin_loop;

    void begin_round(const T* W, double sigma) {
        journal_of_round_.clear();
        Rows::sigma_ = T(sigma);
        std::copy(W, W + W_.size(), W_.data());
    }

    // False where the phase has no more rows to visit.
    bool begin_next_loop() {
        if (!shrunk_) end_full_loop();
        if (next_.is_empty()) return false;
        ++counters_.shrunk_loops;
        begin_loop(next_.take());
        return true;
    }

    void end_full_loop() {
        ++counters_.full_loops;
        loop_ = {Rows::loop_loss_, Rows::loop_violations_, Rows::loop_violation_};
        shrunk_ = true;
        const double mean = loop_.violations / double(std::max<std::size_t>(everyone_.size(), 1));
        Rows::epsilon_ = std::max(least_epsilon_, std::min(Rows::epsilon_, cooling_ * mean));
    }

    double gain_change() const {
        double change = 0;
        journal_of_round_.each([&](int64_t i, const Entry* before, int64_t count) {
            change += Rows::gain(i) - Rows::gain(i, before, before + count);
        });
        return change;
    }

    // a_i becomes before + step (a_i - before), class by class.
    void go_to(int64_t i, const Entry* before, int64_t count, T step) {
        merged_.assign(before, before + count);
        for (Entry& entry : merged_) {
            const Entry* const now = std::find_if(coefficients_.begin(i), coefficients_.end(i),
                                                  [&](const Entry& e) { return e.label == entry.label; });
            const T target = now == coefficients_.end(i) ? T(0) : now->value;
            entry.value += step * (target - entry.value);
        }
        for (auto e = coefficients_.begin(i); e != coefficients_.end(i); ++e)
            if (std::none_of(before, before + count, [&](const Entry& b) { return b.label == e->label; }))
                merged_.push_back({step * e->value, e->label});
        merged_.erase(std::remove_if(merged_.begin(), merged_.end(), [](const Entry& e) { return e.value == 0; }),
                      merged_.end());
        coefficients_.assign(i, merged_.data(), int64_t(merged_.size()));
    }

    CoefficientJournal<T> journal_of_round_;
    Coefficients<T> before_{0};
    std::vector<Entry> merged_;
    PartLoop loop_;
    double cooling_ = 1, least_epsilon_ = 0;
};

}  // namespace larank
