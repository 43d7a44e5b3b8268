// The Sequential Dual Method for linear multiclass SVMs [sdm].
//
// The problem, its formulations and the visit to one row are in linear/sdmrows.hpp. Here is which rows are visited
// when. A full loop visits all examples in random order. With shrinking, loops over those with a free coefficient
// follow; an example whose violation falls below epsilon leaves them until the next full loop. Cooling lowers epsilon
// with the violations that full loops see, and where C_i |x_i|^2 is large, starts from smaller costs. Where shrunk
// loops keep using up their visits, coefficients are moved on from one full loop to the next, in the direction in which
// they came.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "linear/sdmthreads.hpp"

namespace larank {

template <class T>
class Sdm : public SdmThreads<T> {
    using Rows = SdmThreads<T>;

  public:
    Sdm(const Matrix<T>& X, const int32_t* labels, const double* costs, const double* rest_costs,
        const SdmOptions& options)
        : Rows(X, labels, costs, rest_costs, options) {
        if (Rows::weights_are_few()) average_ = AlignedArray<T>(main_.W.size());
        epsilon_ = options.cooling ? std::max(1.0, options.epsilon) : options.epsilon;
        if (options.cooling) ramp_ = first_ramp();
        cooling_rate_ = at_full_cost() ? 1.0 : 0.1;
        begin_loop(everyone_);
    }

    // Call it when all seeds are in.
    void start_from_seeds() {
        ramp_ = 1;
        rebuild_weights();
    }

    // Visits examples until about `work` multiply-adds are done or a loop ends. True once the violation stop holds.
    bool advance(int64_t work) {
        factor_ = 1;
        if (is_move_due_) move_on();
        Team team(Rows::parts());
        while (!converged_) {
            work = visit_rows(team, work);
            if (work <= 0) break;
            const bool goes_on = shrunk_ && team.parts() > 1;  // to start threads takes as long as a short loop
            end_loop();
            if (!goes_on) break;
        }
        return converged_;
    }

    // Everything from scratch and in double precision: W from the coefficients, their dual objective, then the primal
    // objective and the largest violation at W as it would be published. If an average of W was kept and its primal is
    // lower, it becomes the model. A model that is worse than w = 0 is shrunk.
    Objectives evaluate() {
        const double half_of_dual = 0.5 * rebuild_weights();
        Objectives at = terms_as_published(main_.W);
        at.dual -= half_of_dual;
        average_is_better_ = false;
        if (average_weight_ > 0) {
            const double primal = terms_as_published(average_).primal;
            average_is_better_ = primal < at.primal;
            at.primal = std::min(at.primal, primal);
        }
        factor_ = 1;
        if (at.primal > loss_at_zero_) at.primal = shrink_model();
        return at;
    }

    // What the last full loop saw: losses as they were when each example was visited, and whether at full costs.
    const Objectives& estimate() const { return estimate_; }
    bool estimate_is_at_full_cost() const { return estimate_is_at_full_cost_; }
    // The weights, [feature][class] without padding. The session ends here.
    AlignedArray<T> take_model() {
        AlignedArray<T> model = std::move(average_is_better_ ? average_ : main_.W);
        pair_up(model.data());
        if (factor_ != 1)
            for (int64_t j = 0; j < model.size(); ++j) model.data()[j] *= T(factor_);
        for (int64_t j = 0; j < X_.weight_rows(); ++j)
            std::copy(model.data() + j * lanes_, model.data() + j * lanes_ + options_.classes,
                      model.data() + j * options_.classes);
        return model;
    }

    // All that does not follow from the data and the options.
    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(random_, coefficients_, main_.W, average_, order_, main_.next);
        snapshot(shrunk_, converged_, average_is_better_, estimate_is_at_full_cost_, ramp_, ramp_loops_);
        snapshot(epsilon_, cooling_rate_, main_.seen.violation, main_.seen.violations, main_.seen.loss,
                 main_.seen.gain);
        snapshot(factor_, average_weight_, shrunk_visits_, main_.counters, estimate_.primal, estimate_.dual,
                 estimate_.violation);
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
    using Rows::at_full_cost, Rows::begin_loop, Rows::check, Rows::move_from, Rows::pair_up, Rows::scale_costs,
        Rows::squared_norm, Rows::sum_up, Rows::total_way, Rows::visit_rows;
    using Rows::X_, Rows::options_, Rows::lanes_, Rows::random_, Rows::coefficients_, Rows::everyone_, Rows::main_,
        Rows::order_, Rows::shrunk_, Rows::ramp_, Rows::epsilon_, Rows::constant_loss_, Rows::loss_at_zero_;

    void end_loop() {
        if (shrunk_)
            end_shrunk_loop();
        else
            end_full_loop();
        begin_loop(shrunk_ ? main_.next.take() : everyone_);
    }

    void end_full_loop() {
        ++main_.counters.full_loops;
        note_objectives();
        converged_ = at_full_cost() && main_.seen.violation < options_.epsilon;
        if (options_.cooling) {
            const double mean = main_.seen.violations / double(std::max<std::size_t>(everyone_.size(), 1));
            epsilon_ = std::max(options_.epsilon, std::min(epsilon_, cooling_rate_ * mean));
        }
        shrunk_ = !main_.next.is_empty();
        shrunk_visits_ = 0;
        if (sizeof(T) == sizeof(float) && main_.counters.full_loops % 10 == 0) rebuild_weights();  // rounding adds up
        is_move_due_ = is_slow();
        ++ramp_loops_;
        const bool gap_is_small = estimate_.primal - estimate_.dual < ramp_gap * estimate_.primal;
        if (!at_full_cost() && (gap_is_small || ramp_loops_ >= ramp_patience)) raise_ramp();
    }

