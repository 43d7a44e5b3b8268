// Which label may follow which: the constraints on a sequence of labels.
//
// They are kept as penalties, 0 where a label is allowed and -infinity where it is not, so that they are added to
// scores. A greedy decision must not lead where no allowed continuation is left: `completing` tells which labels can
// still be followed by so many others and then by the end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "simd/units.hpp"

namespace larank {

template <class T>
class Grammar {
  public:
    static constexpr T forbidden = -std::numeric_limits<T>::infinity();

    // follows: a row of `labels` flags for the beginning, then one per label; ends: a flag per label.
    Grammar(const bool* follows, const bool* ends, int64_t labels)
        : labels_(labels), lanes_(padded<T>(labels)), after_(std::size_t((labels + 1) * lanes_), forbidden) {
        for (int64_t p = 0; p <= labels; ++p)
            for (int64_t y = 0; y < labels; ++y)
                if (follows[p * labels + y]) after_[std::size_t(p * lanes_ + y)] = 0;
        completing_.assign(std::size_t(lanes_), forbidden);
        for (int64_t y = 0; y < labels; ++y)
            if (ends[y]) completing_[std::size_t(y)] = 0;
    }

    int64_t labels() const { return labels_; }

    // Penalties of the label after this one; -1 is the beginning.
    const T* after(int64_t label) const { return after_.data() + (label + 1) * lanes_; }

    // Penalties of a label that is followed by `remaining` others and then by the end. `prepare` comes first.
    const T* completing(int64_t remaining) const {
        const int64_t known = int64_t(completing_.size()) / lanes_ - 1;
        return completing_.data() + std::min(remaining, known) * lanes_;
    }

    // Makes `completing` known for sequences of so many labels.
    void prepare(int64_t length) {
        for (int64_t r = int64_t(completing_.size()) / lanes_; r < length && !is_settled_; ++r) {
            completing_.resize(completing_.size() + std::size_t(lanes_), forbidden);
            const T* before = completing_.data() + (r - 1) * lanes_;
            T* now = completing_.data() + r * lanes_;
            for (int64_t y = 0; y < labels_; ++y)
                for (int64_t next = 0; next < labels_; ++next)
                    if (after(y)[next] == 0 && before[next] == 0) now[y] = 0;
            is_settled_ = std::equal(before, before + lanes_, now);
        }
    }

    bool is_prepared(int64_t length) const { return is_settled_ || length <= int64_t(completing_.size()) / lanes_; }

    // The first position at which these labels are not allowed; the length if it is the end that is not, -1 if they
    // are.
    int64_t violation(const int32_t* path, int64_t length) const {
        int32_t last = -1;
        for (int64_t t = 0; t < length; last = path[t++])
            if (after(last)[path[t]] != 0) return t;
        return completing(0)[last] != 0 ? length : -1;
    }

  private:
    int64_t labels_, lanes_;
    std::vector<T> after_, completing_;
    bool is_settled_ = false;
};

}  // namespace larank
