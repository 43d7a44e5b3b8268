// MCSVM as published: figures 2 and 4 of [mcsvm] and the improvements of its section 7.
//
//   min_w      1/2 |w|^2 + sum_i C_i max_y ( Delta(y_i, y) + S(x_i, y) - S(x_i, y_i) )       S = sum_j beta_j k(x_j, x)
//   max_beta   - sum_iy Delta(y_i, y) beta_i^y - 1/2 |w(beta)|^2                             [mcsvm] (15)
//              with  beta_i^y <= C_i delta(y, y_i),  sum_y beta_i^y = 0
//
//   F_i^r = S(x_i, r) - (1 - Delta(y_i, r))                                                  [mcsvm] (23)
//   psi_i = max_r F_i^r - min over {r: beta_i^r < C_i delta(r, y_i)} of F_i^r                [mcsvm] (32)
//
// One round: choose an example p, solve its reduced problem with all others held fixed, update F with the kernel row
// of p. The paper's tau_i is beta_i / C_i and its beta 1 / C, so that its F and psi are these divided by C: where it
// asks for psi_p < epsilon beta, the test here is psi_p < epsilon.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "blocks/source.hpp"
#include "kernel/fixedpoint.hpp"
#include "memory/aligned.hpp"
#include "memory/rowcache.hpp"
#include "simd/units.hpp"
#include "training/objectives.hpp"

namespace larank {

enum class Selection { cycle, kkt };
enum class RowSolver { fixed_point, exact };
enum class Cooling { none, exponential, linear, logarithmic };

struct McsvmOptions {
    Selection selection;
    RowSolver row_solver;
    Cooling cooling;
    bool active_set;
    bool cache;  // keep rows of kernel values for later rounds
    double epsilon;
    int64_t cache_bytes;
};

struct McsvmCounters {
    int64_t rounds = 0;
    int64_t kernel_rows = 0;  // that were asked for
    int64_t cache_hits = 0;   // rounds that found theirs
    int64_t fixed_point_iterations = 0;
};

// The accuracy asked for: it falls from epsilon_0, but not below the final one.    [mcsvm] sec. 7
//
// The paper does not say what t counts. If it counted rounds, (a) and (b) would be over after a few of them and change
// nothing, and (c) would not end before 10^9 for epsilon = 0.1. Here it counts the accuracies that were reached, by
// every example, and those at which there is nothing to do are passed over: then all three help, as the paper says.
class CoolingSchedule {
  public:
    CoolingSchedule(Cooling kind, double final_accuracy) : kind_(kind), final_(final_accuracy) {}

    double accuracy() const { return std::max(final_, falling()); }
    bool is_final() const { return falling() <= final_; }

    // The next accuracy that is no more than this violation.
    void fall_to(double violation) {
        const double ratio = epsilon_0 / violation;
        switch (kind_) {
            case Cooling::none: return;
            case Cooling::exponential: t_ = std::ceil(std::log(ratio)); break;
            case Cooling::linear: t_ = std::ceil(ratio - 1); break;
            case Cooling::logarithmic: t_ = std::ceil(std::pow(10.0, ratio) - 10); break;
        }
        while (falling() > violation) t_ += std::max(1.0, 1e-9 * t_);  // where rounding left it just above
    }

  private:
    static constexpr double epsilon_0 = 0.999;  // [mcsvm] sec. 7

    double falling() const {
        switch (kind_) {
            case Cooling::exponential: return epsilon_0 * std::exp(-t_);        // [mcsvm] sec. 7 (a)
            case Cooling::linear: return epsilon_0 / (t_ + 1);                  // [mcsvm] sec. 7 (b)
            case Cooling::logarithmic: return epsilon_0 / std::log10(t_ + 10);  // [mcsvm] sec. 7 (c)
            default: return final_;
        }
    }

    Cooling kind_;
    double final_, t_ = 0;
};

template <class T>
class Mcsvm {
  public:
    // `delta` holds Delta(y, y'), one row of it after another.
    Mcsvm(std::vector<int32_t> labels, std::vector<double> costs, std::vector<double> diagonal,
          std::vector<double> delta, int64_t classes, const McsvmOptions& options)
        : options_(options),
          examples_(int64_t(labels.size())),
          classes_(classes),
          labels_(std::move(labels)),
          costs_(std::move(costs)),
          diagonal_(std::move(diagonal)),
          delta_(std::move(delta)),
          F_(std::size_t(examples_ * classes_)),
          beta_(std::size_t(examples_ * classes_)),
          place_(std::size_t(examples_), -1),
          is_stuck_(std::size_t(examples_)),
          cooling_(options.cooling, options.epsilon),
          rows_(examples_, options.cache ? options.cache_bytes : 0),
          fixed_point_(classes),
          f_(std::size_t(classes)),
          next_(std::size_t(classes)),
          scores_(padded<double>(classes)),
          coefficients_(padded<double>(classes)),
          work_(padded<double>(classes)),
          change_(padded<double>(classes)) {
        for (int64_t r = 0; r < classes_; ++r)
            for (int64_t i = 0; i < examples_; ++i) F(r)[i] = margin(i, r) - 1;  // [mcsvm] figure 4
    }

