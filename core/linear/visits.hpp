// The order of one pass over examples in memory, random and yet kind to the caches, and the rows as a solver takes
// them.
//
// Rows that lie side by side form groups of about a page. Groups come in random order; those of a window, which fits
// the second cache, are mixed row by row. While a window is worked on, the next one is fetched in the order of the
// memory. Some of the rows are visited in the same way as all of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "data/matrix.hpp"
#include "memory/prefetch.hpp"
#include "memory/snapshot.hpp"
#include "training/random.hpp"

namespace larank {

// Some of the rows, one bit each: to have them in the order of the memory, sorting would take as long as visits do.
class RowSet {
  public:
    explicit RowSet(int64_t rows) : words_(std::size_t((rows + 63) / 64)) {}

    bool is_empty() const { return count_ == 0; }
    int64_t size() const { return count_; }
    void insert(int64_t row) {
        uint64_t& word = words_[std::size_t(row / 64)];
        const uint64_t bit = uint64_t{1} << (row % 64);
        count_ += !(word & bit);
        word |= bit;
    }
    // Those of another set of as many rows go over to this one.
    void take_over(RowSet& other) {
        if (other.is_empty()) return;
        count_ = 0;
        for (std::size_t w = 0; w < words_.size(); ++w) {
            words_[w] |= std::exchange(other.words_[w], 0);
            count_ += __builtin_popcountll(words_[w]);
        }
        other.count_ = 0;
    }
    // In increasing order; none is left.
    std::vector<int32_t> take() {
        std::vector<int32_t> rows;
        rows.reserve(std::size_t(count_));
        for (std::size_t w = 0; w < words_.size(); ++w)
            for (; words_[w]; words_[w] &= words_[w] - 1) rows.push_back(int32_t(w * 64) + __builtin_ctzll(words_[w]));
        count_ = 0;
        return rows;
    }
    void clear() {
        std::fill(words_.begin(), words_.end(), uint64_t{0});
        count_ = 0;
    }

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        std::vector<int32_t> rows = RowSet(*this).take();
        snapshot(rows);
        if constexpr (!Snapshot::reads) return;
        must_hold(are_within(rows, 0, int64_t(words_.size()) * 64), "an example is out of range");
        clear();
        for (const int32_t row : rows) insert(row);
    }

  private:
    std::vector<uint64_t> words_;
    int64_t count_ = 0;
};

class VisitOrder {
  public:
    // All rows, in the order of the memory, or random.
    void begin(int64_t rows, int64_t row_bytes, Random* random) {
        fetched_.resize(std::size_t(rows));
        std::iota(fetched_.begin(), fetched_.end(), 0);
        begin(row_bytes, random);
    }
    // These, which come in the order of the memory.
    void begin(std::vector<int32_t> rows, int64_t row_bytes, Random& random) {
        fetched_ = std::move(rows);
        begin(row_bytes, &random);
    }

    bool is_over() const { return position_ == visited_.size(); }
    int64_t next() { return visited_[position_++]; }
    std::size_t size() const { return visited_.size(); }
    // Several may go through parts of the order at the same time, each at a position of its own.
    std::size_t position() const { return position_; }
    void go_on_from(std::size_t position) { position_ = position; }
    // Of several parts that were gone through, the last first: the rows that are left come next.
    void take_back(std::size_t first, std::size_t last) {
        const auto move = [&](std::vector<int32_t>& rows) {
            std::copy_backward(rows.begin() + int64_t(first), rows.begin() + int64_t(last),
                               rows.begin() + int64_t(position_));
        };
        move(visited_), move(fetched_);
        position_ -= last - first;
    }
    int64_t operator[](std::size_t position) const { return visited_[position]; }
    // The row that comes so many visits after a position, or -1.
    int64_t later(std::size_t position, std::size_t visits) const {
        return position + visits < visited_.size() ? visited_[position + visits] : -1;
    }
    // The row that `next` will return, or -1.
    int64_t coming() const { return is_over() ? -1 : visited_[position_]; }
    // Calls fetch(row) for a row of the window to come, and before that locate(row), to have its address then.
    template <class Fetch, class Locate>
    void fetch_ahead(std::size_t position, Fetch fetch, Locate locate) const {
        if (position + window_ + located_ahead < fetched_.size()) locate(fetched_[position + window_ + located_ahead]);
        if (position + window_ < fetched_.size()) fetch(fetched_[position + window_]);
    }
    template <class Fetch>
    void fetch_ahead(Fetch fetch) const {
        fetch_ahead(position_, fetch, [](int64_t) {});
    }

