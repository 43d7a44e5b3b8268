// The exact kernel machine: an active set, [mcsvm] section 7, on the steps of kernel/steps.hpp.
//
// Members are the examples with coefficients. They are optimized against each other, each on the classes it has
// coefficients for, until none of them violates optimality by more than tau. The caller then looks at all examples and
// all classes, tells members of classes they lack (`widen`), and lets others join (`admit`); tau falls with the
// violations found.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "kernel/steps.hpp"

namespace larank {

// Of example i: the largest excess m_i(y) of kernel/steps.hpp over the classes other than its label, and the loss, with
// all scores multiplied by `scale`.
struct Excess {
    double largest, loss;
};
inline Excess excess_of(const double* scores, int64_t classes, int32_t label, const double* delta, double scale,
                        Formulation formulation) {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t y = 0; y < classes; ++y) {
        if (y == label) continue;
        const double excess = delta[label * classes + y] + scale * (scores[y] - scores[label]);
        largest = std::max(largest, excess);
        sum += std::max(0.0, excess);
    }
    return {largest, formulation == Formulation::weston_watkins ? sum : std::max(0.0, largest)};
}

template <class Machine>
class ActiveSet {
  public:
    explicit ActiveSet(Steps<Machine>& steps) : steps_(steps) {}

    // The first `count` examples of the block join, with coefficients if they violate optimality by more than tau.
    void admit(int64_t count) {
        is_sweeping_ = false;
        for (int64_t b = 0; b < count; ++b) {
            steps_.begin_operation();
            steps_.process_new(b, true);
            steps_.end_operation(Operation::process_new);
        }
    }

    // These members step with all classes in view.
    void widen(const std::vector<int32_t>& slots) {
        is_sweeping_ = false;
        const auto again = [&](int32_t slot) {
            for (int64_t n = 0; n < most_classes; ++n) {
                steps_.end_operation(Operation::process_old);
                steps_.begin_operation();
                if (!table().contains(slot) || !steps_.process_old(slot) || steps_.increase() == 0) break;
            }
        };
        Visits<Machine>(steps_, Operation::process_old, slots).make(again);
    }

    // Goes on for about so many visits; true once all members rest. Large violations are mended first: members move
    // until hardly any violates optimality by more than a level, which then falls, down to tau. To look for violations
    // costs little against a step, and a step where little is to be gained is soon undone by others.
    // Those that moved are visited again until they rest, then violations are looked for. Members whose kernel values
    // are not at hand wait until the others rest; it comes back when it has had rows computed for some of them.
    bool converge(int64_t visits) {
        if (!is_sweeping_) {
            level_ = fall_of_level * largest_violation();
            if (!begin_level()) return true;
        }
        while (visits > 0) {
            sweep();
            visits -= int64_t(slots_.size()) + 1;
            if (!moved_.empty()) {
                begin_sweep(std::exchange(moved_, {}));
            } else if (!put_off_.empty()) {
                take_up();
                return false;
            } else if (!begin_level()) {
                return true;
            } else {
                visits -= table().size() / looks_per_visit;
            }
        }
        return false;
    }

    // These members get other coefficients, a row of `values` each with all classes. The scores of all members are
    // summed up anew, which also mends what rounding has done to them.
    void set_coefficients(const std::vector<int32_t>& slots, const double* values) {
        is_sweeping_ = false;
        Machine& machine = steps_.machine();
        const auto bring_row = [&](int32_t slot) {
            if (!machine.has_row(slot)) machine.bring_rows({slot});
        };
        for (const int32_t slot : slots) {
            bring_row(slot);
            for (int32_t y = 0; y < machine.classes(); ++y) {
                const double value = *values++;
                if (value != 0 && !machine.table()[slot].find(y)) machine.add_vector(slot, y, 0);
                if (SupportVector* v = machine.table()[slot].find(y)) machine.replace_coefficient(*v, value);
            }
            machine.remove_zeros(slot);
        }
        for (const int32_t slot : table().present()) {
            bring_row(slot);
            machine.sum_up_scores(slot);
        }
        steps_.sum_up_objective();
    }

    // Members without coefficients leave.
    void prune() {
        const std::vector<int32_t> slots = table().present();
        for (const int32_t slot : slots)
            if (!table()[slot].is_support()) steps_.machine().remove_zeros(slot);
    }

  private:
    static constexpr int64_t most_classes = 8;  // that a member takes up at once
    static constexpr int64_t rest_share = 256;  // of the members may still move when the others rest
    static constexpr double fall_of_level = 0.05;
    static constexpr int64_t looks_per_visit = 8;

    const SupportTable& table() const { return steps_.machine().table(); }

    double largest_violation() {
        double largest = 0;
        for (const int32_t slot : table().present()) largest = std::max(largest, steps_.violation(slot));
        return largest;
    }

    // The next sweep is over the members that violate optimality by more than the level, or by more than a lower one
    // where they are few; false if there is none to make.
    bool begin_level() {
        while (true) {
            level_ = std::max(level_, steps_.tau());
            std::vector<int32_t> violating;
            for (const int32_t slot : table().present())
                if (steps_.violation(slot) > level_) violating.push_back(slot);
            if (int64_t(violating.size()) * rest_share > table().size()) {
                begin_sweep(std::move(violating));
                return true;
            }
            is_sweeping_ = level_ > steps_.tau();
            if (!is_sweeping_) return false;
            level_ *= fall_of_level;
        }
    }

    void begin_sweep(std::vector<int32_t> slots) {
        is_sweeping_ = true;
        slots_ = std::move(slots);
        put_off_.clear();
        moved_.clear();
        steps_.begin_operation();
    }

    void sweep() {
        const auto note = [&](int32_t slot) {
            if (steps_.increase() > 0 && table().contains(slot)) moved_.push_back(slot);
            steps_.end_operation(Operation::optimize);
            steps_.begin_operation();
        };
        const double tau = steps_.tau();
        steps_.set_tau(level_);
        put_off_ = Visits<Machine>(steps_, Operation::optimize, slots_).make_at_hand(note);
        steps_.set_tau(tau);
    }

    // Some of those that were put off have the next sweep to themselves.
    void take_up() {
        const std::size_t count = std::min(put_off_.size(), std::size_t(steps_.machine().rows_at_once()));
        slots_.assign(put_off_.end() - int64_t(count), put_off_.end());
        put_off_.clear();
        moved_.clear();
        steps_.machine().bring_rows(slots_);
    }

    Steps<Machine>& steps_;
    std::vector<int32_t> slots_, put_off_,
        moved_;         // of the sweep at hand: its members, those without rows, those that moved
    double level_ = 0;  // of violations that are mended now
    bool is_sweeping_ = false;
};

}  // namespace larank
