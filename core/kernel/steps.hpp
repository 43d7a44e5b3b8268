// The steps that the kernel solvers of the multiclass dual take, one pattern at a time.
//
//   primal  min_w 1/2 |w|^2 + sum_i C_i xi_i, with the excess m_i(y) = Delta(y_i, y) + S(x_i, y) - S(x_i, y_i):
//           Crammer-Singer xi_i = max_y m_i(y), [larank] (3); Weston-Watkins xi_i = sum_y max(0, m_i(y)), [sdm] (14)
//   dual    max_beta sum_iy (1 - Delta(y_i, y)) beta_i^y - 1/2 sum_ijy beta_i^y beta_j^y k(x_i, x_j)
//           subject to sum_y beta_i^y = 0, beta_i^y <= 0 for y other than y_i, and
//           Crammer-Singer beta_i^{y_i} <= C_i, [larank] (7); Weston-Watkins -beta_i^y <= C_i, [sdm] (16)
//   gradient  g_i(y) = 1 - Delta(y_i, y) - S(x_i, y), [larank] (8); with the plain margin 1 - Delta = delta(y, y_i)
//
// A step (SMOSTEP, [larank] algorithm 1) moves two coefficients of one pattern against each other. For Weston-Watkins
// one of the two is the label's, since the others have nothing in common. PROCESSNEW (algorithm 2) steps on an example
// that is no pattern yet, PROCESSOLD (3) on a pattern and all classes, OPTIMIZE (4) on a pattern and its own support
// vectors.
//
// `Machine` keeps the support vectors and knows scores and gradients: KernelMachine, LinearMachine.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "kernel/notfinite.hpp"
#include "kernel/patternrows.hpp"
#include "kernel/schedule.hpp"
#include "kernel/support.hpp"
#include "memory/prefetch.hpp"
#include "simd/units.hpp"

namespace larank {

struct StepCounters {
    std::array<int64_t, operation_count> operations{};
    int64_t steps = 0;
    int64_t finishing_steps = 0;  // of the last finish
    int64_t argmax = 0;
    int64_t forgotten = 0;         // patterns that were let go
    double selection_seconds = 0;  // scores and the choice of y+ and y-, from a sample of the operations
    double step_seconds = 0;

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(operations, steps, finishing_steps, argmax, forgotten, selection_seconds, step_seconds);
    }
};

template <class Machine>
class Steps {
  public:
    template <class... Arguments>
    explicit Steps(double tau, Arguments... arguments) : tau_(tau), machine_(arguments...) {}

    Machine& machine() { return machine_; }
    const Machine& machine() const { return machine_; }

    // 1 - Delta(y, y'), row by row; empty for the plain margin. Classes come in the order of their arrival.
    void set_margins(std::vector<double> margins, int64_t classes) {
        margins_ = std::move(margins);
        margin_classes_ = classes;
    }
    // What is feasible for Crammer-Singer is for Weston-Watkins, so the change is one way.
    void set_formulation(Formulation formulation) { formulation_ = formulation; }
    void set_tau(double tau) { tau_ = tau; }
    double tau() const { return tau_; }
    void forget_loss() { loss_ = 0; }
    // Whether support vectors stay when their coefficient becomes zero.
    void set_finishing(bool is_finishing) { is_finishing_ = is_finishing; }

    void feed(const Examples& examples) {
        machine_.table().forget_newborn();
        examples_ = examples;
    }

    // What the operations since then have gained and cost.
    void begin_operation() {
        increase_ = 0, work_ = 1;
        is_timed_ = ++performed_ % timed_one_in == 0;
    }
    void end_operation(Operation operation) { ++counters_.operations[std::size_t(operation)]; }
    double increase() const { return increase_; }
    int64_t work() const { return work_; }