    // Makes up to so many rounds; fewer where nothing is left to do.
    void run(int64_t rounds, KernelSource<T>& source) {
        for (; rounds > 0; --rounds) {
            const int64_t chosen = options_.selection == Selection::cycle ? next_in_turn() : most_violating();
            is_done_ = chosen < 0;
            if (is_done_) return;
            const T* const row = row_of(chosen, source);
            turn_ = (chosen + 1) % examples_;
            make_round(chosen, row);
            if (!options_.cache) rows_.forget(chosen);
        }
    }

    // No example is left with psi >= epsilon, or none that arithmetic could improve. Never with Selection::cycle.
    bool is_done() const { return is_done_; }

    // From F as it is.
    Objectives objectives() const {
        double gains = 0, norm = 0, losses = 0, violation = 0;
        for (int64_t i = 0; i < examples_; ++i) {
            if (costs_[std::size_t(i)] == 0) continue;
            double most = F(0)[i];
            for (int64_t r = 0; r < classes_; ++r) {
                const double b = beta(i)[r];
                most = std::max(most, F(r)[i]);
                gains -= margin(i, r) * b;
                norm += b * (F(r)[i] + 1 - margin(i, r));
            }
            losses += costs_[std::size_t(i)] * (most - F(label(i))[i]);
            violation = std::max(violation, most - lowest_open(i));
        }
        return {norm / 2 + losses, gains - norm / 2, violation};
    }

    int64_t examples() const { return examples_; }
    int64_t classes() const { return classes_; }
    int64_t support_patterns() const { return int64_t(active_.size()); }
    int64_t cached_rows() const { return rows_.rows(); }
    double accuracy() const { return cooling_.accuracy(); }
    const McsvmCounters& counters() const { return counters_; }
    const std::vector<double>& coefficients() const { return beta_; }
    double score(int64_t i, int64_t r) const { return F(r)[i] + 1 - margin(i, r); }

    // psi of one example.    [mcsvm] (32)
    double violation(int64_t i) const {
        double most = F(0)[i];
        for (int64_t r = 1; r < classes_; ++r) most = std::max(most, F(r)[i]);
        return most - lowest_open(i);
    }

  private:
    struct Worst {
        int64_t example = -1;
        double violation = -std::numeric_limits<double>::infinity();
        void meet(int64_t i, double psi) {
            if (psi > violation) *this = {i, psi};
        }
    };

    double* F(int64_t r) { return F_.data() + r * examples_; }
    const double* F(int64_t r) const { return F_.data() + r * examples_; }
    double* beta(int64_t i) { return beta_.data() + i * classes_; }
    const double* beta(int64_t i) const { return beta_.data() + i * classes_; }
    int64_t label(int64_t i) const { return labels_[std::size_t(i)]; }
    double margin(int64_t i, int64_t r) const { return delta_[std::size_t(label(i) * classes_ + r)]; }
    bool is_active(int64_t i) const { return place_[std::size_t(i)] >= 0; }

    // The least F among the coefficients that can still rise. An example without cost has none and is never chosen.
    double lowest_open(int64_t i) const {
        const double C = costs_[std::size_t(i)];
        double least = std::numeric_limits<double>::infinity();
        if (C == 0) return least;
        if (!is_active(i)) return F(label(i))[i];
        for (int64_t r = 0; r < classes_; ++r)
            if (beta(i)[r] < (r == label(i) ? C : 0)) least = std::min(least, F(r)[i]);
        return least;
    }

    // The kernel values of an example with all of them.
    const T* row_of(int64_t i, KernelSource<T>& source) {
        if (const T* const kept = rows_.find(i)) {
            ++counters_.cache_hits;
            return kept;
        }
        const T* const computed = source.rows({int32_t(i)}, examples_)[0];
        ++counters_.kernel_rows;
        rows_.insert(i, computed);
        return rows_.find(i);
    }

    // [mcsvm] sec. 7, the base line
    int64_t next_in_turn() const {
        for (int64_t seen = 0; seen < examples_; ++seen) {
            const int64_t i = (turn_ + seen) % examples_;
            if (costs_[std::size_t(i)] > 0) return i;
        }
        return -1;
    }

    // The largest psi, of the active set first; the others only where none there is left.    [mcsvm] sec. 5 and 7
    int64_t most_violating() {
        for (;;) {
            const double epsilon = cooling_.accuracy();
            if (options_.active_set) {
                const Worst active = worst_active();
                if (active.violation >= epsilon) return active.example;
            }
            const Worst worst = worst_of_all();
            if (worst.violation >= epsilon) return worst.example;
            if (cooling_.is_final()) return -1;
            cooling_.fall_to(std::max(worst.violation, options_.epsilon));
        }
    }

    Worst worst_active() const {
        Worst worst;
        for (const int32_t i : active_)
            if (!is_stuck_[std::size_t(i)]) worst.meet(i, violation(i));
        return worst;
    }

