// LaRank [larank]: an online solver of the multiclass SVM dual.
//
// The dual and its steps PROCESSNEW, PROCESSOLD and OPTIMIZE stand in kernel/steps.hpp. PROCESSOLD and OPTIMIZE take a
// random support pattern; ten OPTIMIZE count as one operation (section 3.3). A schedule chooses among them (algorithm
// 5).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernel/forgetting.hpp"
#include "kernel/schedule.hpp"
#include "kernel/steps.hpp"
#include "memory/prefetch.hpp"
#include "training/random.hpp"

namespace larank {

struct LaRankOptions {
    ScheduleOptions schedule;
    double tau = 0.08;  // smaller violations are left alone, section 3.4
    uint64_t seed = 0;
    ForgettingOptions forgetting;
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
    using Value = typename Machine::Value;

    template <class... Arguments>
    explicit LaRank(const LaRankOptions& options, Arguments... arguments)
        : steps_(options.tau, arguments...),
          schedule_(options.schedule),
          random_(options.seed),
          forgetting_(options.forgetting) {}

    Steps<Machine>& steps() { return steps_; }
    const Steps<Machine>& steps() const { return steps_; }
    Machine& machine() { return steps_.machine(); }
    const Machine& machine() const { return steps_.machine(); }
    auto& rows() { return machine().rows(); }
    const auto& rows() const { return machine().rows(); }
    SupportTable& table() { return machine().table(); }
    const SupportTable& table() const { return machine().table(); }
    int64_t support_patterns() const { return table().size(); }

    template <class Block>
    void feed(const Block& block, const Examples& examples) {
        machine().feed(block);
        go_on();
        steps_.feed(examples);
        at_ = 0;
    }

    // Works on until `end` examples of the block are done.
    void run(int64_t end) {
        while (at_ < end) {
            const Operation operation = table().size() == 0 ? Operation::process_new : schedule_.next(random_);
            steps_.begin_operation();
            if (operation == Operation::process_new)
                steps_.process_new(at_++);
            else
                reprocess(operation);
            steps_.end_operation(operation);
            schedule_.record(operation, steps_.increase(), double(steps_.work()));
            if (operation != Operation::process_new) continue;
            forgetting_.make_room(steps_);
            machine().after_example();
        }
    }

    // A fresh example can upset many others until reprocessing comes to them. So a model is taken from the stream after
    // sweeps of OPTIMIZE over all support patterns, and the stream goes on as if they had not been: how often a model
    // was taken does not change what comes after.
    void finish() {
        while (!finish(std::numeric_limits<int64_t>::max())) {
        }
    }
    // The same, about so many visits of it; true once it is done. Rows are brought for fixed numbers of visits, so the
    // model does not depend on how many are asked for.
    bool finish(int64_t visits) {
        if (!schedule_.optimizes() || is_finished_) return true;
        if (!is_ahead_) begin_finish();
        for (; visits > 0 && !is_finished_; visits -= visits_at_once) {
            if (swept_ == 0) steps_.begin_operation();
            const std::size_t end = std::min(sweep_.size(), swept_ + std::size_t(visits_at_once));
            picked_.assign(sweep_.begin() + std::ptrdiff_t(swept_), sweep_.begin() + std::ptrdiff_t(end));
            Visits<Machine>(steps_, Operation::optimize, picked_).make([](int32_t) {});
            swept_ = end;
            if (swept_ == sweep_.size()) end_sweep();
        }
        return is_finished_;
    }
    void go_on() {
        is_finished_ = false;
        if (!is_ahead_) return;
        is_ahead_ = false;
        steps_.set_finishing(false);
        machine().go_back();
        steps_.set_objective(before_);
        steps_.forget_finishing_steps();
    }

    void begin_another_epoch() {
        steps_.forget_loss();
        machine().begin_another_epoch();
    }
    void process_new_only() { schedule_.process_new_only(); }

