// Inner products of two sets of sparse rows.
//
// Some rows of one side at a time are turned to columns. A feature that several of them use is spread out over all of
// them, and rows of the other side meet it like an example meets W, in the hot unit of the linear solvers. Vectors that
// are mostly zeros cost less than lists of the rows that use a feature: those mispredict branches. A feature that one
// row alone uses, as most do in texts, has that row and its value.
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
        forget();
        for_each(from, first, count, [&](int64_t, int32_t column, T) {
            if (place_[std::size_t(column)]++ == 0) used_.push_back(column);
        });
        lanes_ = padded<T>(count);
        int32_t spread = 0, single = 0;
        for (const int32_t column : used_) {
            int32_t& place = place_[std::size_t(column)];
            place = place > 1 ? ++spread : --single;
        }
        if (int64_t(spread_.size()) < spread * lanes_) spread_.resize(std::size_t(spread * lanes_), T(0));
        singles_.resize(std::size_t(-single));
        for_each(from, first, count, [&](int64_t i, int32_t column, T value) {
            const int32_t place = place_[std::size_t(column)];
            if (place > 0) {
                const int64_t at = (place - 1) * lanes_ + i;
                spread_[std::size_t(at)] += value;
                written_.push_back(at);
            } else {
                singles_[std::size_t(-place - 1)] = {int32_t(i), value};
            }
        });
    }

    int64_t lanes() const { return lanes_; }

    // out = the products of a row with those taken, over all lanes.
    void times(const CsrRows<T>& with, int64_t row, T* out) {
        const int64_t first = with.starts[row], count = with.starts[row + 1] - first;
        if (int64_t(columns_.size()) < count) columns_.resize(std::size_t(count)), values_.resize(std::size_t(count));
        if (int64_t(alone_.size()) < count) alone_.resize(std::size_t(count));
        std::size_t spread = 0, alone = 0;  // nobody can foresee which an entry is: both are written, and one counts
        for (int64_t e = first; e < first + count; ++e) {
            const int32_t place = place_[std::size_t(with.columns[e])];
            columns_[spread] = place - 1, values_[spread] = with.values[e];
            spread += place > 0;
            alone_[alone] = {-place - 1, with.values[e]};
            alone += place < 0;
        }
        const Row<T> met{values_.data(), columns_.data(), nullptr, int64_t(spread), 0, 0};
        units<T>().scores(met, spread_.data(), lanes_, false, out);
        for (std::size_t n = 0; n < alone; ++n) {
            const Entry& single = singles_[std::size_t(alone_[n].number)];
            out[single.number] += alone_[n].value * single.value;
        }
    }

  private:
    struct Entry {
        int32_t number;  // of a row, or of a single
        T value;
    };

    // Few of the places that are spread out have a value: those are set back to zero one by one.
    void forget() {
        for (const int64_t at : written_) spread_[std::size_t(at)] = T(0);
        for (const int32_t column : used_) place_[std::size_t(column)] = 0;
        written_.clear();
        used_.clear();
    }

    template <class Visit>
    static void for_each(const CsrRows<T>& rows, int64_t first, int64_t count, Visit visit) {
        for (int64_t i = 0; i < count; ++i)
            for (int64_t e = rows.starts[first + i]; e < rows.starts[first + i + 1]; ++e)
                visit(i, rows.columns[e], rows.values[e]);
    }

    int64_t lanes_ = 0;
    std::vector<int32_t> place_;  // of each feature: 0 is not used, n > 0 spread out as row n - 1, -n < 0 single n - 1
    std::vector<int32_t> used_;
    LargeVector<T> spread_;
    std::vector<int64_t> written_;
    std::vector<Entry> singles_;  // the row and its value
    std::vector<int32_t> columns_;
    std::vector<T> values_;
    std::vector<Entry> alone_;
};

// out = left right', where the left side is spread out.
template <class T>
void products_of_spread_left(const CsrRows<T>& left, const CsrRows<T>& right, SpreadRows<T>& spread,
                             const Tile<T>& out) {
    constexpr int64_t together = lane_count<T>;  // so that rows of `out` are written a cache line at a time
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

// The same, where the right side is.
template <class T>
void products_of_spread_right(const CsrRows<T>& left, const CsrRows<T>& right, SpreadRows<T>& spread,
                              const Tile<T>& out) {
    AlignedArray<T> found(SpreadRows<T>::most);
    for (int64_t first = 0; first < right.rows; first += SpreadRows<T>::most) {
        const int64_t rows = std::min(SpreadRows<T>::most, right.rows - first);
        spread.take(right, first, rows);
        for (int64_t i = 0; i < left.rows; ++i) {
            spread.times(left, i, found.data());
            std::copy(found.data(), found.data() + rows, out.values + i * out.stride + first);
        }
    }
}

// Columns of both lie below `features`. The side that has fewer rows is spread out, for that takes time, too.
template <class T>
void sparse_products(const CsrRows<T>& left, const CsrRows<T>& right, int64_t features, const Tile<T>& out) {
    SpreadRows<T> spread(features);
    if (left.rows <= right.rows)
        products_of_spread_left(left, right, spread, out);
    else
        products_of_spread_right(left, right, spread, out);
}

}  // namespace larank