    // `joins_anyway` makes it a pattern even if there is no step to take.
    void process_new(int64_t b, bool joins_anyway = false) {  // [larank] algorithm 2
        const int32_t label = examples_.labels[b];
        while (machine_.classes() <= label) machine_.add_class();
        const int32_t present = machine_.table().slot_of(examples_.ids[b]);
        if (present >= 0) {
            loss_ += loss_of(present);
            return;
        }
        const Choice choice = choose_new(b, label);
        loss_ += examples_.costs[b] * loss_of_new(label, choice);
        if ((!(choice.violation() > tau_) && !joins_anyway) || examples_.costs[b] <= 0 || choice.y_minus < 0) return;
        const Timer timer(is_timed_, counters_.step_seconds);
        const int32_t slot =
            machine_.add_pattern(b, examples_.ids[b], label, examples_.costs[b], examples_.diagonal[b]);
        machine_.add_vector(slot, label, scores_[std::size_t(label)]);
        machine_.add_vector(slot, choice.y_minus, scores_[std::size_t(choice.y_minus)]);
        if (choice.violation() > tau_) smo_step(slot, choice);
    }

    // The following two are false, with nothing changed, where the pattern's row of kernel values must be brought
    // first.
    bool process_old(int32_t slot) {  // [larank] algorithm 3
        if (!machine_.has_row(slot)) return false;
        const Choice choice = choose_old(slot);
        if (!(choice.violation() > tau_)) return true;
        const Timer timer(is_timed_, counters_.step_seconds);
        if (!machine_.table()[slot].find(choice.y_minus))
            machine_.add_vector(slot, choice.y_minus, scores_[std::size_t(choice.y_minus)]);
        smo_step(slot, choice);
        return true;
    }

    bool optimize(int32_t slot) {  // [larank] algorithm 4
        const Choice choice = choose_among_vectors(slot);
        if (choice.violation() > tau_ && !machine_.can_step(slot)) return false;
        work_ += own_work_;
        if (!(choice.violation() > tau_)) return true;
        const Timer timer(is_timed_, counters_.step_seconds);
        smo_step(slot, choice);
        return true;
    }

    // The pattern leaves, and with it what it adds to the function, as steps of -beta_i^y would have it. What is left
    // is feasible, and the dual changes by a known amount.
    void let_go(int32_t slot) {
        machine_.require(slot);
        Pattern& p = machine_.table()[slot];
        own_scores_.resize(p.vectors.size());
        machine_.scores_of_vectors(slot, own_scores_.data());
        for (std::size_t n = 0; n < p.vectors.size(); ++n) {
            SupportVector& v = p.vectors[n];
            const double of_label = margin(p.label, v.label);
            dual_ -= v.beta * (of_label - own_scores_[n] + v.beta * p.diagonal / 2);
            linear_ -= v.beta * of_label;
            machine_.set_coefficient(slot, v, 0);
        }
        remove(slot);
    }
    // The same for machines of weights, which keep what it adds to them.
    void retire(int32_t slot) {
        for (SupportVector& v : machine_.table()[slot].vectors) v.beta = 0;
        remove(slot);
    }
    // The pattern leaves, and others inherit these shares of its coefficients. As it stays in the problem with the
    // coefficients it had, the linear part of the dual does not change; |w|^2 does, by a known amount.
    void hand_over(int32_t slot, const std::vector<int32_t>& heirs, const std::vector<double>& shares) {
        machine_.require(slot);
        Pattern& p = machine_.table()[slot];
        std::vector<SupportVector> left = p.vectors;
        machine_.begin_leaving(slot);
        own_scores_.resize(left.size());
        machine_.scores_of_vectors(slot, own_scores_.data());
        for (std::size_t n = 0; n < left.size(); ++n) {
            left[n].beta = machine_.coefficient(left[n]);
            dual_ += left[n].beta * (own_scores_[n] - left[n].beta * p.diagonal / 2);
            machine_.clear_coefficient(slot, p.vectors[n]);
        }
        remove(slot);
        for (std::size_t h = 0; h < heirs.size(); ++h) inherit(heirs[h], left, shares[h]);
    }

