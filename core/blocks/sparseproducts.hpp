// Inner products of two sets of sparse rows.
//
// Some rows of the left side at a time are turned to columns. A feature that many of them use is spread out over all of
// them, and rows on the right meet it like an example meets W, in the hot unit of the linear solvers. A feature that
// few of them use is a short list.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "memory/aligned.hpp"
#include "simd/units.hpp"

namespace larank {

template <class T>
struct CsrRows {
    const T* values;
    const int32_t* columns;
    const int64_t* starts;
    int64_t rows;
};

// Some rows, by feature.
template <class T>
class SpreadRows {
  public:
    static constexpr int64_t most = 8 * lane_count<T>;

    explicit SpreadRows(int64_t features) : place_(std::size_t(features), 0) {}

    // Takes rows first .. first + count of `from`, at most `most` of them.
    void take(const CsrRows<T>& from, int64_t first, int64_t count) {
        for (const int32_t column : used_) place_[std::size_t(column)] = 0;
        used_.clear();
        ends_.assign(1, 0);
        for_each(from, first, count, [&](int64_t, int32_t column, T) {
            int32_t& at = place_[std::size_t(column)];
            if (at == 0) {
                used_.push_back(column);
                ends_.push_back(0);
                at = int32_t(used_.size());
            }
            ++ends_[std::size_t(at)];
        });
        lanes_ = padded<T>(count);
        int32_t dense = 0;
        int64_t listed = 0;
        std::vector<int64_t> next;
        for (std::size_t at = 1; at < ends_.size(); ++at) {
            const bool many = ends_[at] > few;
            if (!many) listed += ends_[at];
            place_[std::size_t(used_[at - 1])] = many ? ++dense : -int32_t(next.size() + 1);
            if (!many) next.push_back(listed);
        }
        ends_ = next;
        next.insert(next.begin(), 0);
        spread_.assign(std::size_t(dense * lanes_), T(0));
        list_.resize(std::size_t(listed));
        for_each(from, first, count, [&](int64_t i, int32_t column, T value) {
            const int32_t at = place_[std::size_t(column)];
            if (at > 0)
                spread_[std::size_t((at - 1) * lanes_ + i)] += value;
            else
                list_[std::size_t(next[std::size_t(-at - 1)]++)] = {i, value};
        });
    }

    int64_t lanes() const { return lanes_; }

    // out = the products of a row with those taken, over all lanes.
    void times(const CsrRows<T>& with, int64_t row, T* out) {
        columns_.clear();
        values_.clear();
        lists_.clear();
        for (int64_t e = with.starts[row]; e < with.starts[row + 1]; ++e) {
            const int32_t at = place_[std::size_t(with.columns[e])];
            if (at > 0) {
                columns_.push_back(at - 1);
                values_.push_back(with.values[e]);
            } else if (at < 0) {
                lists_.push_back({-at - 1, with.values[e]});
            }
        }
        const Row<T> dense{values_.data(), columns_.data(), nullptr, int64_t(values_.size()), 0, 0};
        units<T>().scores(dense, spread_.data(), lanes_, true, out);
        for (const Entry& list : lists_) {
            const int64_t from = list.row ? ends_[std::size_t(list.row - 1)] : 0;
            for (int64_t e = from; e < ends_[std::size_t(list.row)]; ++e)
                out[list_[std::size_t(e)].row] += list.value * list_[std::size_t(e)].value;
        }
    }

  private:
    // A vector of lanes serves this many rows at the cost of one in a list, or so.
    static constexpr int64_t few = 8;

    struct Entry {
        int64_t row;
        T value;
    };

    template <class Visit>
    static void for_each(const CsrRows<T>& rows, int64_t first, int64_t count, Visit visit) {
        for (int64_t i = 0; i < count; ++i)
            for (int64_t e = rows.starts[first + i]; e < rows.starts[first + i + 1]; ++e)
                visit(i, rows.columns[e], rows.values[e]);
    }

    int64_t lanes_ = 0;
    std::vector<int32_t> place_;  // of each feature: 0 is not used, n > 0 spread out as row n - 1, -n < 0 list n - 1
    std::vector<int32_t> used_;
    LargeVector<T> spread_;
    std::vector<Entry> list_;
    std::vector<int64_t> ends_;
    std::vector<int32_t> columns_;
    std::vector<T> values_;
    std::vector<Entry> lists_;
};

// out = left right'. Columns of both lie below `features`.
template <class T>
void sparse_products(const CsrRows<T>& left, const CsrRows<T>& right, int64_t features, const Tile<T>& out) {
    constexpr int64_t together = lane_count<T>;  // so that rows of `out` are written a cache line at a time
    SpreadRows<T> spread(features);
    AlignedArray<T> found(together * SpreadRows<T>::most);
    for (int64_t first = 0; first < left.rows; first += SpreadRows<T>::most) {
        const int64_t rows = std::min(SpreadRows<T>::most, left.rows - first);
        spread.take(left, first, rows);
        for (int64_t j = 0; j < right.rows; j += together) {
            const int64_t count = std::min(together, right.rows - j);
            for (int64_t b = 0; b < count; ++b) spread.times(right, j + b, found.data() + b * spread.lanes());
            for (int64_t i = 0; i < rows; ++i)
                for (int64_t b = 0; b < count; ++b)
                    out.values[(first + i) * out.stride + j + b] = found.data()[b * spread.lanes() + i];
        }
    }
}

}  // namespace larank
