// LaRank [larank]: an online solver of the multiclass SVM dual.
//
// The dual and its steps PROCESSNEW, PROCESSOLD and OPTIMIZE stand in kernel/steps.hpp. PROCESSOLD and OPTIMIZE take a
// random support pattern; ten OPTIMIZE count as one operation (section 3.3). A schedule chooses among them (algorithm
// 5).
#pragma once

#include <array>
#include <cstdint>

#include "kernel/schedule.hpp"
#include "kernel/steps.hpp"
#include "memory/prefetch.hpp"
#include "training/random.hpp"

namespace larank {

struct LaRankOptions {
    ScheduleOptions schedule;
    double tau = 0.08;  // smaller violations are left alone, section 3.4
    uint64_t seed = 0;
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
    LaRank(const LaRankOptions& options, Steps<Machine>& steps)
        : schedule_(options.schedule), random_(options.seed), steps_(steps), visits_(steps) {}

    void feed(const Examples& examples) {
        go_on();
        steps_.feed(examples);
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
            if (!visits_.go_on([](int32_t) {})) return false;
            visits_.begin(Operation::optimize);
            sweep_ = steps_.increase() > worth_another_sweep * steps_.dual() ? sweep_ + 1 : max_sweeps;
            steps_.begin_operation();
        }
        return true;
    }
    void go_on() {
        if (!is_finishing_) return;
        is_finishing_ = false;
        steps_.keep_zeros(false);
        steps_.machine().go_back();
        steps_.set_objective(before_);
    }

    void process_new_only() { schedule_.process_new_only(); }

    const std::vector<int32_t>& needed() const { return visits_.needed(); }

    LaRankState state() const {
        const auto at = steps_.objective();
        return {at.dual, at.linear, at.loss, schedule_.rates(), random_.state()};
    }
    void set_state(const LaRankState& state) {
        steps_.set_objective({state.dual, state.linear, state.loss});
        schedule_.set_rates(state.rates);
        random_ = Random(state.random);
    }

  private:
    static constexpr int64_t optimize_run = 10;
    static constexpr int max_sweeps = 30;
    static constexpr double worth_another_sweep = 2e-5;

    void begin_finish() {
        is_finishing_ = true;
        steps_.keep_zeros(true);
        steps_.machine().remember();
        before_ = steps_.objective();
        visits_.slots() = steps_.machine().table().present();
        visits_.begin(Operation::optimize);
        steps_.begin_operation();
        sweep_ = 0;
    }

    void choose() {
        SupportTable& table = steps_.machine().table();
        operation_ = table.size() == 0 ? Operation::process_new : schedule_.next(random_);
        is_pending_ = true;
        visits_.slots().clear();
        visits_.begin(operation_);
        steps_.begin_operation();
        if (operation_ == Operation::process_new) return;
        const int64_t count = operation_ == Operation::optimize ? optimize_run : 1;
        while (int64_t(visits_.slots().size()) < count) {
            visits_.slots().push_back(table.pick(random_));
            prefetch(&table[visits_.slots().back()]);
        }
        if (operation_ == Operation::optimize) visits_.prefetch_all();
    }

    bool perform() {
        if (operation_ == Operation::process_new)
            steps_.process_new(at_++);
        else if (!visits_.go_on([](int32_t) {}))
            return false;
        steps_.end_operation(operation_);
        schedule_.record(operation_, steps_.increase(), double(steps_.work()));
        return true;
    }

    Schedule schedule_;
    Random random_;
    Steps<Machine>& steps_;
    Visits<Machine> visits_;
    int64_t at_ = 0;  // examples of the block that are done

    Operation operation_ = Operation::process_new;
    bool is_pending_ = false, is_finishing_ = false;
    int sweep_ = 0;
    typename Steps<Machine>::Objective before_;
};

}  // namespace larank