    SupportArrays support() const {
        return arrays_of(table(), [this](SupportArrays& arrays, int32_t, const Pattern& p) {
            for (const SupportVector& v : p.vectors)
                if (const double value = machine().model_coefficient(v); value != 0) arrays.put(v.label, value);
        });
    }
    template <class Row>
    void restore(Row row, const SupportArrays& saved, std::size_t n) {
        steps_.restore(row, saved, n);
    }
    bool knows(int32_t label) const { return label < classes(); }
    bool accepts(int32_t column, double) const { return column >= 0 && column < classes(); }

    int64_t classes() const { return machine().classes(); }
    int64_t columns() const { return classes(); }
    int64_t bytes() const { return machine().bytes(); }
    void set_foreign_bytes(int64_t bytes) { machine().set_foreign_bytes(bytes); }
    double dual() const { return steps_.dual(); }
    double half_squared_norm() const { return steps_.half_squared_norm(); }
    double loss() const { return steps_.loss(); }
    const StepCounters& counters() const { return steps_.counters(); }

    LaRankState state() const {
        const auto at = steps_.objective();
        return {at.dual, at.linear, at.loss, schedule_.rates(), random_.state()};
    }
    void set_state(const LaRankState& state) {
        steps_.set_objective({state.dual, state.linear, state.loss});
        schedule_.set_rates(state.rates);
        random_ = Random(state.random);
    }

    // Of the stream, as if no model had been taken from it.
    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        if (is_ahead_) swap_finish();
        snapshot(steps_, schedule_, random_);
        if (is_ahead_) swap_finish();
        if constexpr (Snapshot::reads)
            for (const int32_t slot : table().present()) {
                Pattern& p = table()[slot];
                must_hold(p.label < classes() && (p.find(p.label) || !p.is_support()),
                          "a pattern has no coefficient for its label");
            }
    }
    void bring_all_rows() { machine().bring_all_rows(); }

  private:
    static constexpr int64_t optimize_run = 10;
    static constexpr int max_sweeps = 30;
    static constexpr double worth_another_sweep = 2e-5;
    static constexpr int64_t visits_at_once = 256;

    void begin_finish() {
        is_ahead_ = true;
        steps_.set_finishing(true);
        machine().remember();
        before_ = steps_.objective();
        sweep_ = table().present();
        swept_ = 0;
        sweeps_ = 0;
    }
    // The stream as it was before the finish, and the finish again.
    void swap_finish() {
        machine().swap_remembered();
        const auto now = steps_.objective();
        steps_.set_objective(before_);
        before_ = now;
        steps_.swap_finishing_steps(finishing_steps_);
    }
    void end_sweep() {
        swept_ = 0;
        is_finished_ = ++sweeps_ == max_sweeps || !(steps_.increase() > worth_another_sweep * steps_.dual());
    }

    void reprocess(Operation operation) {
        picked_.clear();
        const int64_t count = operation == Operation::optimize ? optimize_run : 1;
        while (int64_t(picked_.size()) < count) {
            picked_.push_back(table().pick(random_));
            prefetch(&table()[picked_.back()]);
        }
        Visits<Machine> visits(steps_, operation, picked_);
        if (operation == Operation::optimize) visits.prefetch_all();
        visits.make([](int32_t) {});
    }

    Steps<Machine> steps_;
    Schedule schedule_;
    Random random_;
    Forgetting<Machine> forgetting_;
    int64_t at_ = 0;  // examples of the block that are done
    std::vector<int32_t> picked_;

    bool is_ahead_ = false, is_finished_ = false;  // of the stream
    std::vector<int32_t> sweep_;                   // the patterns that a finish visits,
    std::size_t swept_ = 0;                        // how many of them it has visited in this sweep,
    int sweeps_ = 0;                               // and how many sweeps it has made
    typename Steps<Machine>::Objective before_;
    int64_t finishing_steps_ = 0;  // before the finish there are none
};

}  // namespace larank
