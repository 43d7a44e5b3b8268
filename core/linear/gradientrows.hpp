// The hot loops of stochastic gradient descent: one example against weights with or without a diagonal scaling.
//
// Weights of several functions are stored [feature][function], padded, see linear/rows.hpp; those of a single function
// one feature after the other, so that vectors run over features. Sums over features have the same order in all units.
#pragma once

#include <cstdint>

#include "linear/rows.hpp"
#include "simd/lanes.hpp"

namespace larank {
inline namespace LARANK_UNIT {

template <bool Fetches, class T>
T dot_dense(const T* x, const T* w, int64_t count, const T* ahead) {
    constexpr int64_t width = lane_count<T>, chains = 4;
    Lanes<T> sums[chains];
    for (Lanes<T>& each : sums) each = broadcast(T(0));
    int64_t j = 0;
    for (; j + chains * width <= count; j += chains * width)
        for (int64_t c = 0; c < chains; ++c) {
            if constexpr (Fetches) prefetch(ahead + j + c * width);
            sums[c] = sums[c] + load(x + j + c * width) * load(w + j + c * width);
        }
    for (; j + width <= count; j += width) {
        if constexpr (Fetches) prefetch(ahead + j);
        sums[0] = sums[0] + load(x + j) * load(w + j);
    }
    T tail = 0;
    for (; j < count; ++j) tail += x[j] * w[j];
    return sum((sums[0] + sums[1]) + (sums[2] + sums[3])) + tail;
}

template <class T, class Columns>
T dot_listed(const T* x, Columns columns, const T* w, int64_t count) {
    T one = 0, two = 0, three = 0, four = 0;
    int64_t j = 0;
    for (; j + 4 <= count; j += 4) {
        one += x[j] * w[columns[j]];
        asm volatile("");  // lest the compiler gathers four values by one instruction, which takes twice as long
        two += x[j + 1] * w[columns[j + 1]];
        three += x[j + 2] * w[columns[j + 2]];
        four += x[j + 3] * w[columns[j + 3]];
    }
    for (; j < count; ++j) one += x[j] * w[columns[j]];
    return (one + two) + (three + four);
}

// x' w for a single function.
template <class T>
T dot_one(const Row<T>& x, const T* w) {
    const T constant = x.intercept != 0 ? x.intercept * w[x.intercept_row] : T(0);
    if (x.columns32) return constant + dot_listed(x.values, x.columns32, w, x.count);
    if (x.columns64) return constant + dot_listed(x.values, x.columns64, w, x.count);
    return constant + (x.dense_ahead ? dot_dense<true>(x.values, w, x.count, x.dense_ahead)
                                     : dot_dense<false>(x.values, w, x.count, x.values));
}

// The same, summed up in double precision.
template <class T>
double dot_one_in_double(const Row<T>& x, const T* w) {
    constexpr int64_t chains = 8;
    double sums[chains] = {};
    with_columns(x, [&](auto columns) {
        int64_t j = 0;
        for (; j + chains <= x.count; j += chains)
            for (int64_t c = 0; c < chains; ++c) sums[c] += double(x.values[j + c]) * double(w[columns[j + c]]);
        for (; j < x.count; ++j) sums[0] += double(x.values[j]) * double(w[columns[j]]);
    });
    if (x.intercept != 0) sums[0] += double(x.intercept) * double(w[x.intercept_row]);
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

// Calls vectors(j) for whole vectors of features, and rest(j) for those left over.
template <class T, class Vectors, class Rest>
void for_each_vector(int64_t count, Vectors vectors, Rest rest) {
    int64_t j = 0;
    for (; j + lane_count<T> <= count; j += lane_count<T>) vectors(j);
    for (; j < count; ++j) rest(j);
}

template <class T>
bool is_dense(const Row<T>& x) {
    return !x.columns32 && !x.columns64;
}

// w += coefficient x.
template <class T>
void add_one(const Row<T>& x, T coefficient, T* w) {
    if (x.intercept != 0) w[x.intercept_row] += coefficient * x.intercept;
    if (is_dense(x)) {
        const Lanes<T> by = broadcast(coefficient);
        return for_each_vector<T>(
            x.count, [&](int64_t j) { store(w + j, load(w + j) + by * load(x.values + j)); },
            [&](int64_t j) { w[j] += coefficient * x.values[j]; });
    }
    with_columns(x, [&](auto columns) {
        for (int64_t j = 0; j < x.count; ++j) w[columns[j]] += coefficient * x.values[j];
    });
}

// w += coefficient B x.
template <class T>
void add_one_scaled(const Row<T>& x, T coefficient, const T* B, T* w) {
    if (x.intercept != 0) w[x.intercept_row] += coefficient * (B[x.intercept_row] * x.intercept);
    if (is_dense(x)) {
        const Lanes<T> by = broadcast(coefficient);
        return for_each_vector<T>(
            x.count, [&](int64_t j) { store(w + j, load(w + j) + by * (load(B + j) * load(x.values + j))); },
            [&](int64_t j) { w[j] += coefficient * (B[j] * x.values[j]); });
    }
    with_columns(x, [&](auto columns) {
        for (int64_t j = 0; j < x.count; ++j) w[columns[j]] += coefficient * (B[columns[j]] * x.values[j]);
    });
}

// W += B o x coefficients'.
template <class T>
void add_row_scaled(const Row<T>& x, const T* coefficients, int64_t lanes, const T* B, T* W) {
    const auto add = [&](int64_t row, T value) {
        for (int64_t m = 0; m < lanes; m += lane_count<T>) {
            const int64_t at = row * lanes + m;
            store(W + at, load(W + at) + load(coefficients + m) * (load(B + at) * broadcast(value)));
        }
    };
    if (x.intercept != 0) add(x.intercept_row, x.intercept);
    with_columns(x, [&](auto columns) {
        for (int64_t j = 0; j < x.count; ++j) {
            if (j + prefetch_distance < x.count) {
                const int64_t ahead = int64_t(columns[j + prefetch_distance]) * lanes;
                for (int64_t m = 0; m < lanes; m += lane_count<T>) prefetch(W + ahead + m), prefetch(B + ahead + m);
            }
            add(int64_t(columns[j]), x.values[j]);
        }
    });
}

// w += coefficient D x and u += second D x; without D, it is the identity.
template <class T>
void add_one_twice(const Row<T>& x, const T* D, T coefficient, T second, T* w, T* u) {
    const auto add = [&](int64_t row, T value) {
        w[row] += coefficient * value;
        u[row] += second * value;
    };
    if (x.intercept != 0) add(x.intercept_row, D ? D[x.intercept_row] * x.intercept : x.intercept);
    if (is_dense(x)) {
        const Lanes<T> by = broadcast(coefficient), then_by = broadcast(second);
        return for_each_vector<T>(
            x.count,
            [&](int64_t j) {
                const Lanes<T> value = D ? load(D + j) * load(x.values + j) : load(x.values + j);
                store(w + j, load(w + j) + by * value);
                store(u + j, load(u + j) + then_by * value);
            },
            [&](int64_t j) { add(j, D ? D[j] * x.values[j] : x.values[j]); });
    }
    with_columns(x, [&](auto columns) {
        if (D)
            for (int64_t j = 0; j < x.count; ++j) add(int64_t(columns[j]), D[columns[j]] * x.values[j]);
        else
            for (int64_t j = 0; j < x.count; ++j) add(int64_t(columns[j]), x.values[j]);
    });
}

// W += D x coefficients' and U += D x seconds'.
template <class T>
void add_row_twice(const Row<T>& x, const T* D, const T* coefficients, const T* seconds, int64_t lanes, T* W, T* U) {
    const auto add = [&](int64_t row, T value) {
        const Lanes<T> v = broadcast(D ? D[row] * value : value);
        for (int64_t m = 0; m < lanes; m += lane_count<T>) {
            const int64_t at = row * lanes + m;
            store(W + at, load(W + at) + load(coefficients + m) * v);
            store(U + at, load(U + at) + load(seconds + m) * v);
        }
    };
    if (x.intercept != 0) add(x.intercept_row, x.intercept);
    with_columns(x, [&](auto columns) {
        for (int64_t j = 0; j < x.count; ++j) {
            if (j + prefetch_distance < x.count) {
                const int64_t ahead = int64_t(columns[j + prefetch_distance]) * lanes;
                for (int64_t m = 0; m < lanes; m += lane_count<T>) prefetch(U + ahead + m);
            }
            add(int64_t(columns[j]), x.values[j]);
        }
    });
}

// w_jm *= 1 - rate_m, or 0 where that is negative.
template <class T>
void shrink(const T* rates, int64_t rows, int64_t lanes, T* W) {
    const auto factor = [](T rate) { return rate < 1 ? 1 - rate : T(0); };
    if (lanes == 1) {
        const T by = factor(rates[0]);
        for (int64_t j = 0; j < rows; ++j) W[j] *= by;
        return;
    }
    for (int64_t j = 0; j < rows; ++j)
        for (int64_t m = 0; m < lanes; ++m) W[j * lanes + m] *= factor(rates[m]);
}

// w_jm becomes w_jm / (1 + rate_m D_j), and u_jm changes by -ratio_m times as much; without D, it is the identity.
template <class T>
void shrink_twice(const T* rates, const T* ratios, const T* D, int64_t rows, int64_t lanes, T* W, T* U) {
    const auto change = [](T& w, T& u, T by, T ratio) {
        const T less = w * (by / (1 + by));
        w -= less;
        u += ratio * less;
    };
    if (lanes == 1) {
        const T rate = rates[0], ratio = ratios[0];
        if (D)
            for (int64_t j = 0; j < rows; ++j) change(W[j], U[j], rate * D[j], ratio);
        else
            for (int64_t j = 0; j < rows; ++j) change(W[j], U[j], rate, ratio);
        return;
    }
    for (int64_t j = 0; j < rows; ++j)
        for (int64_t m = 0; m < lanes; ++m)
            change(W[j * lanes + m], U[j * lanes + m], D ? rates[m] * D[j] : rates[m], ratios[m]);
}

// w_jm *= 1 - rate_m B_jm, or 0 where that is negative.
template <class T>
void shrink_scaled(const T* rates, int64_t rows, int64_t lanes, const T* B, T* W) {
    const auto one = [](T w, T rate, T b) { return rate * b < 1 ? w * (1 - rate * b) : T(0); };
    if (lanes == 1) {
        for (int64_t j = 0; j < rows; ++j) W[j] = one(W[j], rates[0], B[j]);
        return;
    }
    for (int64_t j = 0; j < rows; ++j)
        for (int64_t m = 0; m < lanes; ++m) W[j * lanes + m] = one(W[j * lanes + m], rates[m], B[j * lanes + m]);
}

// B_jm moves by `share` towards 1 / (lambda + curvature_m / B_jm), where the curvature counts as 0 for features that
// are 0 in x; it never falls below `least`.
template <class T>
void rescale(const Row<T>& x, int64_t rows, const T* curvatures, const Rescaling<T>& by, int64_t lanes, T* B) {
    const auto moved = [&](T b, T curvature) {
        const T next = b + by.share * (b / (by.lambda * b + curvature) - b);
        return next > by.least ? next : by.least;
    };
    const auto absent = [&](int64_t first, int64_t last) {
        for (int64_t at = first * lanes; at < last * lanes; ++at) B[at] = moved(B[at], T(0));
    };
    const auto present = [&](int64_t row) {
        for (int64_t m = 0; m < lanes; ++m) B[row * lanes + m] = moved(B[row * lanes + m], curvatures[m]);
    };
    if (!x.columns32 && !x.columns64 && lanes == 1) {
        for (int64_t j = 0; j < x.count; ++j) B[j] = moved(B[j], x.values[j] != 0 ? curvatures[0] : T(0));
    } else {
        with_columns(x, [&](auto columns) {
            int64_t next = 0;  // columns are sorted
            for (int64_t j = 0; j < x.count; ++j) {
                if (x.values[j] == 0) continue;
                absent(next, int64_t(columns[j]));
                present(int64_t(columns[j]));
                next = int64_t(columns[j]) + 1;
            }
            absent(next, x.intercept != 0 ? x.intercept_row : rows);
        });
    }
    if (x.intercept != 0) present(x.intercept_row);
}

// W += x coefficients' with sums in double, [feature][function] without padding.
template <class T>
void add_row_in_double(const Row<T>& x, const double* coefficients, int64_t functions, double* W) {
    const auto add = [&](int64_t row, double value) {
        for (int64_t m = 0; m < functions; ++m) W[row * functions + m] += coefficients[m] * value;
    };
    if (x.intercept != 0) add(x.intercept_row, double(x.intercept));
    with_columns(x, [&](auto columns) {
        if (functions == 1)
            for (int64_t j = 0; j < x.count; ++j) W[columns[j]] += coefficients[0] * double(x.values[j]);
        else
            for (int64_t j = 0; j < x.count; ++j) add(int64_t(columns[j]), double(x.values[j]));
    });
}

}  // namespace LARANK_UNIT
}  // namespace larank
