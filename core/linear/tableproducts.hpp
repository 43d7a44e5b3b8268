// Products of the examples with tables [feature][class], some rows at a time: F = X V, and W += X' G.
//
// By rows: an example gathers its rows of V, and is added to its rows of W. By columns, where the tables of a sparse
// problem are much larger than a cache: a feature's row of V is read once and added to the scores of its examples,
// which are in cache because there are not many in a block; and its row of W is summed up in registers. Both are the
// same two loops, `scores` and `add_row` of linear/rows.hpp, with examples and features exchanged.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "data/matrix.hpp"
#include "simd/units.hpp"

namespace larank {

// Rows `first` to `last` - 1 of the examples; by columns, the features they have, with rows counted from `first`.
template <class T>
struct RowBlock {
    int64_t first, last;
    std::vector<int32_t> features;
    std::vector<int64_t> starts;
    std::vector<int32_t> rows;
    std::vector<T> values;

    Columns<T> columns() const {
        return {int64_t(features.size()), features.data(), starts.data(), rows.data(), values.data()};
    }
};

template <class T>
class TableProducts {
  public:
    TableProducts(const Matrix<T>& X, int64_t lanes) : X_(X), lanes_(lanes) {
        by_columns_ = X.starts && X.columns * lanes * int64_t{sizeof(T)} > least_bytes_by_columns;
        const int64_t stripes = stripe_count(), bytes = by_columns_ ? bytes_by_columns : bytes_by_rows;
        const int64_t most = std::max<int64_t>(1, bytes / (lanes * int64_t{sizeof(T)}));
        for (int64_t s = 0; s < stripes; ++s) {
            const int64_t first = X.rows * s / stripes, last = X.rows * (s + 1) / stripes;
            const int64_t blocks = std::max<int64_t>(1, (last - first + most - 1) / most);
            stripes_.emplace_back();
            for (int64_t b = 0; b < blocks; ++b)
                stripes_.back().push_back(
                    block(first + (last - first) * b / blocks, first + (last - first) * (b + 1) / blocks));
            most_rows_ = std::max(most_rows_, (last - first + blocks - 1) / blocks);
        }
    }

    // Stripes are for threads. They depend on the shape of X alone, so that threads do not change sums.
    int64_t stripes() const { return int64_t(stripes_.size()); }
    const std::vector<RowBlock<T>>& blocks(int64_t stripe) const { return stripes_[std::size_t(stripe)]; }
    int64_t most_rows() const { return most_rows_; }

    // F has a row per row of the block.
    void scores(const RowBlock<T>& block, const T* V, T* F) const {
        const int64_t count = block.last - block.first;
        if (!X_.starts) return units<T>().dense_scores(dense(block), count, X_.columns, V, lanes_, F);
        if (by_columns_) {
            std::fill(F, F + count * lanes_, T(0));
            return units<T>().add_columns(block.columns(), V, lanes_, F);
        }
        for (int64_t i = 0; i < count; ++i)
            units<T>().scores(X_.row(block.first + i), V, lanes_, false, F + i * lanes_);
    }

    void add(const RowBlock<T>& block, const T* G, T* W) const {
        const int64_t count = block.last - block.first;
        if (!X_.starts) return units<T>().dense_add(dense(block), count, X_.columns, G, lanes_, W);
        if (by_columns_) return units<T>().sum_columns(block.columns(), G, lanes_, W);
        for (int64_t i = 0; i < count; ++i) units<T>().add_row(X_.row(block.first + i), G + i * lanes_, lanes_, W);
    }

  private:
    static constexpr int64_t most_stripes = 8, stored_per_stripe = 8;
    static constexpr int64_t least_bytes_by_columns = 1 << 20, bytes_by_columns = 3 << 18, bytes_by_rows = 1 << 12;

    // A stripe has a table of its own, which must be small beside its rows.
    int64_t stripe_count() const {
        const int64_t stored = X_.starts ? X_.starts[X_.rows] - X_.starts[0] : X_.rows * X_.columns;
        const int64_t wanted = stored / (stored_per_stripe * std::max<int64_t>(1, X_.columns));
        return std::max<int64_t>(1, std::min({most_stripes, wanted, X_.rows}));
    }

    const T* dense(const RowBlock<T>& block) const { return X_.values + block.first * X_.columns; }

    RowBlock<T> block(int64_t first, int64_t last) const {
        RowBlock<T> found{first, last, {}, {}, {}, {}};
        if (!by_columns_) return found;
        std::vector<int64_t> next(std::size_t(X_.columns), 0);
        for (int64_t i = first; i < last; ++i) X_.each(i, [&](int64_t feature, T) { ++next[std::size_t(feature)]; });
        found.starts.push_back(0);
        for (int64_t j = 0; j < X_.columns; ++j) {
            const int64_t count = next[std::size_t(j)];
            if (count == 0) continue;
            next[std::size_t(j)] = found.starts.back();
            found.features.push_back(int32_t(j));
            found.starts.push_back(found.starts.back() + count);
        }
        found.rows.resize(std::size_t(found.starts.back()));
        found.values.resize(std::size_t(found.starts.back()));
        for (int64_t i = first; i < last; ++i)
            X_.each(i, [&](int64_t feature, T value) {
                const auto at = std::size_t(next[std::size_t(feature)]++);
                found.rows[at] = int32_t(i - first);
                found.values[at] = value;
            });
        return found;
    }

    Matrix<T> X_;
    int64_t lanes_;
    bool by_columns_ = false;
    int64_t most_rows_ = 0;
    std::vector<std::vector<RowBlock<T>>> stripes_;
};

}  // namespace larank