    // The shrunk loops end when no example is left or their visits come to five full loops, [sdm] sec. 2.1; to six,
    // where several threads make them, for each is worth a little less; to two, where coefficients are moved on after
    // that.
    void end_shrunk_loop() {
        ++main_.counters.shrunk_loops;
        if (shrunk_visits_ == 0) begin_average();
        shrunk_visits_ += int64_t(order_.size());
        const int passes = is_slow() ? 2 : Rows::parts() > 1 ? 6 : 5;
        const bool is_over = shrunk_visits_ > passes * int64_t(everyone_.size());
        shrunk_ = !main_.next.is_empty() && !is_over;
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
            rebuild_weights();
            return;
        }
        dual_before_ = estimate_.dual;
        Coefficients<T> now = coefficients_;
        if (moves_ > 0) move_from(before_, T(moves_) / T(moves_ + 3));
        before_ = std::move(now);
        ++moves_;
    }

    // W swings about its mean within a phase, the more so the fewer features and the more examples there are; the
    // mean of the shrunk phase, weighted by visits, is then a better primal point than the last W.
    void average_weights(double visits) {
        average_weight_ += visits;
        const T share = T(visits / average_weight_);
        for (int64_t j = 0; j < main_.W.size(); ++j)
            average_.data()[j] += share * (main_.W.data()[j] - average_.data()[j]);
    }

    // One visit moves a coefficient by about 1 / A_i on its way to C_i. Where C_i A_i is large the way is long, so
    // training starts with costs lowered to `ramp_` C_i and raises them, coefficients with them, as the gap closes.
    T first_ramp() const {
        const double mean = total_way() / double(std::max<std::size_t>(everyone_.size(), 1));
        return mean > 2 ? T(std::min(0.01, 1 / mean)) : T(1);
    }

    void raise_ramp() {
        const T old = ramp_, factor = std::min(T(1) / old, T(ramp_factor));
        scale_costs(factor * old > T(0.99) ? T(1) : factor * old);
        for (int64_t j = 0; j < main_.W.size(); ++j) main_.W.data()[j] *= ramp_ / old;
        ramp_loops_ = 0;
        epsilon_ = std::max(1.0, options_.epsilon);
        shrunk_ = false;
    }

    // Sets W from the coefficients, and returns |W|^2 before it is rounded.
    double rebuild_weights() {
        if constexpr (sizeof(T) == sizeof(double)) {
            main_.W.clear();
            sum_up(main_.W, lanes_);
            return squared_norm(main_.W);
        } else {
            const int64_t classes = options_.classes;  // without the padding, which would cost time
            AlignedArray<double> W(X_.weight_rows() * classes);
            sum_up(W, classes);
            for (int64_t j = 0; j < X_.weight_rows(); ++j)
                std::transform(W.data() + j * classes, W.data() + (j + 1) * classes, main_.W.data() + j * lanes_,
                               [](double w) { return T(w); });
            return squared_norm(W);
        }
    }

    // The primal objective of W, and the part of the dual objective that is linear in the coefficients.
    Objectives terms_as_published(const AlignedArray<T>& W) {
        if (options_.classes == 2) {
            AlignedArray<T> paired = W;
            pair_up(paired.data());
            return terms_of(paired);
        }
        return terms_of(W);
    }
    Objectives terms_of(const AlignedArray<T>& W) {
        return Rows::add_terms(W, {0.5 * squared_norm(W) + constant_loss_, constant_loss_, 0});
    }

    // Finds the best of some factors, and returns the primal objective there. Classes stay the same as long as a factor
    // is as good as 0, up to rounding.
    double shrink_model() {
        AlignedArray<T> W = average_is_better_ ? average_ : main_.W;
        pair_up(W.data());
        std::vector<double> primals(most_shrinkings, constant_loss_);
        Rows::add_shrunk_losses(W.data(), 0, Rows::everyone_.size(), primals);
        double half = 0.5 * squared_norm(W), factor = 1, best = loss_at_zero_ * (1 + shrinking_rounding);
        factor_ = 0;
        for (const double losses : primals) {
            half *= shrinking * shrinking;
            factor *= shrinking;
            if (half + losses <= best) best = half + losses, factor_ = factor;
        }
        return factor_ == 0 ? loss_at_zero_ : best;
    }

    void note_objectives() {
        estimate_is_at_full_cost_ = at_full_cost();
        const double half = 0.5 * squared_norm(main_.W);
        const double constant = double(ramp_) * constant_loss_;
        estimate_ = {half + main_.seen.loss + constant, main_.seen.gain - half + constant, main_.seen.violation};
    }

    static constexpr double ramp_factor = 3.2, ramp_gap = 0.2;
    static constexpr int ramp_patience = 4;  // full loops per stage

    AlignedArray<T> average_{0};
    bool converged_ = false, average_is_better_ = false, estimate_is_at_full_cost_ = false;
    int ramp_loops_ = 0;
    double cooling_rate_ = 1;  // epsilon falls to this share of the mean violation
    double average_weight_ = 0;
    double factor_ = 1;  // by which the model is shrunk
    int64_t shrunk_visits_ = 0;
    Coefficients<T> before_{0};  // those after the full loop before the last, where they are moved on
    int patience_ = 15, moves_ = 0;
    bool is_move_due_ = false;
    double dual_before_ = 0;
    Objectives estimate_;
};

}  // namespace larank
