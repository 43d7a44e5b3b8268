// Rows of kernel values under a byte budget. When it is spent, a new row takes the place of the one that has not been
// used for the longest time.    [mcsvm] sec. 7, "Caching"
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "memory/aligned.hpp"
#include "memory/usage.hpp"

namespace larank {

template <class T>
class RowCache {
  public:
    RowCache() = default;
    RowCache(RowCache&&) = default;
    RowCache& operator=(RowCache&&) = default;
    // Whatever the budget, there is room for the rows in use.
    RowCache(int64_t examples, int64_t bytes, int64_t in_use = 1)
        : columns_(examples),
          bytes_(bytes),
          in_use_(in_use),
          of_slab_(slab_for(std::max<int64_t>(1, examples), bytes)),
          where_(std::size_t(examples), -1) {}

    bool has(int64_t example) const { return where_[std::size_t(example)] >= 0; }

    // The row of an example, from now on the one used last; null where it is not kept.
    const T* find(int64_t example) {
        const int32_t row = where_[std::size_t(example)];
        if (row < 0) return nullptr;
        usage_.touch(rows_, row);
        return values(row, columns_);
    }

    // Room for the row of an example, to be filled by the caller.
    T* make(int64_t example) {
        forget(example);
        int32_t row = int32_t(rows_.size());
        if (!free_.empty()) {
            row = free_.back();
            free_.pop_back();
        } else if (row < capacity()) {
            if (row == int64_t(slabs_.size()) * rows_of_slab(columns_)) slabs_.emplace_back(of_slab_);
            rows_.emplace_back();
        } else {
            row = usage_.oldest();
            where_[std::size_t(rows_[std::size_t(row)].example)] = -1;
            usage_.unlink(rows_, row);
        }
        rows_[std::size_t(row)].example = example;
        where_[std::size_t(example)] = row;
        usage_.touch(rows_, row);
        return values(row, columns_);
    }
    void insert(int64_t example, const T* values) { std::copy(values, values + columns_, make(example)); }

    void forget(int64_t example) {
        const int32_t row = where_[std::size_t(example)];
        if (row < 0) return;
        where_[std::size_t(example)] = -1;
        usage_.unlink(rows_, row);
        free_.push_back(row);
    }

    // Only these examples go on, in this order, numbered from 0; they are in ascending order. Rows become shorter and
    // move towards the first slab, each to where no row that is still needed stands.
    void narrow(const std::vector<int32_t>& kept) {
        std::vector<int32_t> number(std::size_t(columns_), -1), by_use, moved(rows_.size(), -1);
        for (std::size_t n = 0; n < kept.size(); ++n) number[std::size_t(kept[n])] = int32_t(n);
        for (int32_t row = usage_.oldest(); row >= 0; row = rows_[std::size_t(row)].newer)
            if (number[std::size_t(rows_[std::size_t(row)].example)] >= 0) by_use.push_back(row);
        std::vector<int32_t> in_order(by_use);
        std::sort(in_order.begin(), in_order.end());

        std::vector<Row> rows(in_order.size());
        std::vector<int32_t> where(kept.size(), -1);
        for (std::size_t n = 0; n < in_order.size(); ++n) {
            const T* const whole = values(in_order[n], columns_);
            T* const fewer = values(int32_t(n), int64_t(kept.size()));
            for (std::size_t m = 0; m < kept.size(); ++m) fewer[m] = whole[kept[m]];
            const int32_t example = number[std::size_t(rows_[std::size_t(in_order[n])].example)];
            rows[n].example = example;
            where[std::size_t(example)] = moved[std::size_t(in_order[n])] = int32_t(n);
        }
        rows_ = std::move(rows), where_ = std::move(where), free_.clear(), usage_ = {};
        for (const int32_t row : by_use) usage_.touch(rows_, moved[std::size_t(row)]);
        columns_ = int64_t(kept.size());
        const int64_t rows_each = rows_of_slab(columns_);
        slabs_.resize(std::size_t((int64_t(rows_.size()) + rows_each - 1) / rows_each));
    }

    int64_t rows() const { return int64_t(rows_.size() - free_.size()); }
    int64_t bytes() const { return int64_t(slabs_.size()) * bytes_of_slab(); }

  private:
    static constexpr int64_t largest_slab = int64_t{1} << 22;

    struct Row : Used {
        int64_t example = -1;
    };

    // Whole rows of so many values.
    static int64_t slab_for(int64_t columns, int64_t bytes) {
        const int64_t values = std::min(largest_slab, bytes / 16) / int64_t{sizeof(T)};
        return std::max<int64_t>(1, values / columns) * columns;
    }
    int64_t bytes_of_slab() const { return of_slab_ * int64_t{sizeof(T)}; }
    int64_t rows_of_slab(int64_t columns) const { return of_slab_ / std::max<int64_t>(1, columns); }
    T* values(int32_t row, int64_t columns) const {
        const int64_t each = rows_of_slab(columns);
        return slabs_[std::size_t(row / each)].data() + row % each * columns;
    }
    // Rows of whole slabs: what is left over in a slab is memory too.
    int64_t capacity() const { return std::max(in_use_, bytes_ / bytes_of_slab() * rows_of_slab(columns_)); }

    int64_t columns_ = 0, bytes_ = 0, in_use_ = 1, of_slab_ = 1;  // values of a slab
    std::vector<Pages<T>> slabs_;
    std::vector<Row> rows_;
    std::vector<int32_t> where_, free_;  // which row is an example's, and rows that are nobody's
    UsageOrder<Row> usage_;
};

}  // namespace larank
