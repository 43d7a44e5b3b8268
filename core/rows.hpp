// One example times W, and W += x coefficients': the linear hot loop.
//
// W is stored [feature][class], each feature's classes padded to a multiple of 64 bytes. The scores of up to eight
// vectors of classes stay in registers while the features of the example go by; more classes take further sweeps
// over the example, which is in cache by then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "dispatch/lanes.hpp"

namespace larank {
inline namespace LARANK_UNIT {

constexpr int64_t prefetch_distance = 8;

// Where the j-th stored value of a row lives in W. A dense row stores every feature, a CSR row names its columns.
struct EveryColumn {
    int64_t operator[](int64_t j) const { return j; }
};

template <class Columns>
inline void prefetch_row(const Columns& columns, int64_t j, const void* W, int64_t row_bytes, int64_t bytes) {
    const char* line = static_cast<const char*>(W) + int64_t(columns[j]) * row_bytes;
    for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(line + at);
}

template <std::size_t Vectors, class T, class Columns>
void scores_sweep(const T* values, Columns columns, int64_t count, const T* W, int64_t lanes, T* out) {
    constexpr std::size_t width = lane_count<T>;
    Lanes<T> score[Vectors];
    for (std::size_t v = 0; v < Vectors; ++v) score[v] = load(out + v * width);
    auto accumulate = [&](int64_t j) {
        const T* w = W + int64_t(columns[j]) * lanes;
        const Lanes<T> x = broadcast(values[j]);
        for (std::size_t v = 0; v < Vectors; ++v) score[v] = score[v] + x * load(w + v * width);
    };
    int64_t j = 0;
    for (; j + prefetch_distance < count; ++j) {
        prefetch_row(columns, j + prefetch_distance, W, lanes * int64_t{sizeof(T)}, int64_t{Vectors} * 64);
        accumulate(j);
    }
    for (; j < count; ++j) accumulate(j);
    for (std::size_t v = 0; v < Vectors; ++v) store(out + v * width, score[v]);
}

template <std::size_t Vectors, class T, class Columns>
void add_sweep(const T* values, Columns columns, int64_t count, const T* coefficients, int64_t lanes, T* W) {
    constexpr std::size_t width = lane_count<T>;
    Lanes<T> coefficient[Vectors];
    for (std::size_t v = 0; v < Vectors; ++v) coefficient[v] = load(coefficients + v * width);
    for (int64_t j = 0; j < count; ++j) {
        T* w = W + int64_t(columns[j]) * lanes;
        const Lanes<T> x = broadcast(values[j]);
        for (std::size_t v = 0; v < Vectors; ++v) store(w + v * width, load(w + v * width) + x * coefficient[v]);
    }
}

// Calls sweep.template operator()<Vectors>(first lane) until all lanes are covered.
template <class T, class Sweep>
void for_each_sweep(int64_t lanes, Sweep sweep) {
    int64_t first = 0;
    while (first < lanes) {
        const int64_t vectors = (lanes - first) / lane_count<T>;
        switch (vectors) {
            case 1: sweep(std::integral_constant<std::size_t, 1>{}, first); return;
            case 2: sweep(std::integral_constant<std::size_t, 2>{}, first); return;
            case 3: sweep(std::integral_constant<std::size_t, 3>{}, first); return;
            case 4: sweep(std::integral_constant<std::size_t, 4>{}, first); return;
            case 5: sweep(std::integral_constant<std::size_t, 5>{}, first); return;
            case 6: sweep(std::integral_constant<std::size_t, 6>{}, first); return;
            case 7: sweep(std::integral_constant<std::size_t, 7>{}, first); return;
            default: sweep(std::integral_constant<std::size_t, 8>{}, first); first += 8 * lane_count<T>;
        }
    }
}

// out += x' W over all lanes.
template <class T, class Columns>
void add_scores(const T* values, Columns columns, int64_t count, const T* W, int64_t lanes, T* out) {
    for_each_sweep<T>(lanes, [=](auto vectors, int64_t first) {
        scores_sweep<decltype(vectors)::value>(values, columns, count, W + first, lanes, out + first);
    });
}

// W += x coefficients' over all lanes.
template <class T, class Columns>
void add_row(const T* values, Columns columns, int64_t count, const T* coefficients, int64_t lanes, T* W) {
    for_each_sweep<T>(lanes, [=](auto vectors, int64_t first) {
        add_sweep<decltype(vectors)::value>(values, columns, count, coefficients + first, lanes, W + first);
    });
}

// The same two for a few named classes, where reading whole rows of W would cost more than it serves.
template <class T, class Columns>
void add_scores_of(const T* values, Columns columns, int64_t count, const T* W, int64_t lanes, const int32_t* classes,
                   int64_t class_count, T* out) {
    for (int64_t j = 0; j < count; ++j) {
        const T* w = W + int64_t(columns[j]) * lanes;
        for (int64_t c = 0; c < class_count; ++c) out[c] += values[j] * w[classes[c]];
    }
}

template <class T, class Columns>
void add_row_of(const T* values, Columns columns, int64_t count, const T* coefficients, const int32_t* classes,
                int64_t class_count, int64_t lanes, T* W) {
    for (int64_t j = 0; j < count; ++j) {
        T* w = W + int64_t(columns[j]) * lanes;
        for (int64_t c = 0; c < class_count; ++c) w[classes[c]] += values[j] * coefficients[c];
    }
}

}  // namespace LARANK_UNIT
}  // namespace larank
