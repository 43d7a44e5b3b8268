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
    explicit ActiveSet(Steps<Machine>& steps) : steps_(steps), visits_(steps) {}

    enum class Progress { done, rows_needed, unfinished };

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
    void begin_widening(std::vector<int32_t> slots) {
        is_sweeping_ = false;
        visits_.slots() = std::move(slots);
        visits_.begin(Operation::process_old);
    }
    Progress widen() {
        const auto again = [&](int32_t slot) {
            for (int64_t n = 0; n < most_classes; ++n) {
                steps_.end_operation(Operation::process_old);
                steps_.begin_operation();
                if (!steps_.machine().table().contains(slot) || !steps_.process_old(slot) || steps_.increase() == 0)
                    break;
            }
        };
        const bool ready = visits_.go_on(again);
        return ready ? Progress::done : Progress::rows_needed;
    }

    // Goes on for about so many visits. Members that moved are visited again until they rest, then all are. Those whose
    // kernel values are not at hand wait until the others rest.
    Progress converge(int64_t visits) {
        if (!is_sweeping_) begin_sweep(steps_.machine().table().present());
        while (visits > 0) {
            sweep();
            visits -= int64_t(visits_.slots().size()) + 1;
            if (!moved_.empty() &&
                (!is_whole_ || int64_t(moved_.size()) * rest_share > steps_.machine().table().size())) {
                begin_sweep(std::exchange(moved_, {}));
            } else if (visits_.take_up()) {
                is_whole_ = false;
                moved_.clear();
                return Progress::rows_needed;
            } else if (is_whole_) {
                is_sweeping_ = false;
                return Progress::done;
            } else {
                begin_sweep(steps_.machine().table().present());
            }
        }
        return Progress::unfinished;
    }

    // Members without coefficients leave.
    void prune() {
        const std::vector<int32_t> slots = steps_.machine().table().present();
        for (const int32_t slot : slots)
            if (!steps_.machine().table()[slot].is_support()) steps_.machine().remove_zeros(slot);
    }

    const std::vector<int32_t>& needed() const { return visits_.needed(); }

  private:
    static constexpr int64_t most_classes = 8;  // that a member takes up at once
    static constexpr int64_t rest_share = 256;  // of the members may still move when the others rest

    void begin_sweep(std::vector<int32_t> slots) {
        is_sweeping_ = true;
        is_whole_ = slots.size() == std::size_t(steps_.machine().table().size());
        visits_.slots() = std::move(slots);
        visits_.begin(Operation::optimize);
        visits_.forget_put_off();
        moved_.clear();
        steps_.begin_operation();
    }

    void sweep() {
        const auto note = [&](int32_t slot) {
            if (steps_.increase() > 0 && steps_.machine().table().contains(slot)) moved_.push_back(slot);
            steps_.end_operation(Operation::optimize);
            steps_.begin_operation();
        };
        visits_.go_on(note, true);
    }

    Steps<Machine>& steps_;
    Visits<Machine> visits_;
    std::vector<int32_t> moved_;
    bool is_sweeping_ = false, is_whole_ = false;
};

}  // namespace larank
