// The gradient of a binary dual after a step on two coefficients, and the choice of the next two: the hot loops of
// LaSVM.
//
// `up` and `down` say which coefficients may grow and shrink: 0 where they may, -infinity and +infinity where not. What
// is chosen is the first among equals, whatever the width of the machine's vectors.
#pragma once

#include <cstdint>
#include <limits>

#include "simd/units.hpp"

namespace larank {
inline namespace LARANK_UNIT {

// The largest and the smallest value of a sequence and where they are, in sixteen lanes side by side.
class ExtremeLanes {
  public:
    static constexpr int64_t lanes = 16;

    ExtremeLanes() {
        for (int64_t l = 0; l < lanes; ++l) {
            largest_[l] = -std::numeric_limits<double>::infinity(), at_largest_[l] = -1;
            smallest_[l] = std::numeric_limits<double>::infinity(), at_smallest_[l] = -1;
        }
    }

    // One value in lane l, for its chances at both ends.
    void take(int64_t l, int64_t s, double high, double low) {
        const bool is_larger = high > largest_[l], is_smaller = low < smallest_[l];
        largest_[l] = is_larger ? high : largest_[l];
        at_largest_[l] = is_larger ? s : at_largest_[l];
        smallest_[l] = is_smaller ? low : smallest_[l];
        at_smallest_[l] = is_smaller ? s : at_smallest_[l];
    }

    Extremes result() const {
        Extremes best;
        for (int64_t l = 0; l < lanes; ++l) {
            if (at_largest_[l] >= 0 && (best.at_largest < 0 || largest_[l] > best.largest ||
                                        (largest_[l] == best.largest && at_largest_[l] < best.at_largest)))
                best.largest = largest_[l], best.at_largest = at_largest_[l];
            if (at_smallest_[l] >= 0 && (best.at_smallest < 0 || smallest_[l] < best.smallest ||
                                         (smallest_[l] == best.smallest && at_smallest_[l] < best.at_smallest)))
                best.smallest = smallest_[l], best.at_smallest = at_smallest_[l];
        }
        return best;
    }

  private:
    double largest_[lanes], smallest_[lanes];
    int64_t at_largest_[lanes], at_smallest_[lanes];
};

template <class Value>
Extremes extremes_of(Value value, const float* __restrict up, const float* __restrict down, int64_t count) {
    constexpr int64_t lanes = ExtremeLanes::lanes;
    ExtremeLanes found;
    int64_t s = 0;
    for (; s + lanes <= count; s += lanes)
        for (int64_t l = 0; l < lanes; ++l) {
            const double g = value(s + l);
            found.take(l, s + l, g + double(up[s + l]), g + double(down[s + l]));
        }
    for (int64_t l = 0; s < count; ++s, ++l) {
        const double g = value(s);
        found.take(l, s, g + double(up[s]), g + double(down[s]));
    }
    return found.result();
}

// The largest g that may grow and the smallest that may shrink.
inline Extremes find_extremes(const double* g, const float* up, const float* down, int64_t count) {
    return extremes_of([=](int64_t s) { return g[s]; }, up, down, count);
}

// g_s -= step (k_is - k_js), and the extremes of what it has become.
template <class T>
Extremes move_gradient(const T* __restrict ki, const T* __restrict kj, double step, const float* up, const float* down,
                       int64_t count, double* __restrict g) {
    return extremes_of([=](int64_t s) { return g[s] -= step * (double(ki[s]) - double(kj[s])); }, up, down, count);
}

// The same where the values are those of some slots of the rows.
template <class T>
Extremes move_gradient_at(const T* __restrict ki, const T* __restrict kj, const int32_t* __restrict slots, double step,
                          const float* up, const float* down, int64_t count, double* __restrict g) {
    return extremes_of([=](int64_t s) { return g[s] -= step * (double(ki[slots[s]]) - double(kj[slots[s]])); }, up,
                       down, count);
}

// The partner with which a step from the largest gradient, that of i, gains most: (g_i - g_s)^2 / |x_i - x_s|^2 over
// those that may shrink and are smaller; -1 if there is none.
template <class T>
int64_t best_partner(const T* __restrict ki, const double* __restrict diagonal, double kii, double gi,
                     const double* __restrict g, const float* __restrict down, int64_t count) {
    constexpr int64_t lanes = ExtremeLanes::lanes;
    ExtremeLanes found;
    const auto gain = [=](int64_t s) {
        const double difference = gi - g[s] - double(down[s]);
        const double size = kii + diagonal[s], distance = size - 2 * double(ki[s]);
        const double least = rounding_share * (size < 0 ? -size : size);
        const double gained = difference * difference / (distance > least ? distance : least);
        return difference > 0 ? gained : -std::numeric_limits<double>::infinity();
    };
    int64_t s = 0;
    for (; s + lanes <= count; s += lanes)
        for (int64_t l = 0; l < lanes; ++l) found.take(l, s + l, gain(s + l), 0.0);
    for (int64_t l = 0; s < count; ++s, ++l) found.take(l, s, gain(s), 0.0);
    return found.result().at_largest;
}

// sum_s beta_s k_s, in sixteen sums that are added up in a fixed order.
template <class T>
double dot_row(const T* __restrict k, const double* __restrict beta, int64_t count) {
    constexpr int64_t lanes = ExtremeLanes::lanes;
    double sums[lanes] = {};
    int64_t s = 0;
    for (; s + lanes <= count; s += lanes)
        for (int64_t l = 0; l < lanes; ++l) sums[l] += beta[s + l] * double(k[s + l]);
    for (int64_t l = 0; s < count; ++s, ++l) sums[l] += beta[s] * double(k[s]);
    for (int64_t half = lanes / 2; half > 0; half /= 2)
        for (int64_t l = 0; l < half; ++l) sums[l] += sums[l + half];
    return sums[0];
}

}  // namespace LARANK_UNIT
}  // namespace larank
