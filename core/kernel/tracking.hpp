// The tracking algorithms of [thesis] section 4.4: dual coordinate ascent that follows the optima of a growing problem.
//
//   P_t(w) = 1/2 |w|^2 + sum_{i <= t} C_i max(0, 1 - y_i <w, x_i>)                              (4.15)
//   D_t(alpha) = sum_i alpha_i - 1/2 |w(alpha)|^2     w(alpha) = sum_i alpha_i y_i x_i          (4.16)
//                with 0 <= alpha_i <= C_i
//   g_i = 1 - y_i <w, x_i>                                                                      (4.17)
//
// Every new example is followed by K steps on coefficients picked at random among all so far (algorithm 15), and is
// stepped on itself before them (algorithm 16, PROCESS). The model at time t is the average of alpha after each of the
// K steps. The last section of the chapter says how to save work: steps that do nothing are recognised by g_i, which is
// kept for all examples and changes only with a coefficient.
//
// The average is taken when it is asked for (footnote 9). A change a_k at step k is missing in the k - 1 iterates
// before it, so the average is alpha - 1/K sum_k (k - 1) a_k e_i(k): only coefficients that changed at this t need a
// thought.
//
// More than two classes are several problems, each class against the rest, with examples and kernel values in common.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "kernel/patternsolver.hpp"
#include "memory/aligned.hpp"
#include "simd/units.hpp"
#include "training/random.hpp"

namespace larank {

enum class Tracking { simple, process_reprocess };  // algorithms 15 and 16

// A class against the rest. Vectors have an entry per example, in the order of arrival, which is their slot.
struct TrackedProblem {
    LargeVector<double> y, alpha, scores;  // scores: <w(alpha), x_i>
    LargeVector<double> behind;            // sum_k (k - 1) a_k of the steps at this t
    std::vector<int32_t> changed;          // where `behind` may be other than zero
    double dual = 0;
    double process_increase = 0;  // delta_T of theorem 7

    double g(int32_t i) const { return 1 - y[std::size_t(i)] * scores[std::size_t(i)]; }
    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(y, alpha, scores, behind, changed, dual, process_increase);
    }
    int64_t bytes() const {
        return int64_t((y.capacity() + alpha.capacity() + scores.capacity() + behind.capacity()) * 8 +
                       changed.capacity() * 4);
    }
};

struct TrackingCounters {
    int64_t process = 0, reprocess = 0;
    int64_t steps = 0;  // that changed something

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(process, reprocess, steps);
    }
};

// Of one problem at its coefficients as they are.
struct TrackingObjectives {
    double primal, dual;
    double expected_increase;  // E Delta of lemma 5, over i chosen in proportion to C_i
    double increases;          // sum_i Delta_i
};

// The coefficient i that maximizes the dual with all others held, [thesis] eq. (4.17), and what a change a brings.
inline double best_coefficient(double alpha, double g, double squared_norm, double C) {
    if (squared_norm > 0) return std::clamp(alpha + g / squared_norm, 0.0, C);
    return g > 0 ? C : 0;
}
inline double coordinate_increase(double a, double g, double squared_norm) { return a * (g - a / 2 * squared_norm); }

template <class T>
class Tracker : public PatternSolver<T, Tracker<T>> {
  public:
    using Base = PatternSolver<T, Tracker<T>>;
    using Base::table, Base::stay_within_limit;

    Tracker(Tracking algorithm, int64_t steps, uint64_t seed, int64_t memory_limit)
        : Base(memory_limit, 1, births_to_settle), algorithm_(algorithm), steps_(steps), random_(seed), problems_(2) {}

    // With two classes problem 1 says it all; from the third on problem p is about class p.
    int32_t classes() const { return classes_; }
    int32_t first_problem() const { return classes_ > 2 ? 0 : 1; }
    int32_t problems() const { return int32_t(problems_.size()); }
    int64_t columns() const { return problems() - first_problem(); }  // problem p has column p - first_problem
    const TrackedProblem& problem(int32_t p) const { return problems_[std::size_t(p)]; }
    int64_t examples() const { return table().slots(); }
    double sum_of_costs() const { return sum_of_costs_; }
    double largest_diagonal() const { return largest_diagonal_; }
    // Examples that have a coefficient in some problem.
    int64_t support_patterns() const {
        int64_t count = 0;
        for (std::size_t i = 0; i < std::size_t(examples()); ++i)
            count += std::any_of(problems_.begin() + first_problem(), problems_.end(),
                                 [&](const TrackedProblem& problem) { return problem.alpha[i] > 0; });
        return count;
    }

