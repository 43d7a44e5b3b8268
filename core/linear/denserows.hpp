// Several dense examples at once times W, and W += X' G: a hot loop.
//
// A row of W is loaded once for all of them. See linear/rows.hpp for how W is stored.
#pragma once

#include <cstddef>
#include <cstdint>

#include "linear/rows.hpp"
#include "simd/lanes.hpp"

namespace larank {
inline namespace LARANK_UNIT {

// Examples whose sums fit into registers together, by the vectors of classes in a sweep.
constexpr std::size_t examples_at_once(std::size_t vectors) { return vectors == 1 ? 8 : vectors == 2 ? 4 : 1; }

template <std::size_t Examples, std::size_t Vectors, class T>
void dense_scores_sweep(const T* X, int64_t features, const T* W, int64_t lanes, T* F) {
    constexpr std::size_t width = lane_count<T>;
    Lanes<T> sums[Examples][Vectors];
    for (std::size_t i = 0; i < Examples; ++i)
        for (std::size_t v = 0; v < Vectors; ++v) sums[i][v] = broadcast(T(0));
    for (int64_t j = 0; j < features; ++j) {
        Lanes<T> w[Vectors];
        for (std::size_t v = 0; v < Vectors; ++v) w[v] = load(W + j * lanes + int64_t(v * width));
        for (std::size_t i = 0; i < Examples; ++i) {
            const Lanes<T> x = broadcast(X[int64_t(i) * features + j]);
            for (std::size_t v = 0; v < Vectors; ++v) sums[i][v] = sums[i][v] + x * w[v];
        }
    }
    for (std::size_t i = 0; i < Examples; ++i)
        for (std::size_t v = 0; v < Vectors; ++v) store(F + int64_t(i) * lanes + int64_t(v * width), sums[i][v]);
}

template <std::size_t Examples, std::size_t Vectors, class T>
void dense_add_sweep(const T* X, int64_t features, const T* G, int64_t lanes, T* W) {
    constexpr std::size_t width = lane_count<T>;
    Lanes<T> g[Examples][Vectors];
    for (std::size_t i = 0; i < Examples; ++i)
        for (std::size_t v = 0; v < Vectors; ++v) g[i][v] = load(G + int64_t(i) * lanes + int64_t(v * width));
    for (int64_t j = 0; j < features; ++j)
        for (std::size_t v = 0; v < Vectors; ++v) {
            T* const at = W + j * lanes + int64_t(v * width);
            Lanes<T> w = load(at);
            for (std::size_t i = 0; i < Examples; ++i) w = w + broadcast(X[int64_t(i) * features + j]) * g[i][v];
            store(at, w);
        }
}

// Calls sweep(number of examples, first example) until all are covered.
template <std::size_t AtOnce, class Sweep>
void for_each_group(int64_t count, Sweep sweep) {
    int64_t i = 0;
    for (; i + int64_t{AtOnce} <= count; i += int64_t{AtOnce}) sweep(std::integral_constant<std::size_t, AtOnce>{}, i);
    for (; i < count; ++i) sweep(std::integral_constant<std::size_t, 1>{}, i);
}

template <class T>
void dense_scores(const T* X, int64_t count, int64_t features, const T* W, int64_t lanes, T* F) {
    for_each_sweep<T>(lanes, [&](auto vectors, int64_t first) {
        for_each_group<examples_at_once(decltype(vectors)::value)>(count, [&](auto examples, int64_t i) {
            dense_scores_sweep<decltype(examples)::value, decltype(vectors)::value>(
                X + i * features, features, W + first, lanes, F + i * lanes + first);
        });
    });
}

template <class T>
void dense_add(const T* X, int64_t count, int64_t features, const T* G, int64_t lanes, T* W) {
    for_each_sweep<T>(lanes, [&](auto vectors, int64_t first) {
        for_each_group<examples_at_once(decltype(vectors)::value)>(count, [&](auto examples, int64_t i) {
            dense_add_sweep<decltype(examples)::value, decltype(vectors)::value>(
                X + i * features, features, G + i * lanes + first, lanes, W + first);
        });
    });
}

}  // namespace LARANK_UNIT
}  // namespace larank
