// The features of a block of sparse examples, one after the other: F += X V and W += X' G, a hot loop.
//
// A feature's row of V stays in registers while it is added to the scores of its examples, and so does its row of W
// while it is summed up. The examples of a block are few enough for F and G to be in cache.
#pragma once

#include <cstddef>
#include <cstdint>

#include "linear/rows.hpp"
#include "simd/lanes.hpp"

namespace larank {
inline namespace LARANK_UNIT {

template <class T>
void add_columns(const Columns<T>& X, const T* V, int64_t lanes, T* F) {
    for_each_sweep<T>(lanes, [&](auto vectors, int64_t first) {
        constexpr std::size_t count = decltype(vectors)::value, width = lane_count<T>;
        for (int64_t c = 0; c < X.count; ++c) {
            const T* const v = V + int64_t(X.features[c]) * lanes + first;
            Lanes<T> row[count];
            for (std::size_t m = 0; m < count; ++m) row[m] = load(v + m * width);
            for (int64_t e = X.starts[c]; e < X.starts[c + 1]; ++e) {
                T* const f = F + int64_t(X.rows[e]) * lanes + first;
                const Lanes<T> x = broadcast(X.values[e]);
                for (std::size_t m = 0; m < count; ++m) store(f + m * width, load(f + m * width) + x * row[m]);
            }
        }
    });
}

template <class T>
void sum_columns(const Columns<T>& X, const T* G, int64_t lanes, T* W) {
    for_each_sweep<T>(lanes, [&](auto vectors, int64_t first) {
        constexpr std::size_t count = decltype(vectors)::value, width = lane_count<T>;
        for (int64_t c = 0; c < X.count; ++c) {
            T* const w = W + int64_t(X.features[c]) * lanes + first;
            Lanes<T> sum[count];
            for (std::size_t m = 0; m < count; ++m) sum[m] = load(w + m * width);
            for (int64_t e = X.starts[c]; e < X.starts[c + 1]; ++e) {
                const T* const g = G + int64_t(X.rows[e]) * lanes + first;
                const Lanes<T> x = broadcast(X.values[e]);
                for (std::size_t m = 0; m < count; ++m) sum[m] = sum[m] + x * load(g + m * width);
            }
            for (std::size_t m = 0; m < count; ++m) store(w + m * width, sum[m]);
        }
    });
}

}  // namespace LARANK_UNIT
}  // namespace larank