    // Of optimality, by the pattern's own support vectors.
    double violation(int32_t slot) { return choose_among_vectors(slot).violation(); }

    // Asks for the kernel values that an OPTIMIZE on this pattern will read, if it has something to do as things stand.
    void prefetch_step(int32_t slot) {
        if (!machine_.keeps_sets()) return;
        const Choice choice = choose_among_vectors(slot);
        if (choice.violation() > tau_) machine_.prefetch_kernel_values(slot, choice.y_plus, choice.y_minus);
    }

    // Whether an operation on this pattern needs a row that is not here.
    bool lacks_row(int32_t slot, Operation operation) {
        if (operation == Operation::process_old) return !machine_.has_row(slot);
        return choose_among_vectors(slot).violation() > tau_ && !machine_.can_step(slot);
    }

    // A pattern of a saved model, with its support vectors; slots are given out in the order of the calls.
    template <class Row>
    void restore(Row row, const SupportArrays& saved, std::size_t n) {
        scores_.resize(std::size_t(machine_.classes()));
        const int32_t slot = machine_.restore_pattern(row, saved.ids[n], saved.labels[n], saved.costs[n],
                                                      saved.diagonal[n], scores_.data());
        for (std::size_t e = std::size_t(saved.starts[n]); e < std::size_t(saved.starts[n + 1]); ++e) {
            machine_.add_vector(slot, saved.columns[e], scores_[std::size_t(saved.columns[e])]);
            machine_.set_coefficient(slot, machine_.table()[slot].vectors.back(), saved.coefficients[e]);
        }
    }

