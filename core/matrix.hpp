// The examples: a dense or CSR matrix seen row by row, with an optional constant feature for the intercept.
//
// Nothing is copied; the owner of the arrays must outlive the view. W has one row per feature and, when `intercept` is
// not zero, a last one for the constant feature.
#pragma once

#include <cstdint>

#include "dispatch/units.hpp"

namespace larank {

template <class T>
struct Matrix {
    int64_t rows = 0;
    int64_t columns = 0;
    const T* values = nullptr;
    const int64_t* starts = nullptr;  // CSR: where each row begins; null for a dense matrix
    const int32_t* columns32 = nullptr;
    const int64_t* columns64 = nullptr;
    T intercept = 0;

    int64_t begin(int64_t i) const { return starts ? starts[i] : i * columns; }
    int64_t count(int64_t i) const { return starts ? starts[i + 1] - starts[i] : columns; }
    int64_t weight_rows() const { return columns + (intercept != 0); }

    double squared_norm(int64_t i) const {
        double norm = double(intercept) * double(intercept);
        const T* x = values + begin(i);
        for (int64_t j = 0; j < count(i); ++j) norm += double(x[j]) * double(x[j]);
        return norm;
    }

    // out = x_i' W
    void scores(int64_t i, const T* W, int64_t lanes, T* out) const {
        const Units<T>& unit = units<T>();
        for (int64_t m = 0; m < lanes; ++m) out[m] = intercept != 0 ? intercept * W[columns * lanes + m] : T(0);
        const T* x = values + begin(i);
        if (!starts) return unit.add_scores_dense(x, columns, W, lanes, out);
        if (columns32) return unit.add_scores_csr32(x, columns32 + begin(i), count(i), W, lanes, out);
        unit.add_scores_csr64(x, columns64 + begin(i), count(i), W, lanes, out);
    }

    // W += x_i coefficients'
    void add_to(int64_t i, const T* coefficients, int64_t lanes, T* W) const {
        const Units<T>& unit = units<T>();
        if (intercept != 0) unit.add_row_dense(&intercept, 1, coefficients, lanes, W + columns * lanes);
        const T* x = values + begin(i);
        if (!starts) return unit.add_row_dense(x, columns, coefficients, lanes, W);
        if (columns32) return unit.add_row_csr32(x, columns32 + begin(i), count(i), coefficients, lanes, W);
        unit.add_row_csr64(x, columns64 + begin(i), count(i), coefficients, lanes, W);
    }

    // Calls visit(feature, value) for the stored values of row i and the constant feature.
    template <class Visit>
    void each(int64_t i, Visit visit) const {
        const int64_t from = begin(i), stored = count(i);
        for (int64_t j = 0; j < stored; ++j)
            visit(!starts ? j : columns32 ? int64_t{columns32[from + j]} : columns64[from + j], values[from + j]);
        if (intercept != 0) visit(columns, intercept);
    }

    void prefetch(int64_t i) const {
        const int64_t from = begin(i), stored = count(i);
        for (int64_t j = 0; j < stored; j += 64 / int64_t{sizeof(T)}) __builtin_prefetch(values + from + j);
        if (columns32)
            for (int64_t j = 0; j < stored; j += 16) __builtin_prefetch(columns32 + from + j);
        if (columns64)
            for (int64_t j = 0; j < stored; j += 8) __builtin_prefetch(columns64 + from + j);
    }
};

}  // namespace larank