    void feed(const Block<T>& block, const Examples& examples) {
        if (!std::all_of(examples.costs, examples.costs + examples.count, [](double C) { return C > 0; }))
            throw std::invalid_argument("costs must be above zero");
        Base::feed(block, examples);
    }

    // Works on until `end` examples of the block are done.
    void run(int64_t end) {
        while (at_ < end) {
            const int32_t newest = begin_example(at_++);
            for (int32_t p = first_problem(); p < problems(); ++p) {
                TrackedProblem& problem = problems_[std::size_t(p)];
                if (algorithm_ == Tracking::process_reprocess) step(problem, newest, 0);
                for (int64_t k = 1; k <= steps_; ++k) step(problem, int32_t(random_.below(uint32_t(examples()))), k);
            }
        }
    }

    // The average of alpha_i over the K steps at this t.
    double averaged(int32_t p, int32_t i) const {
        const TrackedProblem& problem = problems_[std::size_t(p)];
        return problem.alpha[std::size_t(i)] - problem.behind[std::size_t(i)] / double(steps_);
    }

    // The averages of the examples that have any.
    SupportArrays support() const {
        return arrays_of(table(), [this](SupportArrays& arrays, int32_t i, const Pattern&) {
            for (int32_t p = first_problem(); p < problems(); ++p)
                if (const double alpha = averaged(p, i); alpha != 0) arrays.put(p - first_problem(), alpha);
        });
    }

    TrackingObjectives objectives(int32_t p) const {
        const TrackedProblem& problem = problems_[std::size_t(p)];
        double gap = 0, dual = 0, costs = 0, weighted = 0, increases = 0;
        for (int32_t i = 0; i < examples(); ++i) {
            const double alpha = problem.alpha[std::size_t(i)], g = problem.g(i), C = table()[i].cost;
            const double squared_norm = table()[i].diagonal;
            gap += std::max((C - alpha) * g, -alpha * g);  // [thesis] eq. (4.18)
            dual += alpha * (1 + g) / 2;                   // alpha - 1/2 alpha y <w, x>
            const double increase =
                coordinate_increase(best_coefficient(alpha, g, squared_norm, C) - alpha, g, squared_norm);  // Delta_i
            costs += C, weighted += C * increase, increases += increase;
        }
        return {dual + gap, dual, costs > 0 ? weighted / costs : 0, increases};
    }

