// The product of a vector and a matrix in which addition is the product and the maximum the sum: one step of Viterbi.
#pragma once

#include <cstdint>
#include <limits>

#include "simd/lanes.hpp"

namespace larank {
inline namespace LARANK_UNIT {

// best[y] = max_f (scores[f stride] + transitions[f][y]), and the first f that attains it.
template <std::size_t Vectors, class T>
void max_plus_sweep(const T* scores, int64_t stride, const T* transitions, int64_t count, int64_t lanes, T* best,
                    T* argument) {
    constexpr std::size_t width = lane_count<T>;
    Lanes<T> most[Vectors], at[Vectors];
    for (std::size_t v = 0; v < Vectors; ++v)
        most[v] = broadcast(-std::numeric_limits<T>::infinity()), at[v] = broadcast(T(0));
    for (int64_t f = 0; f < count; ++f) {
        const Lanes<T> score = broadcast(scores[f * stride]), index = broadcast(T(f));
        const T* row = transitions + f * lanes;
        for (std::size_t v = 0; v < Vectors; ++v) {
            const Lanes<T> sum = score + load(row + v * width);
            const Mask<T> is_better = sum > most[v];
            most[v] = select(is_better, sum, most[v]);
            at[v] = select(is_better, index, at[v]);
        }
    }
    for (std::size_t v = 0; v < Vectors; ++v) store(best + v * width, most[v]), store(argument + v * width, at[v]);
}

template <class T>
void max_plus(const T* scores, int64_t stride, const T* transitions, int64_t count, int64_t lanes, T* best,
              T* argument) {
    constexpr int64_t width = lane_count<T>;
    int64_t first = 0;
    while (first < lanes) {
        const T* from = transitions + first;
        const auto sweep = [&](auto vectors) {
            constexpr std::size_t n = decltype(vectors)::value;
            max_plus_sweep<n>(scores, stride, from, count, lanes, best + first, argument + first);
            first += int64_t{n} * width;
        };
        switch ((lanes - first) / width) {
            case 1: sweep(std::integral_constant<std::size_t, 1>{}); break;
            case 2: sweep(std::integral_constant<std::size_t, 2>{}); break;
            case 3: sweep(std::integral_constant<std::size_t, 3>{}); break;
            default: sweep(std::integral_constant<std::size_t, 4>{});
        }
    }
}

}  // namespace LARANK_UNIT
}  // namespace larank