    bool is_within(int64_t rows) const { return are_within(visited_, 0, rows) && position_ <= visited_.size(); }
    // In what order rows are fetched changes the time alone.
    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(visited_, position_);
        if constexpr (Snapshot::reads) fetched_ = visited_;
    }

  private:
    static constexpr int64_t page = 4096, window_bytes = 256 * 1024;
    static constexpr std::size_t located_ahead = 32;

    void begin(int64_t row_bytes, Random* random) {
        position_ = 0;
        window_ = std::size_t(std::clamp<int64_t>(window_bytes / std::max<int64_t>(row_bytes, 1), 4, 4096));
        const bool fits = int64_t(fetched_.size()) * row_bytes <= window_bytes;
        if (random && !fits) shuffle_groups(std::max<int64_t>(1, page / std::max<int64_t>(row_bytes, 1)), *random);
        visited_ = fetched_;
        if (!random) return;
        if (fits) return random->shuffle(visited_);
        for (std::size_t first = 0; first < visited_.size(); first += window_)
            for (std::size_t n = std::min(window_, visited_.size() - first); n > 1; --n)
                std::swap(visited_[first + n - 1], visited_[first + random->below(uint32_t(n))]);
    }

    void shuffle_groups(int64_t size, Random& random) {
        std::vector<int32_t> groups((fetched_.size() + std::size_t(size) - 1) / std::size_t(size));
        std::iota(groups.begin(), groups.end(), 0);
        random.shuffle(groups);
        const std::vector<int32_t> rows = std::move(fetched_);
        fetched_.clear();
        for (const int32_t group : groups) {
            const auto first = rows.begin() + group * size;
            fetched_.insert(fetched_.end(), first, first + std::min<int64_t>(size, rows.end() - first));
        }
    }

    std::vector<int32_t> visited_, fetched_;  // the same rows, window by window
    std::size_t position_ = 0, window_ = 1;
};

// The rows of a matrix in the precision of a solver: those in double are rounded one by one where it has single.
template <class T>
class RowReader {
  public:
    void open(const Matrix<T>& X, bool compresses) {
        X_ = X;
        compress_ = RowCompressor<T>(compresses ? X : Matrix<T>{});
        rounds_ = false;
    }
    template <class Wide, class = std::enable_if_t<!std::is_same_v<Wide, T>>>
    void open(const Matrix<Wide>& X, bool) {
        wide_ = X;
        rounds_ = true;
    }

    int64_t rows() const { return rounds_ ? wide_.rows : X_.rows; }
    int64_t count(int64_t i) const { return rounds_ ? wide_.count(i) : X_.count(i); }
    void fetch_for_later(int64_t i) const { rounds_ ? wide_.prefetch_row_for_later(i) : X_.prefetch_row_for_later(i); }
    // Where a dense row begins that is used as it lies, else null.
    const T* dense_row(int64_t i) const {
        return rounds_ || X_.starts || compress_.is_active() ? nullptr : X_.values + X_.begin(i);
    }

    // The row, whose buffers the next call may overwrite.
    Row<T> operator()(int64_t i) {
        if (!rounds_) return compress_(X_.row(i));
        const Row<double> x = wide_.row(i);
        rounded_.resize(std::size_t(x.count));
        for (int64_t j = 0; j < x.count; ++j) rounded_[std::size_t(j)] = T(x.values[j]);
        return {rounded_.data(), x.columns32, x.columns64, x.count, T(x.intercept), x.intercept_row};
    }

  private:
    Matrix<T> X_;
    Matrix<double> wide_;
    RowCompressor<T> compress_{Matrix<T>{}};
    std::vector<T> rounded_;
    bool rounds_ = false;
};

}  // namespace larank
