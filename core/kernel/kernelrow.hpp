// One row of kernel values against the support vectors of one class: the hot loops of the kernel machines.
//
// A row k holds k(x, x_j) for every pattern slot j, or, gathered, for the members of one class side by side. Gradients
// and coefficients are doubles whatever the precision of the kernel values.
#pragma once

#include <cstdint>

#include "memory/prefetch.hpp"
#include "simd/lanes.hpp"

namespace larank {
inline namespace LARANK_UNIT {

// g += a k
template <class T>
void add_row_values(const T* __restrict k, double a, int64_t count, double* __restrict g) {
    for (int64_t j = 0; j < count; ++j) g[j] += a * double(k[j]);
}

// The same in the precision of the kernel values.
template <class T>
void add_row_in_type(const T* __restrict k, T a, int64_t count, T* __restrict g) {
    for (int64_t j = 0; j < count; ++j) g[j] += a * k[j];
}

// g += a k[slots]
template <class T>
void add_row_values_at(const T* __restrict k, const int32_t* __restrict slots, double a, int64_t count,
                       double* __restrict g) {
    for (int64_t j = 0; j < count; ++j) g[j] += a * double(k[slots[j]]);
}

// sums = sum_n beta_n k_n, of rows k_n from value `at` on: as many as `values_side_by_side`.
template <class T>
void sum_rows(const T* const* rows, int64_t at, const double* __restrict beta, int64_t count, double* __restrict sums) {
    constexpr int64_t width = values_side_by_side<T>, line = 64 / int64_t(sizeof(T)), ahead = 8;
    for (int64_t j = 0; j < width; ++j) sums[j] = 0;
    for (int64_t n = 0; n < count; ++n) {
        if (n + ahead < count)
            for (int64_t j = 0; j < width; j += line) prefetch(rows[n + ahead] + at + j);
        const T* const row = rows[n] + at;
        for (int64_t j = 0; j < width; ++j) sums[j] += beta[n] * double(row[j]);
    }
}

// sum_j beta_j k[slots_j], in sixteen sums that are added up in a fixed order.
template <class T>
double dot_row_at(const T* __restrict k, const int32_t* __restrict slots, const double* __restrict beta,
                  int64_t count) {
    constexpr int64_t side_by_side = 16;
    double sums[side_by_side] = {};
    int64_t j = 0;
    for (; j + side_by_side <= count; j += side_by_side) {
        T values[side_by_side];  // first found, then multiplied: compilers make better code of it
        for (int64_t l = 0; l < side_by_side; ++l) values[l] = k[slots[j + l]];
        for (int64_t l = 0; l < side_by_side; ++l) sums[l] += beta[j + l] * double(values[l]);
    }
    for (int64_t l = 0; j < count; ++j, ++l) sums[l] += beta[j] * double(k[slots[j]]);
    for (int64_t half = side_by_side / 2; half > 0; half /= 2)
        for (int64_t l = 0; l < half; ++l) sums[l] += sums[l + half];
    return sums[0];
}

}  // namespace LARANK_UNIT
}  // namespace larank
