// LaRank [larank]: an online solver of the multiclass SVM dual.
//
//   primal (3)  min_w 1/2 |w|^2 + sum_i C_i xi_i,  S(x_i, y_i) - S(x_i, y) >= Delta(y_i, y) - xi_i,  xi_i >= 0
//   dual   (7)  max_beta sum_iy (1 - Delta(y_i, y)) beta_i^y - 1/2 sum_ijy beta_i^y beta_j^y k(x_i, x_j)
//               subject to beta_i^y <= C_i delta(y, y_i),  sum_y beta_i^y = 0
//   gradient (8)  g_i(y) = 1 - Delta(y_i, y) - S(x_i, y);  with the plain margin 1 - Delta = delta(y, y_i)
//
// Steps: SMOSTEP (algorithm 1) moves two coefficients of one pattern against each other. PROCESSNEW (2) takes a fresh
// example, PROCESSOLD (3) a random support pattern and all classes, OPTIMIZE (4) a random support pattern and its own
// support vectors; ten OPTIMIZE count as one operation (section 3.3). A schedule chooses among them (5).
//
// `Machine` keeps the support vectors and knows scores and gradients: KernelMachine, LinearMachine.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "prefetch.hpp"
#include "random.hpp"
#include "schedule.hpp"
#include "support.hpp"

namespace larank {

// What a block says of its examples beside their kernel values.
struct Examples {
    int64_t count = 0;
    const int64_t* ids = nullptr;
    const int32_t* labels = nullptr;  // classes in the order of their arrival
    const double* costs = nullptr;
    const double* diagonal = nullptr;  // k(x_i, x_i)
};

struct LaRankOptions {
    ScheduleOptions schedule;
    double tau = 0.08;  // SMOSTEP leaves smaller violations alone, section 3.4
    uint64_t seed = 0;
};

struct LaRankCounters {
    std::array<int64_t, operation_count> operations{};
    int64_t steps = 0;
    int64_t argmax = 0;
    double selection_seconds = 0;  // scores and the choice of y+ and y-, from a sample of the operations
    double step_seconds = 0;
};

// What a solver must remember beside its machine to go on where it stopped.
struct LaRankState {
    double dual = 0, linear = 0, loss = 0;
    std::array<double, operation_count> rates{};
    uint64_t random = 0;
};

template <class Machine>
class LaRank {
  public:
    template <class... Arguments>
    explicit LaRank(const LaRankOptions& options, Arguments... arguments)
        : tau_(options.tau), schedule_(options.schedule), random_(options.seed), machine_(arguments...) {}

    Machine& machine() { return machine_; }
    const Machine& machine() const { return machine_; }

    // 1 - Delta(y, y'), row by row; empty for the plain margin. Classes come in the order of their arrival.
    void set_margins(std::vector<double> margins, int64_t classes) {
        margins_ = std::move(margins);
        margin_classes_ = classes;
    }
    void set_tau(double tau) { tau_ = tau; }
    void begin_another_epoch() {
        loss_ = 0;
        machine_.begin_another_epoch();
    }

    void feed(const Examples& examples) {
        go_on();
        machine_.table().forget_newborn();
        examples_ = examples;
        at_ = 0;
    }

    // Works on until `end` examples of the block are done; false if rows of kernel values are needed first.
    bool run(int64_t end) {
        while (is_pending_ || at_ < end) {
            if (!is_pending_) choose();
            if (!perform()) return false;
            is_pending_ = false;
        }
        return true;
    }

    // A fresh example can upset many others until reprocessing comes to them. So a model is taken from the stream after
    // sweeps of OPTIMIZE over all support patterns, and the stream goes on as if they had not been: how often a model
    // was taken does not change what comes after. `finish` is false if rows of kernel values are needed first.
    bool finish() {
        if (!schedule_.optimizes()) return true;
        if (!is_finishing_) begin_finish();
        while (sweep_ < max_sweeps) {
            for (; picked_ < picks_.size(); ++picked_) {
                if (!is_ready(picks_[picked_])) return false;
                prefetch_ahead();
                optimize(picks_[picked_]);
            }
            picked_ = 0;
            sweep_ = increase_ > worth_another_sweep * dual_ ? sweep_ + 1 : max_sweeps;
            increase_ = 0;
        }
        return true;
    }
    void go_on() {
        if (!is_finishing_) return;
        is_finishing_ = false;
        machine_.go_back();
        dual_ = dual_before_, linear_ = linear_before_;
    }

    // The slots whose rows are waited for, the most urgent one last.
    const std::vector<int32_t>& needed() const { return needed_; }

