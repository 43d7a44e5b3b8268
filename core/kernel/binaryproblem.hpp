// One binary problem on patterns that it may share with others: its members, their coefficients and gradients.
//
//   primal  min_{w,b} 1/2 |w|^2 + sum_i C_i max(0, 1 - y_i (w'x_i + b))
//   dual    max_alpha sum_i alpha_i y_i - 1/2 sum_ij alpha_i alpha_j k(x_i, x_j)   subject to sum_i alpha_i = 0 and
//           A_i <= alpha_i <= B_i,  A_i = min(0, C_i y_i),  B_i = max(0, C_i y_i)                [thesis] (4.1)
//   gradient  g_k = y_k - sum_i alpha_i k(x_i, x_k)                                              [thesis] (4.2)
//
// A member has a number. Its pattern's slot is its column in rows of kernel values; where there is one problem only,
// both are the same, and rows are read side by side.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "memory/aligned.hpp"
#include "memory/snapshot.hpp"
#include "simd/units.hpp"

namespace larank {

// A step along (+1, -1) on two coefficients.
struct PairStep {
    double lambda = 0;
    double gain = 0;        // of the dual objective
    bool is_whole = false;  // whether nothing has ended it before both gradients were the same
};

class Members {
  public:
    int64_t size() const { return int64_t(alpha_.size()); }  // numbers, in use and free
    bool is_member(int64_t member) const { return y_[std::size_t(member)] != 0; }

    double alpha(int64_t member) const { return alpha_[std::size_t(member)]; }
    double g(int64_t member) const { return g_[std::size_t(member)]; }
    double y(int64_t member) const { return y_[std::size_t(member)]; }
    double diagonal(int64_t member) const { return diagonal_[std::size_t(member)]; }
    bool can_grow(int64_t member) const { return up_[std::size_t(member)] == 0; }
    bool can_shrink(int64_t member) const { return down_[std::size_t(member)] == 0; }
    bool is_free(int64_t member) const { return can_grow(member) && can_shrink(member); }

    const double* alphas() const { return alpha_.data(); }
    double* gradients() { return g_.data(); }
    const double* gradients() const { return g_.data(); }
    const double* diagonals() const { return diagonal_.data(); }
    const float* up() const { return up_.data(); }
    const float* down() const { return down_.data(); }

    void resize(int64_t numbers) {
        const std::size_t n = std::size_t(numbers);
        alpha_.resize(n), g_.resize(n), cost_.resize(n), diagonal_.resize(n), y_.resize(n);
        up_.resize(n, -infinity), down_.resize(n, infinity);
    }

    void put(int64_t member, double y, double cost, double diagonal, double alpha, double g) {
        if (member >= size()) resize(member + 1);
        const std::size_t p = std::size_t(member);
        y_[p] = y, cost_[p] = cost, diagonal_[p] = diagonal, g_[p] = g;
        set_alpha(member, alpha);
    }

    void remove(int64_t member) {
        const std::size_t p = std::size_t(member);
        y_[p] = 0, alpha_[p] = 0, up_[p] = -infinity, down_[p] = infinity;
    }

    // The members of these numbers, one after another.
    Members at(const std::vector<int32_t>& numbers) const {
        Members some;
        some.resize(int64_t(numbers.size()));
        for (std::size_t n = 0; n < numbers.size(); ++n) {
            const std::size_t p = std::size_t(numbers[n]);
            some.put(int64_t(n), y_[p], cost_[p], diagonal_[p], alpha_[p], g_[p]);
        }
        return some;
    }

    // alpha_i += lambda, alpha_j -= lambda, as far as the gradient says and the bounds allow; g is left as it is.
    PairStep step(int64_t i, int64_t j, double kij) {  // [thesis] algorithm 11, line 9
        const double slope = g(i) - g(j);
        const double size = diagonal(i) + diagonal(j), distance = size - 2 * kij;
        const double curvature = std::abs(distance) > rounding_share * std::abs(size) ? distance : 0.0;
        // Of an indefinite kernel it may be negative: then, too, the bounds end the step, as in LIBSVM.
        const double wanted = curvature > 0 ? slope / curvature : std::numeric_limits<double>::infinity();
        const double room_i = upper(i) - alpha(i), room_j = alpha(j) - lower(j);
        const double lambda = std::min({wanted, room_i, room_j});
        set_alpha(i, lambda == room_i ? upper(i) : alpha(i) + lambda);
        set_alpha(j, lambda == room_j ? lower(j) : alpha(j) - lambda);
        return {lambda, lambda * (slope - lambda * curvature / 2), lambda == wanted};
    }

