// Sums of rows of a symmetric matrix of kernel values: the scores that patterns give to all examples.
//
//   S(x_j, y) = sum_i beta_i^y k(x_i, x_j)
//
// Most patterns have coefficients for a few classes only, so each is added where it has one. That is done for a stretch
// of examples at a time, whose scores stay in cache while the patterns pass by.
#pragma once

#include <algorithm>
#include <cstdint>

#include "simd/units.hpp"

namespace larank {

// Coefficients of patterns, which are rows of the matrix.
struct Coefficients {
    const int64_t* rows;
    const double* values;
    const int32_t* columns;
    const int64_t* starts;
    int64_t patterns;
};

// scores[y][j] += the sum, for the examples j from `first` to `last`; `width` is the length of a row of either table.
template <class T>
void add_rows(const T* matrix, int64_t width, const Coefficients& of, int64_t first, int64_t last, double* scores) {
    constexpr int64_t stretch = 512;
    for (; first < last; first += stretch) {
        const int64_t count = std::min(stretch, last - first);
        for (int64_t i = 0; i < of.patterns; ++i)
            for (int64_t e = of.starts[i]; e < of.starts[i + 1]; ++e)
                units<T>().add_row_values(matrix + of.rows[i] * width + first, of.values[e], count,
                                          scores + of.columns[e] * width + first);
    }
}

}  // namespace larank
