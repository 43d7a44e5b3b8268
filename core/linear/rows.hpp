// One example times W, and W += x coefficients': the linear hot loop.
//
// W is stored [feature][class], each feature's classes padded to a multiple of 64 bytes. The scores of up to eight
// vectors of classes stay in registers while the features of the example go by; more classes take further sweeps
// over the example, which is in cache by then.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "memory/prefetch.hpp"
#include "simd/lanes.hpp"

namespace larank {
inline namespace LARANK_UNIT {

// Where the j-th stored value of a row lives in W. A dense row stores every feature, a CSR row names its columns.
struct EveryColumn {
    int64_t operator[](int64_t j) const { return j; }
};

template <std::size_t Vectors, class Sum, class T, class Columns>
void scores_sweep(const T* values, Columns columns, int64_t count, const T* W, int64_t lanes, bool prefetch_weights,
                  Sum* out) {
    constexpr std::size_t width = lane_count<Sum>;
    // Few vectors leave registers for several sums side by side, so that none waits for the addition before it.
    constexpr std::size_t chains = Vectors == 1 ? 4 : Vectors <= 3 ? 2 : 1;
    Lanes<Sum> score[chains][Vectors];
    for (std::size_t c = 0; c < chains; ++c)
        for (std::size_t v = 0; v < Vectors; ++v) score[c][v] = c ? broadcast(Sum(0)) : load(out + v * width);
    auto accumulate = [&](int64_t j, std::size_t chain) {
        const T* w = W + int64_t(columns[j]) * lanes;
        const Lanes<Sum> x = broadcast(Sum(values[j]));
        for (std::size_t v = 0; v < Vectors; ++v) score[chain][v] = score[chain][v] + x * load_as<Sum>(w + v * width);
    };
    int64_t j = 0;
    if (prefetch_weights)
        for (; j + prefetch_distance + int64_t{chains} <= count; j += int64_t{chains})
            for (std::size_t c = 0; c < chains; ++c) {
                const T* w = W + int64_t(columns[j + prefetch_distance + int64_t(c)]) * lanes;
                for (std::size_t v = 0; v < Vectors; ++v) prefetch(w + v * width);
                accumulate(j + int64_t(c), c);
            }
    for (; j + int64_t{chains} <= count; j += int64_t{chains})
        for (std::size_t c = 0; c < chains; ++c) accumulate(j + int64_t(c), c);
    for (std::size_t c = 0; j < count; ++j, ++c) accumulate(j, c);
    for (std::size_t v = 0; v < Vectors; ++v) {
        for (std::size_t c = 1; c < chains; ++c) score[0][v] = score[0][v] + score[c][v];
        store(out + v * width, score[0][v]);
    }
}

// Adds to the vectors of each row of W that begin at these lanes.
template <std::size_t Vectors, class T, class Columns>
void add_sweep(const T* values, Columns columns, int64_t count, const T* coefficients, const int64_t* first_lanes,
               int64_t lanes, T* W) {
    Lanes<T> coefficient[Vectors];
    for (std::size_t v = 0; v < Vectors; ++v) coefficient[v] = load(coefficients + first_lanes[v]);
    for (int64_t j = 0; j < count; ++j) {
        T* w = W + int64_t(columns[j]) * lanes;
        const Lanes<T> x = broadcast(values[j]);
        for (std::size_t v = 0; v < Vectors; ++v)
            store(w + first_lanes[v], load(w + first_lanes[v]) + x * coefficient[v]);
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

// Calls use(columns) with the columns of x in the form they are stored in.
template <class T, class Use>
void with_columns(const Row<T>& x, Use use) {
    if (x.columns32)
        use(x.columns32);
    else if (x.columns64)
        use(x.columns64);
    else
        use(EveryColumn{});
}

// Products are summed up in the type of `out`. `flatten`: all of it in one function, for where rows are short the calls
// take as long as the work.
template <class Sum, class T>
__attribute__((flatten)) void scores(const Row<T>& x, const T* W, int64_t lanes, bool prefetch_weights, Sum* out) {
    const T* constant = W + x.intercept_row * lanes;
    for (int64_t m = 0; m < lanes; ++m) out[m] = x.intercept != 0 ? Sum(x.intercept * constant[m]) : Sum(0);
    with_columns(x, [&](auto columns) {
        for_each_sweep<Sum>(lanes, [&](auto vectors, int64_t first) {
            scores_sweep<decltype(vectors)::value>(x.values, columns, x.count, W + first, lanes, prefetch_weights,
                                                   out + first);
        });
    });
}

// A step changes few of many classes: vectors of which no coefficient is other than 0 are left alone, so that their
// cache lines need not be written back.
template <class T>
__attribute__((flatten)) void add_row(const Row<T>& x, const T* coefficients, int64_t lanes, T* W) {
    constexpr int64_t width = lane_count<T>;
    if (x.intercept != 0)
        for (int64_t m = 0; m < lanes; ++m) W[x.intercept_row * lanes + m] += x.intercept * coefficients[m];
    const auto changes = [&](int64_t lane) {
        return std::any_of(coefficients + lane, coefficients + lane + width, [](T c) { return c != 0; });
    };
    with_columns(x, [&](auto columns) {
        int64_t lane = 0;
        while (lane < lanes) {
            int64_t first_lanes[8], vectors = 0;
            for (; lane < lanes && vectors < 8; lane += width)
                if (changes(lane)) first_lanes[vectors++] = lane;
            for_each_sweep<T>(vectors * width, [&](auto sweep_vectors, int64_t) {
                add_sweep<decltype(sweep_vectors)::value>(x.values, columns, x.count, coefficients, first_lanes, lanes,
                                                          W);
            });
        }
    });
}

// The scores of two classes, kept in registers.
template <class T, class Columns>
void scores_of_two(const Row<T>& x, Columns columns, const T* W, int64_t lanes, const int32_t* classes, T* out) {
    const T *first = W + classes[0], *second = W + classes[1];
    T one = out[0], two = out[1];
    for (int64_t j = 0; j < x.count; ++j) {
        if (j + prefetch_distance < x.count) {
            const int64_t ahead = int64_t(columns[j + prefetch_distance]) * lanes;
            prefetch(first + ahead), prefetch(second + ahead);
        }
        const int64_t row = int64_t(columns[j]) * lanes;
        one += x.values[j] * first[row];
        two += x.values[j] * second[row];
    }
    out[0] = one, out[1] = two;
}

template <class T>
void scores_of(const Row<T>& x, const T* W, int64_t lanes, const int32_t* classes, int64_t count, T* out) {
    const T* constant = W + x.intercept_row * lanes;
    for (int64_t c = 0; c < count; ++c) out[c] = x.intercept != 0 ? x.intercept * constant[classes[c]] : T(0);
    with_columns(x, [&](auto columns) {
        if (count == 2) return scores_of_two(x, columns, W, lanes, classes, out);
        for (int64_t j = 0; j < x.count; ++j) {
            if (j + prefetch_distance < x.count) {
                const T* ahead = W + int64_t(columns[j + prefetch_distance]) * lanes;
                for (int64_t c = 0; c < count; ++c) prefetch(ahead + classes[c]);
            }
            const T* w = W + int64_t(columns[j]) * lanes;
            for (int64_t c = 0; c < count; ++c) out[c] += x.values[j] * w[classes[c]];
        }
    });
}

template <class T>
void add_row_of(const Row<T>& x, const T* coefficients, const int32_t* classes, int64_t count, int64_t lanes, T* W) {
    const auto add = [&](int64_t row, T value) {
        for (int64_t c = 0; c < count; ++c) W[row * lanes + classes[c]] += value * coefficients[c];
    };
    if (x.intercept != 0) add(x.intercept_row, x.intercept);
    with_columns(x, [&](auto columns) {
        for (int64_t j = 0; j < x.count; ++j) add(int64_t(columns[j]), x.values[j]);
    });
}

}  // namespace LARANK_UNIT
}  // namespace larank