    // After a whole step both gradients are the same but for rounding. If the last digit said which
    // is larger it would decide on the next pair too, and models would depend on how kernel values are rounded.
    void settle(const PairStep& taken, int64_t i, int64_t j, Extremes& extremes) {
        if (!taken.is_whole || !is_free(i) || !is_free(j)) return;
        const double same = (g(i) + g(j)) / 2;
        const int64_t first = std::min(i, j);
        const auto is_one = [=](int64_t member) { return member == i || member == j; };
        g_[std::size_t(i)] = g_[std::size_t(j)] = same;
        if (is_one(extremes.at_largest)) extremes.largest = same, extremes.at_largest = first;
        if (is_one(extremes.at_smallest)) extremes.smallest = same, extremes.at_smallest = first;
    }

    void set_alpha(int64_t member, double alpha) {
        const std::size_t p = std::size_t(member);
        alpha_[p] = alpha;
        const double rounding = at_bound * cost_[p];
        up_[p] = alpha < upper(member) - rounding ? 0 : -infinity;
        down_[p] = alpha > lower(member) + rounding ? 0 : infinity;
    }

    static int64_t bytes_for(int64_t members) { return members * int64_t(5 * sizeof(double) + 2 * sizeof(float)); }
    int64_t bytes() const { return bytes_for(int64_t(alpha_.capacity())); }

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(alpha_, g_, cost_, diagonal_, y_);
        if constexpr (Snapshot::reads) {
            const std::size_t numbers = alpha_.size();
            must_hold(
                g_.size() == numbers && cost_.size() == numbers && diagonal_.size() == numbers && y_.size() == numbers,
                "the members of a problem differ in number");
            must_hold(are_finite(alpha_) && are_finite(g_) && are_finite(diagonal_), "a coefficient is not finite");
            for (const double y : y_) must_hold(y == -1 || y == 0 || y == 1, "a class is none of two");
            up_.resize(numbers), down_.resize(numbers);
            for (int64_t member = 0; member < size(); ++member) set_alpha(member, alpha(member));
        }
    }

  private:
    static constexpr float infinity = std::numeric_limits<float>::infinity();
    // Of the cost: a coefficient so close to its bound is at it. Otherwise one that rounding has kept from there would
    // decide on the bias alone.
    static constexpr double at_bound = 1e-12;

    double lower(int64_t member) const { return std::min(0.0, cost_[std::size_t(member)] * y_[std::size_t(member)]); }
    double upper(int64_t member) const { return std::max(0.0, cost_[std::size_t(member)] * y_[std::size_t(member)]); }

    LargeVector<double> alpha_, g_, cost_, diagonal_, y_;  // y = 0 where a number is free
    LargeVector<float> up_, down_;
};

// The numbers of those members whose turn is next at either end, the most violating first, among the ones `is_wanted`.
template <class IsWanted>
std::vector<int32_t> next_in_line(const Members& members, const Extremes& at, double tau, std::size_t count,
                                  IsWanted is_wanted) {
    std::vector<std::pair<double, int32_t>> line;
    for (int64_t member = 0; member < members.size(); ++member) {
        const double above = members.can_grow(member) ? members.g(member) - at.smallest : 0;
        const double below = members.can_shrink(member) ? at.largest - members.g(member) : 0;
        const double violation = std::max(above, below);
        if (violation > tau && is_wanted(member)) line.push_back({-violation, int32_t(member)});
    }
    count = std::min(count, line.size());
    std::partial_sort(line.begin(), line.begin() + std::ptrdiff_t(count), line.end());
    std::vector<int32_t> numbers;
    for (std::size_t n = 0; n < count; ++n) numbers.push_back(line[n].second);
    return numbers;
}

}  // namespace larank