    struct Objective {
        double dual = 0, linear = 0, loss = 0;
    };
    Objective objective() const { return {dual_, linear_, loss_}; }
    void set_objective(const Objective& at) { dual_ = at.dual, linear_ = at.linear, loss_ = at.loss; }
    // The same from the coefficients and scores as they stand, but for the loss.
    void sum_up_objective() {
        linear_ = 0;
        double norm = 0;
        for (const int32_t slot : machine_.table().present()) {
            const Pattern& p = machine_.table()[slot];
            own_scores_.resize(p.vectors.size());
            machine_.scores_of_vectors(slot, own_scores_.data());
            for (std::size_t n = 0; n < p.vectors.size(); ++n) {
                linear_ += margin(p.label, p.vectors[n].label) * p.vectors[n].beta;
                norm += own_scores_[n] * p.vectors[n].beta;
            }
        }
        dual_ = linear_ - norm / 2;
    }
    // All but margins and formulation, which are the caller's.
    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(tau_, machine_, performed_, dual_, linear_, loss_, counters_);
    }

    // The finish was undone and does not count.
    void forget_finishing_steps() { counters_.finishing_steps = 0; }
    void swap_finishing_steps(int64_t& steps) { std::swap(counters_.finishing_steps, steps); }
    double dual() const { return dual_; }
    double half_squared_norm() const { return linear_ - dual_; }
    double loss() const { return loss_; }  // sum of C_i xi_i since `forget_loss`, each at the time of its visit
    const StepCounters& counters() const { return counters_; }

  private:
    static constexpr double kappa = 1e-12;  // relative to C_i, [larank] section 3.4
    static constexpr int64_t timed_one_in = 16;

    // The classes of the feasible direction with the highest gradient.
    struct Choice {
        int32_t y_plus = -1, y_minus = -1;
        double best = -std::numeric_limits<double>::infinity();
        double worst = std::numeric_limits<double>::infinity();
        double violation() const { return best - worst; }
    };

    Choice choose_new(int64_t b, int32_t label) {
        const Timer timer(is_timed_, counters_.selection_seconds);
        scores_.resize(std::size_t(machine_.classes()));
        work_ += machine_.scores_of_new(b, scores_.data());
        ++counters_.argmax;
        Choice choice;
        choice.y_plus = label;
        choice.best = gradient(label, label);
        for (int32_t y = 0; y < machine_.classes(); ++y)
            if (y != label && gradient(label, y) < choice.worst) choice.worst = gradient(label, y), choice.y_minus = y;
        return choice;
    }

    Choice choose_old(int32_t slot) {
        const Timer timer(is_timed_, counters_.selection_seconds);
        Choice choice = choose_among_vectors(slot);
        scores_.resize(std::size_t(machine_.classes()));
        work_ += own_work_ + machine_.scores_of_old(slot, scores_.data());
        ++counters_.argmax;
        Pattern& p = machine_.table()[slot];
        for (int32_t y = 0; y < machine_.classes(); ++y) {
            const double g = gradient(p.label, y);
            const double best = is_paired() ? gradient(p.label, p.label) : choice.best;
            if (best - g <= choice.violation() || p.find(y)) continue;
            choice.worst = g, choice.y_minus = y;
            if (is_paired()) choice.best = best, choice.y_plus = p.label;
        }
        return choice;
    }

    Choice choose_among_vectors(int32_t slot) {
        const Pattern& p = machine_.table()[slot];
        own_scores_.resize(p.vectors.size());
        own_work_ = machine_.scores_of_vectors(slot, own_scores_.data());
        return is_paired() ? choose_with_label(p) : choose_any(p);
    }

    Choice choose_any(const Pattern& p) const {
        Choice choice;
        for (std::size_t n = 0; n < p.vectors.size(); ++n) {
            const SupportVector& v = p.vectors[n];
            const double g = margin(p.label, v.label) - own_scores_[n];
            const bool can_grow = v.label == p.label ? v.beta <= p.cost * (1 - kappa) : v.beta < 0;
            if (can_grow && g > choice.best) choice.best = g, choice.y_plus = v.label;
            if (g < choice.worst) choice.worst = g, choice.y_minus = v.label;
        }
        return choice;
    }

    // Weston-Watkins: the label against one other class, up or down, [sdm] (18).
    Choice choose_with_label(const Pattern& p) const {
        Choice choice{p.label, p.label, 0, 0};
        const double own = own_gradient(p);
        for (std::size_t n = 0; n < p.vectors.size(); ++n) {
            const SupportVector& v = p.vectors[n];
            if (v.label == p.label) continue;
            const double g = margin(p.label, v.label) - own_scores_[n];
            if (own - g > choice.violation() && -v.beta < p.cost * (1 - kappa)) choice = {p.label, v.label, own, g};
            if (g - own > choice.violation() && v.beta < 0) choice = {v.label, p.label, g, own};
        }
        return choice;
    }

    double own_gradient(const Pattern& p) const {
        for (std::size_t n = 0; n < p.vectors.size(); ++n)
            if (p.vectors[n].label == p.label) return margin(p.label, p.label) - own_scores_[n];
        return 0;
    }

    double loss_of_new(int32_t label, const Choice& choice) const {
        if (!is_paired()) return std::max(0.0, choice.violation());
        double loss = 0;
        for (int32_t y = 0; y < machine_.classes(); ++y)
            if (y != label) loss += std::max(0.0, choice.best - gradient(label, y));
        return loss;
    }

    // C_i xi_i as far as the pattern's own support vectors tell.
    double loss_of(int32_t slot) {
        const Pattern& p = machine_.table()[slot];
        own_scores_.resize(p.vectors.size());
        machine_.scores_of_vectors(slot, own_scores_.data());
        const double own = own_gradient(p);
        double largest = 0, sum = 0;
        for (std::size_t n = 0; n < p.vectors.size(); ++n) {
            const double excess = own - (margin(p.label, p.vectors[n].label) - own_scores_[n]);
            largest = std::max(largest, excess);
            sum += std::max(0.0, excess);
        }
        return p.cost * (is_paired() ? sum : largest);
    }

    void smo_step(int32_t slot, const Choice& choice) {  // [larank] algorithm 1
        Pattern& p = machine_.table()[slot];
        SupportVector *const raising = p.find(choice.y_plus), *const lowering = p.find(choice.y_minus);
        if (!raising || !lowering || raising == lowering) throw NotFinite();  // no gradient was above another
        SupportVector &up = *raising, &down = *lowering;
        const double room = room_of(p, up, down);
        const double unconstrained = p.diagonal > 0 ? choice.violation() / (2 * p.diagonal) : room;  // eq. (10)
        const double lambda = std::min(unconstrained, room);                                         // eq. (11)
        const double gain = lambda * (choice.violation() - lambda * p.diagonal);
        dual_ += gain;
        increase_ += gain;
        linear_ += lambda * (margin(p.label, up.label) - margin(p.label, down.label));
        ++(is_finishing_ ? counters_.finishing_steps : counters_.steps);

        double raised = up.beta + lambda, lowered = down.beta - lambda;
        if (lambda == room) settle_at_bound(p, up, raised, lowered);
        // The label's coefficient is the sum of the others, so that all vanish together in spite of rounding.
        if (up.label == p.label)
            raised = -(lowered + sum_of_others(p, up, down));
        else if (down.label == p.label)
            lowered = -(raised + sum_of_others(p, up, down));
        if (!is_paired() && up.label == p.label) raised = std::min(p.cost, raised);
        work_ += machine_.set_coefficient(slot, up, raised);
        work_ += machine_.set_coefficient(slot, down, lowered);
        if ((up.beta == 0 || down.beta == 0) && !is_finishing_) machine_.remove_zeros(slot);
        machine_.after_step(slot);
    }

    void remove(int32_t slot) {
        machine_.remove_zeros(slot);
        machine_.after_step(slot);
        ++counters_.forgotten;
    }

    void inherit(int32_t slot, const std::vector<SupportVector>& left, double share) {
        machine_.require(slot);
        Pattern& p = machine_.table()[slot];
        scores_.resize(std::size_t(machine_.classes()));
        const auto is_lacking = [&](const SupportVector& v) { return !p.find(v.label); };
        if (std::any_of(left.begin(), left.end(), is_lacking)) machine_.scores_of_old(slot, scores_.data());
        for (const SupportVector& v : left)
            if (is_lacking(v)) machine_.add_vector(slot, v.label, scores_[std::size_t(v.label)]);
        own_scores_.resize(p.vectors.size());
        machine_.scores_of_vectors(slot, own_scores_.data());
        for (const SupportVector& v : left) {
            SupportVector& own = *p.find(v.label);
            const double change = share * v.beta;
            dual_ -= change * (own_scores_[std::size_t(&own - p.vectors.data())] + change * p.diagonal / 2);
            machine_.inherit_coefficient(slot, own, change);
        }
        machine_.inherit_average(slot, share);
        machine_.remove_zeros(slot);
        machine_.after_step(slot);
    }

    // How far the two coefficients can move.
    double room_of(const Pattern& p, const SupportVector& up, const SupportVector& down) const {
        if (up.label != p.label) return -up.beta;
        return is_paired() ? p.cost + down.beta : p.cost - up.beta;
    }
    void settle_at_bound(const Pattern& p, const SupportVector& up, double& raised, double& lowered) const {
        if (up.label != p.label)
            raised = 0;
        else if (is_paired())
            lowered = -p.cost;
        else
            raised = p.cost;
    }

    static double sum_of_others(const Pattern& p, const SupportVector& up, const SupportVector& down) {
        double sum = 0;
        for (const SupportVector& v : p.vectors)
            if (&v != &up && &v != &down) sum += v.beta;
        return sum;
    }

    bool is_paired() const { return formulation_ == Formulation::weston_watkins; }
    double margin(int32_t label, int32_t y) const {
        if (margins_.empty()) return label == y ? 1.0 : 0.0;
        return margins_[std::size_t(label * margin_classes_ + y)];
    }
    double gradient(int32_t label, int32_t y) const { return margin(label, y) - scores_[std::size_t(y)]; }  // eq. (8)

    // Adds the time it lives, in one of `timed_one_in` operations and that many times.
    class Timer {
      public:
        Timer(bool is_on, double& seconds) : seconds_(is_on ? &seconds : nullptr) {
            if (seconds_) began_ = Clock::now();
        }
        ~Timer() {
            if (seconds_) *seconds_ += timed_one_in * std::chrono::duration<double>(Clock::now() - began_).count();
        }
        Timer(const Timer&) = delete;
        Timer& operator=(const Timer&) = delete;

      private:
        using Clock = std::chrono::steady_clock;
        double* seconds_;
        Clock::time_point began_;
    };

    double tau_;  // smaller violations are left alone, [larank] section 3.4
    Machine machine_;
    Formulation formulation_ = Formulation::crammer_singer;
    std::vector<double> margins_;
    int64_t margin_classes_ = 0;
    Examples examples_;
    bool is_finishing_ = false, is_timed_ = false;
    int64_t performed_ = 0;
    double increase_ = 0;
    int64_t work_ = 1, own_work_ = 0;

    std::vector<double> scores_, own_scores_;
    double dual_ = 0, linear_ = 0, loss_ = 0;
    StepCounters counters_;
};

