// Inner products of two sets of dense rows, many on both sides, by the fused multiply-adds of AVX-512.
//
// What a library for linear algebra does; but those that NumPy comes with do not know every processor, and then use
// vectors of half the width. Every product is one sum in the order of the features, so it depends on the two rows
// alone: not on their places, nor on which of them is the left one.
//
// Some rows of Z are a panel: all first features side by side, all second ones and so on. Rows of X are read where they
// are, a few at a time; a feature of each meets the panel's. Panel and rows together stay in the second cache.
#pragma once

#ifdef __AVX512F__

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "simd/units.hpp"

namespace larank {
inline namespace LARANK_UNIT {

using Single = __m512;
using Double = __m512d;

inline Single line_of(float x) { return _mm512_set1_ps(x); }
inline Double line_of(double x) { return _mm512_set1_pd(x); }
inline Single add_product(Single x, Single z, Single sum) { return _mm512_fmadd_ps(x, z, sum); }
inline Double add_product(Double x, Double z, Double sum) { return _mm512_fmadd_pd(x, z, sum); }
inline Single load_line(const float* from) { return _mm512_load_ps(from); }
inline Double load_line(const double* from) { return _mm512_load_pd(from); }
inline void store_line(float* to, Single v) { _mm512_store_ps(to, v); }
inline void store_line(double* to, Double v) { _mm512_store_pd(to, v); }
// The first `count` lanes, where the memory need not be aligned.
inline Single load_some(const float* from, int64_t count) {
    return _mm512_maskz_loadu_ps(__mmask16((1u << count) - 1), from);
}
inline Double load_some(const double* from, int64_t count) {
    return _mm512_maskz_loadu_pd(__mmask8((1u << count) - 1), from);
}
inline void store_some(float* to, Single v, int64_t count) {
    _mm512_mask_storeu_ps(to, __mmask16((1u << count) - 1), v);
}
inline void store_some(double* to, Double v, int64_t count) {
    _mm512_mask_storeu_pd(to, __mmask8((1u << count) - 1), v);
}

// Of two lines the lanes whose numbers have the bit `size` set change places: those of the first with those of the
// second that are `size` before.
template <int Size>
inline void exchange(Single& first, Single& second) {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __mmask16 is_upper = _mm512_test_epi32_mask(lane, _mm512_set1_epi32(Size));
    const __m512i low = _mm512_mask_add_epi32(lane, is_upper, lane, _mm512_set1_epi32(16 - Size));
    const __m512i high =
        _mm512_mask_add_epi32(_mm512_add_epi32(lane, _mm512_set1_epi32(Size)), is_upper, lane, _mm512_set1_epi32(16));
    const Single upper = first;
    first = _mm512_permutex2var_ps(upper, low, second);
    second = _mm512_permutex2var_ps(upper, high, second);
}
template <int Size>
inline void exchange(Double& first, Double& second) {
    const __m512i lane = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    const __mmask8 is_upper = _mm512_test_epi64_mask(lane, _mm512_set1_epi64(Size));
    const __m512i low = _mm512_mask_add_epi64(lane, is_upper, lane, _mm512_set1_epi64(8 - Size));
    const __m512i high =
        _mm512_mask_add_epi64(_mm512_add_epi64(lane, _mm512_set1_epi64(Size)), is_upper, lane, _mm512_set1_epi64(8));
    const Double upper = first;
    first = _mm512_permutex2var_pd(upper, low, second);
    second = _mm512_permutex2var_pd(upper, high, second);
}

// As many lines as a line has lanes, as a matrix, transposed: blocks off the diagonal change places.
template <int Size, class Line, std::size_t Count>
inline void transpose(Line (&lines)[Count]) {
#pragma GCC unroll 16
    for (std::size_t i = 0; i < Count; ++i)
        if (!(i & Size)) exchange<Size>(lines[i], lines[i + Size]);
    if constexpr (Size > 1) transpose<Size / 2>(lines);
}

// Rows side by side, zeros in the place of those that are not there.
template <class T>
void pack_panel(const T* Z, int64_t count, int64_t features, T* panel) {
    constexpr int64_t lanes = lane_count<T>;
    for (int64_t first = 0; first < panel_columns<T>; first += lanes)
        for (int64_t k = 0; k < features; k += lanes) {
            const int64_t width = std::min(lanes, features - k);
            decltype(line_of(T())) block[std::size_t(lanes)];
            for (int64_t i = 0; i < lanes; ++i)
                block[i] = first + i < count ? load_some(Z + (first + i) * features + k, width) : line_of(T(0));
            transpose<int(lanes / 2)>(block);
            for (int64_t i = 0; i < width; ++i) store_line(panel + (k + i) * panel_columns<T> + first, block[i]);
        }
}

constexpr int64_t rows_at_once = 8;

// A few rows with a panel, to the first `width` columns of some rows of a tile; `height` of these are there.
template <class T>
void few_with_panel(const T* const* rows, const T* panel, int64_t features, int64_t height, int64_t width, T* out,
                    int64_t stride) {
    constexpr int64_t lanes = lane_count<T>;
    decltype(line_of(T())) sums[rows_at_once][2];
    for (auto& sum : sums) sum[0] = sum[1] = line_of(T(0));
    for (int64_t k = 0; k < features; ++k) {
        const auto left = load_line(panel + k * panel_columns<T>),
                   right = load_line(panel + k * panel_columns<T> + lanes);
#pragma GCC unroll 8
        for (int64_t i = 0; i < rows_at_once; ++i) {
            const auto x = line_of(rows[i][k]);
            sums[i][0] = add_product(x, left, sums[i][0]);
            sums[i][1] = add_product(x, right, sums[i][1]);
        }
    }
    const int64_t second = std::max<int64_t>(0, width - lanes);
#pragma GCC unroll 8
    for (int64_t i = 0; i < rows_at_once; ++i) {
        if (i >= height) break;
        store_some(out + i * stride, sums[i][0], std::min(lanes, width));
        store_some(out + i * stride + lanes, sums[i][1], second);
    }
}

// out = X Z', of rows that lie one after another; `panel` has room for one.
template <class T>
void wide_products(const T* X, const T* Z, int64_t features, T* panel, const Tile<T>& out) {
    for (int64_t j = 0; j < out.columns; j += panel_columns<T>) {
        const int64_t width = std::min(panel_columns<T>, out.columns - j);
        pack_panel(Z + j * features, width, features, panel);
        for (int64_t i = 0; i < out.rows; i += rows_at_once) {
            const int64_t height = std::min(rows_at_once, out.rows - i);
            const T* rows[rows_at_once];  // the last one takes the place of those that are not there
            for (int64_t r = 0; r < rows_at_once; ++r) rows[r] = X + (i + std::min(r, height - 1)) * features;
            few_with_panel(rows, panel, features, height, width, out.values + i * out.stride + j, out.stride);
        }
    }
}

}  // namespace LARANK_UNIT
}  // namespace larank

#endif
