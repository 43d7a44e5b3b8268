// Squared distances whose digits a matrix product loses: |x|^2 + |z|^2 - 2 x'z is a small difference of large numbers
// if x and z are near to each other, compared with their norms.
//
// A kernel exp(-gamma |x - z|^2) needs these digits only where its value is not almost zero, and where the error of the
// exponent, a few units of rounding of gamma (|x|^2 + |z|^2), is larger than the rounding of the value itself. Such
// pairs are found before the kernel's map is applied. Their distances are computed from differences of the features.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "simd/units.hpp"

namespace larank {

// The positions i * columns + j of the pairs whose distance has to be computed from differences. With
// E = gamma (|x|^2 + |z|^2), the value k of any other pair is off by at most about 16 units of rounding: either E is
// at most 16, or gamma |x - z|^2 exceeds 2 (sqrt(E / 16) - 1) >= log(E / 16), and so k E < 16.
template <class T>
std::vector<int64_t> cancelled_distances(const Tile<T>& products, const MapArguments<T>& with) {
    constexpr double harmless = 16, most = 1.0 / 32;  // the second is the maximum of 2 (sqrt(E / 16) - 1) / E
    constexpr double rounding = 32 * double(std::numeric_limits<T>::epsilon());  // of a distance over the norms
    std::vector<int64_t> found;
    if (!products.rows || !products.columns) return found;
    const double largest = double(*std::max_element(with.row_norms, with.row_norms + products.rows)) +
                           double(*std::max_element(with.column_norms, with.column_norms + products.columns));
    if (!(double(with.gamma) * largest > harmless)) return found;
    for (int64_t i = 0; i < products.rows; ++i) {
        const T* row = products.values + i * products.stride;
        for (int64_t j = 0; j < products.columns; ++j) {
            const T norms = with.row_norms[i] + with.column_norms[j], distance = norms - (row[j] + row[j]);
            if (!(distance <= T(most + rounding) * norms)) continue;
            const double exponent = double(with.gamma) * double(norms);
            if (exponent <= harmless) continue;
            const double near = exponent < 1e30 ? 2 * (std::sqrt(exponent / harmless) - 1) / exponent : 0.0;
            if (double(distance) <= (near + rounding) * double(norms)) found.push_back(i * products.columns + j);
        }
    }
    return found;
}

// |x - z|^2 of pairs of rows, in double precision.
template <class T>
void squared_distances(const T* X, const T* Z, int64_t features, const int64_t* rows, const int64_t* others,
                       int64_t pairs, double* out) {
    for (int64_t n = 0; n < pairs; ++n) {
        const T *x = X + rows[n] * features, *z = Z + others[n] * features;
        double sums[4] = {};  // a fixed order of summation, in which four additions run at once
        int64_t f = 0;
        for (; f + 4 <= features; f += 4)
            for (int64_t lane = 0; lane < 4; ++lane) {
                const double difference = double(x[f + lane]) - double(z[f + lane]);
                sums[lane] += difference * difference;
            }
        for (; f < features; ++f) sums[0] += (double(x[f]) - double(z[f])) * (double(x[f]) - double(z[f]));
        out[n] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
}

}  // namespace larank
