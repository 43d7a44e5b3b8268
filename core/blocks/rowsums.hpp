// Sums of rows of a symmetric matrix of kernel values: the scores that patterns give to all examples.
//
//   S(x_j, y) = sum_i beta_i^y k(x_i, x_j)
//
// Most patterns have coefficients for a few classes only, so each class adds up the rows of its own. That is done for a
// few examples at a time: their values of all patterns stay in cache while the classes pass by.
#pragma once

#include <algorithm>
#include <cstdint>

#include "simd/units.hpp"

namespace larank {

// Rows of the matrix with their coefficients, class by class.
template <class T>
struct RowSums {
    const T* const* rows;
    const double* values;
    const int64_t* starts;
    int64_t classes;
};

// scores[y][j] = the sum, for the examples j from `first` to `last`; `width` is the length of a row of scores.
template <class T>
void sum_up(const RowSums<T>& of, int64_t first, int64_t last, int64_t width, double* scores) {
    constexpr int64_t at_once = values_side_by_side<T>;
    for (int64_t j = first; j < last; j += at_once)
        for (int64_t y = 0; y < of.classes; ++y) {
            const int64_t begin = of.starts[y], end = of.starts[y + 1];
            double* const sums = scores + y * width + j;
            if (j + at_once <= last) {
                units<T>().sum_rows(of.rows + begin, j, of.values + begin, end - begin, sums);
                continue;
            }
            std::fill(sums, scores + y * width + last, 0.0);
            for (int64_t n = begin; n < end; ++n)
                units<T>().add_row_values(of.rows[n] + j, of.values[n], last - j, sums);
        }
}

}  // namespace larank
