// The order in which rows were last used: a list through the rows themselves.
#pragma once

#include <cstdint>
#include <vector>

namespace larank {

// Of a row in the list.
struct Used {
    int32_t older = -1, newer = -1;
};

// `Row` derives from Used. A row is known by its number in `rows`.
template <class Row>
class UsageOrder {
  public:
    int32_t oldest() const { return oldest_; }
    int32_t newest() const { return newest_; }

    // The row is now the one used last.
    void touch(std::vector<Row>& rows, int64_t number) {
        if (newest_ == number) return;
        unlink(rows, number);
        rows[std::size_t(number)].older = newest_;
        if (newest_ >= 0) rows[std::size_t(newest_)].newer = int32_t(number);
        newest_ = int32_t(number);
        if (oldest_ < 0) oldest_ = newest_;
    }

    // The row is now the one that was not used for the longest time.
    void retire(std::vector<Row>& rows, int64_t number) {
        if (oldest_ == number) return;
        unlink(rows, number);
        rows[std::size_t(number)].newer = oldest_;
        if (oldest_ >= 0) rows[std::size_t(oldest_)].older = int32_t(number);
        oldest_ = int32_t(number);
        if (newest_ < 0) newest_ = oldest_;
    }

    // The row leaves the list, if it is in it.
    void unlink(std::vector<Row>& rows, int64_t number) {
        Row& row = rows[std::size_t(number)];
        if (row.newer >= 0) rows[std::size_t(row.newer)].older = row.older;
        if (row.older >= 0) rows[std::size_t(row.older)].newer = row.newer;
        if (oldest_ == number) oldest_ = row.newer;
        if (newest_ == number) newest_ = row.older;
        row.older = row.newer = -1;
    }

  private:
    int32_t newest_ = -1, oldest_ = -1;
};

}  // namespace larank
