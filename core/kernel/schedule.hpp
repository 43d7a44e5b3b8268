// Which operation comes next: the adaptive schedule of [larank] algorithm 5 and thesis algorithm 22, and the fixed one
// of thesis algorithm 21.
//
// The paper divides the dual increase of an operation by its duration. Here it is divided by its work, counted in
// coefficients touched, so that the same seed makes the same choices on every machine.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "memory/snapshot.hpp"
#include "training/random.hpp"

namespace larank {

enum class Operation { process_new, process_old, optimize };
constexpr std::size_t operation_count = 3;

enum class ScheduleKind { adaptive, fixed };

struct ScheduleOptions {
    ScheduleKind kind = ScheduleKind::adaptive;
    int64_t n_reprocess = 1;  // of the fixed schedule
    std::array<bool, operation_count> allowed = {true, true, true};
};

class Schedule {
  public:
    static constexpr double mixing_rate = 0.05;  // thesis algorithm 22, line 16
    static constexpr double floor = 0.05;        // mu, here relative to the best rate

    explicit Schedule(const ScheduleOptions& options) : options_(options) {}

    Operation next(Random& random) { return is_adaptive() ? draw(random) : turn(); }

    void process_new_only() { options_.allowed = {true, false, false}; }

    // Whether OPTIMIZE ever has its turn.
    bool optimizes() const {
        return allowed(std::size_t(Operation::optimize)) && (is_adaptive() || options_.n_reprocess > 0);
    }

    void record(Operation operation, double dual_increase, double work) {
        double& rate = rates_[std::size_t(operation)];
        rate = mixing_rate * dual_increase / work + (1 - mixing_rate) * rate;
    }

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(options_.allowed, rates_, turn_);
        if constexpr (Snapshot::reads) must_hold(are_finite(rates_) && turn_ >= 0, "the schedule makes no sense");
    }

    const std::array<double, operation_count>& rates() const { return rates_; }
    void set_rates(const std::array<double, operation_count>& rates) { rates_ = rates; }

  private:
    bool is_adaptive() const { return options_.kind == ScheduleKind::adaptive; }
    bool allowed(std::size_t s) const { return options_.allowed[s]; }

    // Odds proportional to the rates, none of them below `floor` times the best.
    Operation draw(Random& random) {
        std::array<double, operation_count> odds{};
        double best = 0, total = 0;
        for (std::size_t s = 0; s < operation_count; ++s)
            if (allowed(s)) best = std::max(best, rates_[s]);
        for (std::size_t s = 0; s < operation_count; ++s) {
            odds[s] = allowed(s) ? std::max(rates_[s], floor * best) : 0.0;
            total += odds[s];
        }
        double at = random.uniform() * total;
        for (std::size_t s = 1; s < operation_count; ++s) {
            if (at < odds[s]) return Operation(s);
            at -= odds[s];
        }
        return Operation::process_new;
    }

    // One PROCESSNEW, then n_reprocess times one PROCESSOLD and ten OPTIMIZE.
    Operation turn() {
        const int64_t rounds = 2 * options_.n_reprocess;
        while (turn_ < rounds) {
            const Operation next = turn_++ % 2 == 0 ? Operation::process_old : Operation::optimize;
            if (allowed(std::size_t(next))) return next;
        }
        turn_ = 0;
        return Operation::process_new;
    }

    ScheduleOptions options_;
    std::array<double, operation_count> rates_ = {1, 1, 1};
    int64_t turn_ = INT64_MAX;
};

}  // namespace larank
