// Rows of kernel values under a byte budget. When it is spent, a new row takes the place of the one that has not been
// used for the longest time.    [mcsvm] sec. 7, "Caching"
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

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
        : columns_(examples), bytes_(bytes), in_use_(in_use), where_(std::size_t(examples), -1) {}

    bool has(int64_t example) const { return where_[std::size_t(example)] >= 0; }

    // The row of an example, from now on the one used last; null where it is not kept.
    const T* find(int64_t example) {
        const int32_t row = where_[std::size_t(example)];
        if (row < 0) return nullptr;
        usage_.touch(rows_, row);
        return rows_[std::size_t(row)].values.get();
    }

    // Room for the row of an example, to be filled by the caller.
    T* make(int64_t example) {
        forget(example);
        int32_t row = int32_t(rows_.size());
        if (!free_.empty()) {
            row = free_.back();
            free_.pop_back();
        } else if (row < capacity()) {
            rows_.emplace_back();
        } else {
            row = usage_.oldest();
            where_[std::size_t(rows_[std::size_t(row)].example)] = -1;
            usage_.unlink(rows_, row);
        }
        Row& made = rows_[std::size_t(row)];
        made.example = example;
        if (!made.values) made.values.reset(new T[std::size_t(columns_)]);
        where_[std::size_t(example)] = row;
        usage_.touch(rows_, row);
        return made.values.get();
    }
    void insert(int64_t example, const T* values) { std::copy(values, values + columns_, make(example)); }

    void forget(int64_t example) {
        const int32_t row = where_[std::size_t(example)];
        if (row < 0) return;
        where_[std::size_t(example)] = -1;
        usage_.unlink(rows_, row);
        free_.push_back(row);
    }

    // Only these examples go on, in this order, numbered from 0; they are in ascending order.
    void narrow(const std::vector<int32_t>& kept) {
        std::vector<int32_t> where(kept.size());
        for (std::size_t n = 0; n < kept.size(); ++n) where[n] = where_[std::size_t(kept[n])];
        for (std::size_t n = 0; n < kept.size(); ++n) where_[std::size_t(kept[n])] = -1;
        for (int64_t gone = 0; gone < columns_; ++gone) forget(gone);
        for (std::size_t n = 0; n < kept.size(); ++n) {
            if (where[n] < 0) continue;
            Row& row = rows_[std::size_t(where[n])];
            row.example = int64_t(n);
            std::unique_ptr<T[]> fewer(new T[kept.size()]);
            for (std::size_t m = 0; m < kept.size(); ++m) fewer[m] = row.values[std::size_t(kept[m])];
            row.values = std::move(fewer);
        }
        for (const int32_t row : free_) rows_[std::size_t(row)].values.reset();
        where_ = std::move(where);
        columns_ = int64_t(kept.size());
    }

    int64_t rows() const { return int64_t(rows_.size() - free_.size()); }
    int64_t bytes() const { return int64_t(rows_.size()) * columns_ * int64_t{sizeof(T)}; }  // at most

  private:
    struct Row : Used {
        int64_t example = -1;
        std::unique_ptr<T[]> values;
    };

    int64_t capacity() const {
        return std::max<int64_t>(in_use_, bytes_ / std::max<int64_t>(1, columns_ * int64_t{sizeof(T)}));
    }

    int64_t columns_ = 0, bytes_ = 0, in_use_ = 1;
    std::vector<Row> rows_;
    std::vector<int32_t> where_, free_;  // which row is an example's, and rows that are nobody's
    UsageOrder<Row> usage_;
};

}  // namespace larank