// Operations on patterns one after the other; what they will need is asked for ahead of time.
template <class Machine>
class Visits {
  public:
    Visits(Steps<Machine>& steps, Operation operation, const std::vector<int32_t>& slots)
        : steps_(steps), operation_(operation), slots_(slots) {}

    // Visits the patterns that are still there. `visited` is told of each.
    template <class Visited>
    void make(Visited visited) {
        go(visited, [&](std::size_t n) {
            bring_rows(n);
            operate(slots_[n]);
            return true;
        });
    }
    // The same for those whose rows are at hand. Returns the others.
    template <class Visited>
    std::vector<int32_t> make_at_hand(Visited visited) {
        std::vector<int32_t> put_off;
        go(visited, [&](std::size_t n) {
            put_off.push_back(slots_[n]);
            return false;
        });
        return put_off;
    }

    // What is to be read is asked for in stages, each for all of them.
    void prefetch_all() const {
        const Machine& machine = steps_.machine();
        for (const int32_t slot : slots_) prefetch(machine.table()[slot].vectors.data());
        for (const int32_t slot : slots_) machine.prefetch_scores(slot);
        for (std::size_t n = 0; n < std::min(slots_.size(), rows_ahead); ++n) steps_.prefetch_step(slots_[n]);
    }

  private:
    static constexpr std::size_t rows_ahead = 4;

