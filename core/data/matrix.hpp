// The examples: a dense or CSR matrix seen row by row, with an optional constant feature for the intercept.
//
// Nothing is copied; the owner of the arrays must outlive the view. W has one row per feature and, when `intercept` is
// not zero, a last one for the constant feature.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "memory/prefetch.hpp"
#include "simd/units.hpp"

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

    Row<T> row(int64_t i) const {
        const int64_t from = begin(i);
        return {values + from,
                columns32 ? columns32 + from : nullptr,
                columns64 ? columns64 + from : nullptr,
                count(i),
                intercept,
                columns};
    }

    double squared_norm(int64_t i) const {
        double norm = double(intercept) * double(intercept);
        const T* x = values + begin(i);
        for (int64_t j = 0; j < count(i); ++j) norm += double(x[j]) * double(x[j]);
        return norm;
    }

    // Calls visit(feature, value) for the stored values of row i and the constant feature.
    template <class Visit>
    void each(int64_t i, Visit visit) const {
        const int64_t from = begin(i), stored = count(i);
        for (int64_t j = 0; j < stored; ++j)
            visit(!starts ? j : columns32 ? int64_t{columns32[from + j]} : columns64[from + j], values[from + j]);
        if (intercept != 0) visit(columns, intercept);
    }

    void prefetch_start(int64_t i) const {
        if (starts) prefetch(starts + i);
    }
    void prefetch_row(int64_t i) const { prefetch_row(i, prefetch); }
    void prefetch_row_for_later(int64_t i) const { prefetch_row(i, prefetch_for_later); }

    // Of a row, on average.
    int64_t row_bytes() const {
        const int64_t stored = rows == 0 ? 0 : (starts ? starts[rows] - starts[0] : rows * columns) / rows;
        return stored * int64_t(sizeof(T) + (columns32 ? 4 : columns64 ? 8 : 0));
    }

  private:
    template <class Prefetch>
    void prefetch_row(int64_t i, Prefetch fetch) const {
        prefetch_range(values, i, fetch);
        if (columns32) prefetch_range(columns32, i, fetch);
        if (columns64) prefetch_range(columns64, i, fetch);
    }
    // Rows do not begin where cache lines do: the last value may lie on one line more.
    template <class V, class Prefetch>
    void prefetch_range(const V* array, int64_t i, Prefetch fetch) const {
        if (count(i) == 0) return;
        const V* const last = array + begin(i) + count(i) - 1;
        for (const V* at = array + begin(i); at < last; at += 64 / sizeof(V)) fetch(at);
        fetch(last);
    }
};

// The share of values that are not zero in a dense matrix, by some of its rows.
template <class T>
double density(const Matrix<T>& X) {
    const int64_t step = 1 + X.rows / 1000;
    int64_t seen = 0, other = 0;
    for (int64_t i = 0; i < X.rows; i += step) X.each(i, [&](int64_t, T value) { ++seen, other += value != 0; });
    return seen == 0 ? 1.0 : double(other) / double(seen);
}

// A dense row that is mostly zeros is cheaper as the list of its other values.
template <class T>
class RowCompressor {
  public:
    explicit RowCompressor(const Matrix<T>& X) {
        if (X.starts || density(X) > 0.5) return;
        values_.resize(std::size_t(X.columns));
        columns_.resize(std::size_t(X.columns));
    }

    bool is_active() const { return !values_.empty(); }

    // The row as it is, or compressed into buffers that the next call overwrites.
    Row<T> operator()(Row<T> x) {
        if (values_.empty()) return x;
        int64_t count = 0;
        for (int64_t j = 0; j < x.count; ++j) {
            values_[std::size_t(count)] = x.values[j];
            columns_[std::size_t(count)] = int32_t(j);
            count += x.values[j] != 0;
        }
        x.values = values_.data();
        x.columns32 = columns_.data();
        x.count = count;
        return x;
    }

  private:
    std::vector<T> values_;
    std::vector<int32_t> columns_;
};

// The same for a whole matrix that is passed over many times. Short rows are quicker as they are.
template <class T>
struct ListedRows {
    std::vector<T> values;
    std::vector<int32_t> columns;
    std::vector<int64_t> starts;
};

template <class T>
std::optional<ListedRows<T>> listed(const Matrix<T>& X) {
    if (X.columns < 256 || X.columns >= int64_t{1} << 31 || density(X) > 0.25) return std::nullopt;
    ListedRows<T> lists;
    lists.starts.push_back(0);
    for (int64_t i = 0; i < X.rows; ++i) {
        const T* const x = X.values + i * X.columns;
        int64_t other = 0;
        for (int64_t j = 0; j < X.columns; ++j) other += x[j] != 0;
        lists.starts.push_back(lists.starts.back() + other);
    }
    if (10 * lists.starts.back() > 4 * X.rows * X.columns) return std::nullopt;  // the sample was not like the rest
    lists.values.resize(std::size_t(lists.starts.back()) + 1);  // room for what is written and then overwritten
    lists.columns.resize(std::size_t(lists.starts.back()) + 1);
    for (int64_t i = 0; i < X.rows; ++i) {
        const T* const x = X.values + i * X.columns;
        auto at = std::size_t(lists.starts[std::size_t(i)]);
        for (int64_t j = 0; j < X.columns; ++j) {
            lists.values[at] = x[j];
            lists.columns[at] = int32_t(j);
            at += x[j] != 0;
        }
    }
    lists.values.pop_back();
    lists.columns.pop_back();
    return lists;
}

}  // namespace larank
