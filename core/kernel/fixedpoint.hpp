// The reduced problem of one example and the fixed-point algorithm for it, [mcsvm] (20) and figures 3 and 4.
//
// With the paper's quantities multiplied by C A, so that nothing is divided by a small A:
//   D_r     = F_r + A (C delta(r, y) - beta_r)              [mcsvm] figure 4
//   theta  <- 1/k (sum_r max(theta, D_r) - A C)             [mcsvm] (39)
//   beta_r  = C delta(r, y) - max(0, D_r - theta) / A       [mcsvm] figure 3, nu - B/A
// From figure 4's start theta only rises. Figure 3 stops it short of the solution, where these coefficients do not add
// up to zero: those of the wrong classes are too large. They are made smaller in proportion, so that every row keeps
// the constraints of the dual.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace larank {

struct ReducedProblem {
    const double* F;     // [mcsvm] (23)
    const double* beta;  // as they are now
    int64_t classes;
    int64_t label;
    double A;  // K(x_p, x_p)
    double C;

    double bound(int64_t r) const { return r == label ? C : 0; }

    // psi, were the coefficients `next`.    [mcsvm] (32)
    double violation(const double* next) const {
        double most = -std::numeric_limits<double>::infinity(), least = -most;
        for (int64_t r = 0; r < classes; ++r) {
            const double f = F[r] + A * (next[r] - beta[r]);
            most = std::max(most, f);
            if (next[r] < bound(r)) least = std::min(least, f);
        }
        return most - least;
    }

    // By how much the dual grows with them. The changes add up to zero, so that F can be taken from its largest value:
    // near the solution nothing is lost to rounding.    [mcsvm] (20)
    double gain(const double* next) const {
        const double highest = *std::max_element(F, F + classes);
        double all = 0;
        for (int64_t r = 0; r < classes; ++r) {
            const double change = next[r] - beta[r];
            all -= change * (F[r] - highest + 0.5 * A * change);
        }
        return all;
    }
};

class FixedPoint {
  public:
    explicit FixedPoint(int64_t classes) : D_(std::size_t(classes)) {}

    // Writes coefficients to `next` and returns how often theta was computed. Figure 3 may end where the row is no
    // better than before; it would be chosen again, with the same outcome. So it goes on, twice as accurate each time,
    // until the row is better and psi below epsilon, or theta at rest. A row with such a psi from the start is left as
    // it is where figure 3 finds nothing better.
    int64_t solve(const ReducedProblem& row, double epsilon, double* next) {
        start(row);
        const bool is_due = row.violation(row.beta) >= epsilon;
        for (double accuracy = epsilon / 2;; accuracy /= 2) {  // [mcsvm] figure 4
            const bool at_rest = iterate(row, accuracy);
            assign(row, next);
            const bool is_better = row.gain(next) > 0;
            if (!at_rest && is_due && !(is_better && row.violation(next) < epsilon)) continue;
            if (!is_better) std::copy(row.beta, row.beta + row.classes, next);
            return iterations_;
        }
    }

  private:
    void start(const ReducedProblem& row) {
        double sum = 0, size = row.A * row.C;
        for (int64_t r = 0; r < row.classes; ++r) {
            const double d = row.F[r] + row.A * (row.bound(r) - row.beta[r]);
            D_[std::size_t(r)] = d;
            sum += d;
            size += std::abs(d);
        }
        theta_ = (sum - row.A * row.C) / double(row.classes);  // [mcsvm] figure 4
        rounding_ = size * std::numeric_limits<double>::epsilon();
        iterations_ = 0;
    }

    // Figure 3's loop; true where theta can rise no more. Its test is multiplied out, for theta may be zero.
    bool iterate(const ReducedProblem& row, double accuracy) {
        for (;;) {
            double sum = 0;
            for (const double d : D_) sum += std::max(theta_, d);
            const double before = theta_;
            theta_ = (sum - row.A * row.C) / double(row.classes);  // [mcsvm] (39)
            ++iterations_;
            const double moved = std::abs(theta_ - before);
            if (moved <= rounding_) return true;
            if (moved <= accuracy * std::abs(before)) return false;
        }
    }

    void assign(const ReducedProblem& row, double* next) const {
        // At the solution the label's coefficient is not negative, so theta is no less than this.
        const double theta = std::max(theta_, D_[std::size_t(row.label)] - row.A * row.C);
        double others = 0;
        for (int64_t r = 0; r < row.classes; ++r) {
            next[r] = row.bound(r) - std::max(0.0, D_[std::size_t(r)] - theta) / row.A;
            if (r != row.label) others -= next[r];
        }
        const double own = others > 0 ? std::max(0.0, next[row.label]) : 0;
        const double share = others > 0 ? own / others : 0;
        for (int64_t r = 0; r < row.classes; ++r) next[r] = r == row.label ? own : share * next[r];
    }

    std::vector<double> D_;
    double theta_ = 0, rounding_ = 0;
    int64_t iterations_ = 0;
};

}  // namespace larank