    // `without_row(n)` says whether pattern n, whose row was not here, has been visited all the same.
    template <class Visited, class WithoutRow>
    void go(Visited visited, WithoutRow without_row) {
        const Machine& machine = steps_.machine();
        for (std::size_t n = 0; n < slots_.size(); ++n) {
            const int32_t slot = slots_[n];
            if (!machine.table().contains(slot)) continue;  // it left while the ones before were worked on
            if (operation_ == Operation::optimize && n + rows_ahead < slots_.size())
                steps_.prefetch_step(slots_[n + rows_ahead]);
            if (operate(slot) || without_row(n)) visited(slot);
        }
    }

    bool operate(int32_t slot) {
        return operation_ == Operation::optimize ? steps_.optimize(slot) : steps_.process_old(slot);
    }

    // The row of pattern n, and with it those that will be needed after it: several cost little more than one.
    void bring_rows(std::size_t n) {
        Machine& machine = steps_.machine();
        const std::size_t most = std::size_t(machine.rows_at_once());
        std::vector<int32_t> needed{slots_[n]};
        for (std::size_t next = n + 1; next < slots_.size() && needed.size() < most; ++next)
            if (machine.table().contains(slots_[next]) && steps_.lacks_row(slots_[next], operation_))
                needed.push_back(slots_[next]);
        std::reverse(needed.begin(), needed.end());
        machine.bring_rows(needed);
    }

    Steps<Machine>& steps_;
    Operation operation_;
    const std::vector<int32_t>& slots_;
};

}  // namespace larank
