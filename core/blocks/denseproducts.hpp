// Inner products of two sets of dense rows, where one set is small or there are few features.
//
// A general matrix product copies both sides into panels first, which takes longer than multiplying if each copy serves
// a few products only. Here some rows of the left side at a time are turned to columns, and rows on the right meet them
// as they are, like examples meet W in the hot unit of the linear solvers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "memory/aligned.hpp"
#include "simd/units.hpp"

namespace larank {

// out = X Z', of rows that lie one after another.
template <class T>
void dense_products(const T* X, const T* Z, int64_t features, const Tile<T>& out) {
    constexpr int64_t most = lane_count<T>;      // rows of the left side at a time
    constexpr int64_t together = lane_count<T>;  // so that rows of `out` are written a cache line at a time
    AlignedArray<T> columns(std::max<int64_t>(1, features) * most), found(together * most);
    for (int64_t first = 0; first < out.rows; first += most) {
        const int64_t rows = std::min(most, out.rows - first);
        for (int64_t i = 0; i < most; ++i)
            for (int64_t f = 0; f < features; ++f)
                columns.data()[f * most + i] = i < rows ? X[(first + i) * features + f] : T(0);
        for (int64_t j = 0; j < out.columns; j += together) {
            const int64_t count = std::min(together, out.columns - j);
            units<T>().dense_scores(Z + j * features, count, features, columns.data(), most, found.data());
            for (int64_t i = 0; i < rows; ++i)
                for (int64_t b = 0; b < count; ++b)
                    out.values[(first + i) * out.stride + j + b] = found.data()[b * most + i];
        }
    }
}

}  // namespace larank