    int64_t bytes_beside_rows() const {
        int64_t total = int64_t(everyone_.capacity() * 4 + signed_alpha_.capacity() * 8);
        for (const TrackedProblem& problem : problems_) total += problem.bytes();
        return total;
    }
    const TrackingCounters& counters() const { return counters_; }

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(table(), random_, problems_, classes_, sum_of_costs_, largest_diagonal_, counters_);
        if constexpr (Snapshot::reads) check_problems();
    }
    void bring_all_rows() { rows_.bring_all(make_room()); }

  private:
    using Base::at_, Base::examples_, Base::make_room, Base::rows_;

    static constexpr int64_t births_to_settle = 256;

    // Every example has a slot, and in every problem a coefficient; problem 0 has none before the third class.
    void check_problems() {
        must_hold(classes_ >= 0 && problems() == std::max(2, classes_), "the problems do not fit the classes");
        must_hold(table().size() == table().slots(), "an example has left");
        for (int32_t p = 0; p < problems(); ++p) {
            const TrackedProblem& problem = problems_[std::size_t(p)];
            const std::size_t count = p < first_problem() ? 0 : std::size_t(examples());
            for (const auto* values : {&problem.y, &problem.alpha, &problem.scores, &problem.behind})
                must_hold(values->size() == count && are_finite(*values), "the examples of a problem make no sense");
            must_hold(are_within(problem.changed, 0, int64_t(count)), "an example is out of range");
        }
        everyone_.resize(std::size_t(examples()));
        std::iota(everyone_.begin(), everyone_.end(), 0);
    }

    // Returns the slot of the example.
    int32_t begin_example(int64_t b) {
        while (classes_ <= examples_.labels[b]) add_class();
        const int32_t known = table().slot_of(examples_.ids[b]);
        const int32_t slot = known >= 0 ? known : add_example(b);
        for (int32_t p = first_problem(); p < problems(); ++p) begin_average(problems_[std::size_t(p)]);
        return slot;
    }

    int32_t add_example(int64_t b) {
        const T* const row = rows_.of_example(b);
        for (int32_t p = first_problem(); p < problems(); ++p) {
            TrackedProblem& problem = problems_[std::size_t(p)];
            const double score = units<T>().dot_row_at(row, everyone_.data(), signed_alpha(problem).data(), examples());
            problem.y.push_back(examples_.labels[b] == p ? 1 : -1);
            problem.alpha.push_back(0), problem.scores.push_back(score), problem.behind.push_back(0);
        }
        const int32_t slot =
            rows_.add(b, examples_.ids[b], examples_.labels[b], examples_.costs[b], examples_.diagonal[b]);
        everyone_.push_back(slot);
        sum_of_costs_ += examples_.costs[b];
        largest_diagonal_ = std::max(largest_diagonal_, examples_.diagonal[b]);
        stay_within_limit(slot);
        return slot;
    }
    const LargeVector<double>& signed_alpha(const TrackedProblem& problem) {
        signed_alpha_.resize(problem.alpha.size());
        std::transform(problem.alpha.begin(), problem.alpha.end(), problem.y.begin(), signed_alpha_.begin(),
                       [](double alpha, double y) { return alpha * y; });
        return signed_alpha_;
    }

    // So far all examples are of other classes. Class 0 against the rest, once there is a rest, begins as class 1
    // against class 0 the other way round.
    void add_class() {
        ++classes_;
        if (classes_ > problems()) {
            TrackedProblem problem;
            const std::size_t count = std::size_t(examples());
            problem.y.assign(count, -1);
            problem.alpha.assign(count, 0), problem.scores.assign(count, 0), problem.behind.assign(count, 0);
            problems_.push_back(std::move(problem));
        }
        if (classes_ == 3) {
            problems_[0] = problems_[1];
            for (auto* values : {&problems_[0].y, &problems_[0].scores})
                for (double& value : *values) value = -value;
        }
        stay_within_limit(-1);
    }

    void begin_average(TrackedProblem& problem) {
        for (const int32_t i : problem.changed) problem.behind[std::size_t(i)] = 0;
        problem.changed.clear();
    }

    // Line 7, and line 4 of algorithm 16 as step 0.
    void step(TrackedProblem& problem, int32_t i, int64_t k) {
        const Pattern& x = table()[i];
        const std::size_t at = std::size_t(i);
        const double g = problem.g(i), best = best_coefficient(problem.alpha[at], g, x.diagonal, x.cost);
        const double a = best - problem.alpha[at];
        if (a != 0) rows_.require(i, make_room());
        ++(k == 0 ? counters_.process : counters_.reprocess);
        if (a == 0) return;
        ++counters_.steps;
        problem.alpha[at] = best;
        units<T>().add_row_values(rows_[i], a * problem.y[at], examples(), problem.scores.data());
        const double increase = coordinate_increase(a, g, x.diagonal);
        problem.dual += increase;
        if (k == 0) problem.process_increase += increase;
        if (k > 1) {
            if (problem.behind[at] == 0) problem.changed.push_back(i);
            problem.behind[at] += double(k - 1) * a;
            stay_within_limit(i);
        }
    }

    Tracking algorithm_;
    int64_t steps_;  // K
    Random random_;
    std::vector<TrackedProblem> problems_;
    int32_t classes_ = 0;
    std::vector<int32_t> everyone_;  // 0, 1, ...: the slots of all examples
    LargeVector<double> signed_alpha_;
    double sum_of_costs_ = 0, largest_diagonal_ = 0;
    TrackingCounters counters_;
};

}  // namespace larank
