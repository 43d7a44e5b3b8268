// Rows of kernel values under a byte budget. When it is spent, a new row takes the place of the one that has not been
// used for the longest time.    [mcsvm] sec. 7, "Caching"
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <vector>

#include "aligned.hpp"

namespace larank {

template <class T>
class RowCache {
  public:
    // Whatever the budget, there is room for one row: the one in use.
    RowCache(int64_t examples, int64_t bytes)
        : columns_(examples),
          capacity_(std::max<int64_t>(1, bytes / std::max<int64_t>(1, examples * int64_t{sizeof(T)}))),
          where_(std::size_t(examples), rows_.end()) {}

    // The row of an example, from now on the one used last; null where it is not kept.
    const T* find(int64_t example) {
        const auto row = where_[std::size_t(example)];
        if (row == rows_.end()) return nullptr;
        rows_.splice(rows_.begin(), rows_, row);
        return row->values.data();
    }

    void insert(int64_t example, const T* values) {
        forget(example);
        if (int64_t(rows_.size()) < capacity_) {
            rows_.emplace_front();
        } else {
            where_[std::size_t(rows_.back().example)] = rows_.end();
            rows_.splice(rows_.begin(), rows_, std::prev(rows_.end()));
        }
        rows_.front().example = example;
        rows_.front().values.assign(values, values + columns_);
        where_[std::size_t(example)] = rows_.begin();
    }

    void forget(int64_t example) {
        auto& row = where_[std::size_t(example)];
        if (row == rows_.end()) return;
        rows_.erase(row);
        row = rows_.end();
    }

    int64_t rows() const { return int64_t(rows_.size()); }

  private:
    struct Row {
        int64_t example;
        LargeVector<T> values;
    };

    int64_t columns_, capacity_;
    std::list<Row> rows_;  // the one used last first
    std::vector<typename std::list<Row>::iterator> where_;
};

}  // namespace larank
