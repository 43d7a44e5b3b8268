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
        main_.journal = &journal_of_round_;
    }
    SdmPart(const SdmPart&) = delete;
    SdmPart& operator=(const SdmPart&) = delete;

    using Rows::scale_costs, Rows::total_way;
    // Rows of the loop that the next visit belongs to.
    int64_t loop_size() const { return order_.is_over() && shrunk_ ? main_.next.size() : int64_t(order_.size()); }
    int64_t rows_that_act() const { return int64_t(everyone_.size()); }
    int64_t stored() const { return Rows::stored_; }
    int64_t lanes() const { return lanes_; }
    int64_t weight_values() const { return main_.W.size(); }
    double constant_loss() const { return Rows::constant_loss_; }
    double loss_at_zero() const { return Rows::loss_at_zero_; }

    // Its order of visits follows from the seed. Shrunk loops have the epsilon that `cooling` times the mean violation
    // of the full loop is, if that is smaller and not below `least`. Coefficients first go on in the direction in which
    // they came since the last phase began, by the share `momentum` of that way, each row projected on its constraints
    // (below 0: nothing is kept to go on from); that is a part of the change of the first round, which is to begin at W
    // + momentum (W - W of the last phase).
    void begin_phase(uint64_t seed, double epsilon, double cooling, double least, double momentum) {
        Rows::random_ = Random(seed);
        Rows::epsilon_ = epsilon;
        cooling_ = cooling;
        least_epsilon_ = least;
        journal_of_round_.clear();
        moved_ = AlignedArray<T>(0);
        is_first_round_ = true;
        if (momentum >= 0) move(momentum);
        shrunk_ = false;
        loop_ = {};
        begin_loop(everyone_);
        if (everyone_.empty()) end_full_loop();
    }

    // Up to `visits` of them from W on. The next round may begin as soon as `take` was called, or without it where the
    // whole step is taken.
    PartRound visit(const T* W, double sigma, int64_t visits) {
        if (!is_first_round_) journal_of_round_.clear(), moved_ = AlignedArray<T>(0);
        is_first_round_ = false;
        Rows::sigma_ = T(sigma);
        std::copy(W, W + main_.W.size(), main_.W.data());
        PartRound round;
        while (round.visits < visits) {
            if (order_.is_over() && !begin_next_loop()) break;
            const std::size_t first = main_.position = order_.position();
            Rows::visit_until(main_, std::min(order_.size(), first + std::size_t(visits - round.visits)), no_limit);
            order_.go_on_from(main_.position);
            round.visits += int64_t(main_.position - first);
        }
        if (order_.is_over() && !shrunk_) end_full_loop();
        round.full_loop_is_over = shrunk_;
        round.is_idle = shrunk_ && order_.is_over() && main_.next.is_empty();
        round.gain_change = gain_change();
        return round;
    }
    const PartLoop& loop() const { return loop_; }

    // Adds D of the last round, which began at W, to rows `first` to `last` - 1 of `total`.
    void add_change(const T* W, int64_t first, int64_t last, T* total) const {
        const T share = T(1) / Rows::sigma_;
        const T* const V = main_.W.data();
        for (int64_t j = first * lanes_; j < last * lanes_; ++j) total[j] += share * (V[j] - W[j]);
        if (!moved_.size()) return;
        for (int64_t j = first * lanes_; j < last * lanes_; ++j) total[j] += moved_.data()[j];
    }

    // Of the last change of the coefficients, takes over this share.
    void take(double step) {
        if (step != 1)
            journal_of_round_.each(
                [&](int64_t i, const Entry* before, int64_t count) { Rows::go_to(main_, i, before, count, T(step)); });
        journal_of_round_.clear();
    }

    // X'a over the rows of this part, [feature][lane].
    void add_weights(double* W) const { Rows::sum_into(W, Rows::lanes_, 0, Rows::X_.rows); }

    // At full costs.
    PartTerms terms(const T* W) const {
        const double constant = Rows::constant_loss_;
        const Objectives sums = Rows::terms(W, 0, everyone_.size(), {constant, constant, 0});
        return {sums.primal, sums.dual, sums.violation};
    }
    // The losses at W times the first powers of `shrinking`.
    std::vector<double> shrunk_losses(const T* W) const {
        std::vector<double> sums(most_shrinkings, Rows::constant_loss_);
        Rows::add_shrunk_losses(W, 0, everyone_.size(), sums);
        return sums;
    }

    const SdmCounters& counters() const { return main_.counters; }

  private:
    using Entry = typename Coefficients<T>::Entry;
    using Rows::begin_loop;
    using Rows::lanes_, Rows::coefficients_, Rows::everyone_, Rows::main_, Rows::order_, Rows::shrunk_, Rows::ramp_;
    static constexpr int64_t no_limit = std::numeric_limits<int64_t>::max();

    void move(double momentum) {
        Coefficients<T> now = coefficients_;
        if (momentum > 0 && before_.examples() == now.examples()) {  // a part that was made anew has nothing before
            main_.W.clear();
            Rows::sigma_ = 1;
            Rows::move_from(before_, T(momentum));
            moved_ = main_.W;
        }
        before_ = std::move(now);
    }

    // False where the phase has no more rows to visit.
    bool begin_next_loop() {
        if (!shrunk_) end_full_loop();
        if (main_.next.is_empty()) return false;
        ++main_.counters.shrunk_loops;
        begin_loop(main_.next.take());
        return true;
    }

    void end_full_loop() {
        ++main_.counters.full_loops;
        loop_ = {main_.seen.loss, main_.seen.violations, main_.seen.violation};
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

    CoefficientJournal<T> journal_of_round_;
    Coefficients<T> before_{0};  // as the last phase began, before they moved
    AlignedArray<T> moved_{0};   // D of the move alone
    bool is_first_round_ = false;
    PartLoop loop_;
    double cooling_ = 1, least_epsilon_ = 0;
};

}  // namespace larank