    // A pattern of a saved model, with its support vectors; slots are given out in the order of the calls.
    template <class Row>
    void restore(Row row, int64_t id, int32_t label, double cost, double diagonal, const int32_t* classes,
                 const double* beta, int64_t count) {
        scores_.resize(std::size_t(machine_.classes()));
        const int32_t slot = machine_.restore_pattern(row, id, label, cost, diagonal, scores_.data());
        for (int64_t n = 0; n < count; ++n) {
            machine_.add_vector(slot, classes[n], scores_[std::size_t(classes[n])]);
            machine_.set_coefficient(slot, machine_.table()[slot].vectors.back(), beta[n]);
        }
    }
    LaRankState state() const { return {dual_, linear_, loss_, schedule_.rates(), random_.state()}; }
    void set_state(const LaRankState& state) {
        dual_ = state.dual, linear_ = state.linear, loss_ = state.loss;
        schedule_.set_rates(state.rates);
        random_ = Random(state.random);
    }

    double dual() const { return dual_; }
    double half_squared_norm() const { return linear_ - dual_; }
    double loss() const { return loss_; }  // sum of C_i xi_i since the epoch began, each at the time of its visit
    const LaRankCounters& counters() const { return counters_; }

  private:
    static constexpr int64_t optimize_run = 10;
    static constexpr double kappa = 1e-12;  // relative to C_i, section 3.4
    static constexpr int64_t timed_one_in = 16;
    static constexpr std::size_t rows_ahead = 2;
    static constexpr int max_sweeps = 30;
    static constexpr double worth_another_sweep = 2e-5;

    void begin_finish() {
        is_finishing_ = true;
        machine_.remember();
        dual_before_ = dual_, linear_before_ = linear_;
        operation_ = Operation::optimize;
        picks_ = machine_.table().present();
        picked_ = 0;
        increase_ = 0;
        sweep_ = 0;
    }

    void choose() {
        operation_ = machine_.table().size() == 0 ? Operation::process_new : schedule_.next(random_);
        increase_ = 0, work_ = 1;
        is_pending_ = true;
        picked_ = 0;
        picks_.clear();
        if (operation_ == Operation::process_new) return;
        const int64_t count = operation_ == Operation::optimize ? optimize_run : 1;
        while (int64_t(picks_.size()) < count) {
            picks_.push_back(machine_.table().pick(random_));
            prefetch(&machine_.table()[picks_.back()]);
        }
        if (operation_ == Operation::optimize) prefetch_run();
    }

    bool perform() {
        is_timed_ = ++performed_ % timed_one_in == 0;
        if (operation_ == Operation::process_new) {
            process_new(at_++);
        } else {
            for (; picked_ < picks_.size(); ++picked_) {
                const int32_t slot = picks_[picked_];
                if (!machine_.table().contains(slot)) continue;  // it left while the ones before were worked on
                if (!is_ready(slot)) return false;
                if (operation_ == Operation::optimize)
                    prefetch_ahead(), optimize(slot);
                else
                    process_old(slot);
            }
        }
        ++counters_.operations[std::size_t(operation_)];
        schedule_.record(operation_, increase_, double(work_));
        return true;
    }

    // Random patterns are in no cache. What a run of OPTIMIZE will read is asked for in stages, each for all of them.
    void prefetch_run() const {
        for (const int32_t slot : picks_) prefetch(machine_.table()[slot].vectors.data());
        for (const int32_t slot : picks_) machine_.prefetch_scores(slot);
        for (std::size_t n = 0; n < std::min(picks_.size(), rows_ahead); ++n)
            machine_.prefetch_kernel_values(picks_[n]);
    }
    void prefetch_ahead() const {
        if (picked_ + rows_ahead < picks_.size()) machine_.prefetch_kernel_values(picks_[picked_ + rows_ahead]);
    }

    bool is_ready(int32_t slot) {
        const bool needs_row = operation_ == Operation::process_old;
        if (machine_.is_ready(slot, needs_row)) return true;
        needed_.clear();
        const std::size_t soon = std::min(picks_.size(), picked_ + std::size_t(optimize_run));
        for (std::size_t n = soon; n-- > picked_ + 1;)
            if (machine_.table().contains(picks_[n]) && !machine_.is_ready(picks_[n], needs_row))
                needed_.push_back(picks_[n]);
        needed_.push_back(slot);
        return false;
    }

    // The classes of the feasible direction with the highest gradient.
    struct Choice {
        int32_t y_plus = -1, y_minus = -1;
        double best = -std::numeric_limits<double>::infinity();
        double worst = std::numeric_limits<double>::infinity();
        double violation() const { return best - worst; }
    };

    void process_new(int64_t b) {  // algorithm 2
        const int32_t label = examples_.labels[b];
        while (machine_.classes() <= label) machine_.add_class();
        const int32_t present = machine_.table().slot_of(examples_.ids[b]);
        if (present >= 0) {
            loss_ += loss_of(present);
            return;
        }
        const Choice choice = choose_new(b, label);
        loss_ += examples_.costs[b] * std::max(0.0, choice.violation());
        if (choice.violation() <= tau_ || examples_.costs[b] <= 0) return;
        const Timer timer(is_timed_, counters_.step_seconds);
        const int32_t slot =
            machine_.add_pattern(b, examples_.ids[b], label, examples_.costs[b], examples_.diagonal[b]);
        machine_.add_vector(slot, label, scores_[std::size_t(label)]);
        machine_.add_vector(slot, choice.y_minus, scores_[std::size_t(choice.y_minus)]);
        smo_step(slot, choice);
    }