    // A tile at a time, so that the largest F of its examples is found class by class.
    Worst worst_of_all() const {
        constexpr int64_t tile = 256;
        double most[tile];
        Worst worst;
        for (int64_t first = 0; first < examples_; first += tile) {
            const int64_t count = std::min(tile, examples_ - first);
            std::copy(F(0) + first, F(0) + first + count, most);
            for (int64_t r = 1; r < classes_; ++r) {
                const double* const f = F(r) + first;
                for (int64_t j = 0; j < count; ++j) most[j] = std::max(most[j], f[j]);
            }
            for (int64_t i = first; i < first + count; ++i)
                if (!is_stuck_[std::size_t(i)]) worst.meet(i, most[i - first] - lowest_open(i));
        }
        return worst;
    }

    void make_round(int64_t p, const T* row) {
        for (int64_t r = 0; r < classes_; ++r) f_[std::size_t(r)] = F(r)[p];
        solve({f_.data(), beta(p), classes_, label(p), diagonal_[std::size_t(p)], costs_[std::size_t(p)]});
        bool has_moved = false;
        for (int64_t r = 0; r < classes_; ++r) {
            const double change = next_[std::size_t(r)] - beta(p)[r];
            if (change == 0) continue;
            has_moved = true;
            units<T>().add_row_values(row, change, examples_, F(r));  // [mcsvm] figure 4
            beta(p)[r] = next_[std::size_t(r)];
        }
        note_activity(p);
        ++counters_.rounds;
        note_stuck(p, has_moved);
    }

    // A row whose psi is rounding alone does not move. It would be chosen for ever, so it is passed over until another
    // one has moved.
    void note_stuck(int64_t p, bool has_moved) {
        if (!has_moved) {
            is_stuck_[std::size_t(p)] = 1;
            some_are_stuck_ = true;
        } else if (some_are_stuck_) {
            std::fill(is_stuck_.begin(), is_stuck_.end(), char{0});
            some_are_stuck_ = false;
        }
    }

    // Writes the new coefficients to `next_`.
    void solve(const ReducedProblem& row) {
        if (row.A <= 0)
            solve_linear(row);
        else if (options_.row_solver == RowSolver::exact)
            solve_exactly(row);
        else
            counters_.fixed_point_iterations += fixed_point_.solve(row, cooling_.accuracy(), next_.data());
    }

    // [mcsvm] (18) takes A > 0. Without it (20) is linear, or convex where the kernel is not positive semi-definite,
    // and the worst class has it all.
    void solve_linear(const ReducedProblem& row) {
        int64_t worst = row.label;
        for (int64_t r = 0; r < classes_; ++r)
            if (row.F[r] > row.F[worst]) worst = r;
        std::fill(next_.begin(), next_.end(), 0.0);
        if (worst == row.label) return;
        next_[std::size_t(row.label)] = row.C;
        next_[std::size_t(worst)] = -row.C;
    }

    void solve_exactly(const ReducedProblem& row) {
        for (int64_t r = 0; r < classes_; ++r) {
            scores_.data()[r] = row.F[r] + (r == row.label ? 1 : 0);  // the row QP has margins of one
            coefficients_.data()[r] = row.beta[r];
        }
        const auto step = units<double>().solve_row[int(Formulation::crammer_singer)](
            {scores_.data(), coefficients_.data(), classes_, scores_.size(), row.label, row.A, row.C, 0.0},
            work_.data(), change_.data());
        for (int64_t r = 0; r < classes_; ++r) {
            const double bound = row.bound(r), change = step.moved ? change_.data()[r] : 0;
            // What rises as far as it may is at its bound, whatever is lost to rounding.
            next_[std::size_t(r)] = change == bound - row.beta[r] ? bound : row.beta[r] + change;
        }
    }

    // Keeps the active set {i: beta_i != 0}.    [mcsvm] sec. 7
    void note_activity(int64_t p) {
        const bool is_support = std::any_of(beta(p), beta(p) + classes_, [](double b) { return b != 0; });
        if (is_support == is_active(p)) return;
        if (is_support) {
            place_[std::size_t(p)] = int32_t(active_.size());
            active_.push_back(int32_t(p));
        } else {
            const int32_t place = place_[std::size_t(p)], last = active_.back();
            active_[std::size_t(place)] = last;
            place_[std::size_t(last)] = place;
            active_.pop_back();
            place_[std::size_t(p)] = -1;
        }
    }

    McsvmOptions options_;
    int64_t examples_, classes_;
    std::vector<int32_t> labels_;
    std::vector<double> costs_, diagonal_, delta_;
    LargeVector<double> F_;                // [class][example], as kernel rows are added to it
    std::vector<double> beta_;             // [example][class]
    std::vector<int32_t> active_, place_;  // the active set, and where in it an example is
    std::vector<char> is_stuck_;
    CoolingSchedule cooling_;
    RowCache<T> rows_;
    FixedPoint fixed_point_;
    std::vector<double> f_, next_;
    AlignedArray<double> scores_, coefficients_, work_, change_;
    int64_t turn_ = 0;
    bool is_done_ = false, some_are_stuck_ = false;
    McsvmCounters counters_;
};

}  // namespace larank