    void process_old(int32_t slot) {  // algorithm 3
        const Choice choice = choose_old(slot);
        if (choice.violation() <= tau_) return;
        const Timer timer(is_timed_, counters_.step_seconds);
        if (!machine_.table()[slot].find(choice.y_minus))
            machine_.add_vector(slot, choice.y_minus, scores_[std::size_t(choice.y_minus)]);
        smo_step(slot, choice);
    }

    void optimize(int32_t slot) {  // algorithm 4
        const Choice choice = choose_among_vectors(slot);
        if (choice.violation() <= tau_) return;
        const Timer timer(is_timed_, counters_.step_seconds);
        smo_step(slot, choice);
    }

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
        work_ += machine_.scores_of_old(slot, scores_.data());
        ++counters_.argmax;
        Pattern& p = machine_.table()[slot];
        for (int32_t y = 0; y < machine_.classes(); ++y)
            if (gradient(p.label, y) < choice.worst && !p.find(y))
                choice.worst = gradient(p.label, y), choice.y_minus = y;
        return choice;
    }

    Choice choose_among_vectors(int32_t slot) {
        const Pattern& p = machine_.table()[slot];
        own_scores_.resize(p.vectors.size());
        work_ += machine_.scores_of_vectors(slot, own_scores_.data());
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

    // C_i xi_i as far as the pattern's own support vectors tell.
    double loss_of(int32_t slot) {
        const Pattern& p = machine_.table()[slot];
        own_scores_.resize(p.vectors.size());
        machine_.scores_of_vectors(slot, own_scores_.data());
        double own = 0, worst = std::numeric_limits<double>::infinity();
        for (std::size_t n = 0; n < p.vectors.size(); ++n) {
            const double g = margin(p.label, p.vectors[n].label) - own_scores_[n];
            if (p.vectors[n].label == p.label) own = g;
            worst = std::min(worst, g);
        }
        return p.cost * (own - worst);
    }

    void smo_step(int32_t slot, const Choice& choice) {  // algorithm 1
        Pattern& p = machine_.table()[slot];
        SupportVector &up = *p.find(choice.y_plus), &down = *p.find(choice.y_minus);
        const double bound = up.label == p.label ? p.cost : 0.0;
        const double room = bound - up.beta;
        const double unconstrained = p.diagonal > 0 ? choice.violation() / (2 * p.diagonal) : room;  // eq. (10)
        const double lambda = std::min(unconstrained, room);                                         // eq. (11)
        const double gain = lambda * (choice.violation() - lambda * p.diagonal);
        dual_ += gain;
        increase_ += gain;
        linear_ += lambda * (margin(p.label, up.label) - margin(p.label, down.label));
        ++counters_.steps;

        double raised = lambda == room ? bound : up.beta + lambda, lowered = down.beta - lambda;
        // The label's coefficient is the sum of the others, so that all vanish together in spite of rounding.
        if (up.label == p.label)
            raised = std::min(p.cost, -(lowered + sum_of_others(p, up, down)));
        else if (down.label == p.label)
            lowered = -(raised + sum_of_others(p, up, down));
        work_ += machine_.set_coefficient(slot, up, raised);
        work_ += machine_.set_coefficient(slot, down, lowered);
        if ((up.beta == 0 || down.beta == 0) && !is_finishing_) machine_.remove_zeros(slot);
        machine_.after_step(slot);
    }

    static double sum_of_others(const Pattern& p, const SupportVector& up, const SupportVector& down) {
        double sum = 0;
        for (const SupportVector& v : p.vectors)
            if (&v != &up && &v != &down) sum += v.beta;
        return sum;
    }

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

    double tau_;
    Schedule schedule_;
    Random random_;
    Machine machine_;
    std::vector<double> margins_;
    int64_t margin_classes_ = 0;
    Examples examples_;
    int64_t at_ = 0;  // examples of the block that are done

    Operation operation_ = Operation::process_new;
    bool is_pending_ = false, is_timed_ = false, is_finishing_ = false;
    int sweep_ = 0;
    double dual_before_ = 0, linear_before_ = 0;
    int64_t performed_ = 0;
    std::vector<int32_t> picks_, needed_;
    std::size_t picked_ = 0;
    double increase_ = 0;
    int64_t work_ = 1;

    std::vector<double> scores_, own_scores_;
    double dual_ = 0, linear_ = 0, loss_ = 0;
    LaRankCounters counters_;
};

}  // namespace larank
