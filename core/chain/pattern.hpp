// A support pattern of a chain: a stretch of its own, with the outputs that have a coefficient.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "chain/chain.hpp"
#include "memory/prefetch.hpp"

namespace larank {

// A stretch of its own, in one piece of memory, with the outputs that have a coefficient.
template <class T>
class ChainPattern {
  public:
    // One output y other than the true one, with |Phi(x, y) - Phi(x, y_i)|^2.
    struct Output {
        double alpha;
        double loss;
        double distance;
        double early;        // see chain/average.hpp
        int32_t only_label;  // of a stretch of one token
    };

    ChainPattern(const Stretch<T>& x, int64_t order, int64_t number, double largest_sum)
        : id(number),
          cost(largest_sum),
          length_(x.length),
          order_(order),
          previous_(x.previous),
          remaining_(x.remaining),
          count_(x.rows.indptr[x.first + x.length] - x.rows.indptr[x.first]),
          has_values_(x.rows.values != nullptr) {
        block_.resize(std::size_t(block_bytes()));
        const int64_t begin = x.rows.indptr[x.first];
        for (int64_t t = 0; t <= length_; ++t) indptr()[t] = x.rows.indptr[x.first + t] - begin;
        if (has_values_) std::copy_n(x.rows.values + begin, count_, values());
        std::copy_n(x.rows.indices + begin, count_, indices());
        std::copy_n(x.truth, length_, truth());
        std::copy_n(x.history, order_, history());
    }

    Stretch<T> stretch(const T* ones) const {
        return {{indptr(), indices(), has_values_ ? values() : nullptr, ones},
                0,
                length_,
                truth(),
                history(),
                previous_,
                remaining_};
    }

    int64_t longest_token() const {
        int64_t longest = 0;
        for (int64_t t = 0; t < length_; ++t) longest = std::max(longest, indptr()[t + 1] - indptr()[t]);
        return longest;
    }

    int64_t length() const { return length_; }
    const std::vector<Output>& outputs() const { return outputs_; }
    Output& output(std::size_t n) { return outputs_[n]; }
    const int32_t* labels(std::size_t n) const {
        return length_ == 1 ? &outputs_[n].only_label : labels_.data() + n * std::size_t(length_);
    }

    // The index of an output among those that have a coefficient; how many there are if it has none.
    std::size_t find(const int32_t* y) const {
        std::size_t n = 0;
        while (n < outputs_.size() && !std::equal(y, y + length_, labels(n))) ++n;
        return n;
    }

    void add(const int32_t* y, double loss, double distance) {
        if (int64_t(outputs_.size()) == room_) room_ = std::max<int64_t>(1, 2 * room_);
        outputs_.push_back({0.0, loss, distance, 0.0, y[0]});
        if (length_ > 1) labels_.insert(labels_.end(), y, y + length_);
    }

    void remove(std::size_t n) {
        outputs_[n] = outputs_.back();
        outputs_.pop_back();
        if (length_ == 1) return;
        std::copy(labels_.end() - length_, labels_.end(), labels_.begin() + std::ptrdiff_t(n) * length_);
        labels_.resize(labels_.size() - std::size_t(length_));
    }

    double alpha_sum() const {
        double sum = 0;
        for (const Output& output : outputs_) sum += output.alpha;
        return sum;
    }

    // With room for outputs that doubles where it is too small: which patterns a limit on memory lets go must not
    // depend on how much more the vectors have asked for.
    int64_t bytes() const {
        const int64_t of_labels = length_ == 1 ? 0 : length_ * int64_t(sizeof(int32_t));
        return int64_t(sizeof *this) + block_bytes() + room_ * (int64_t(sizeof(Output)) + of_labels);
    }
    int64_t room() const { return room_; }
    void set_room(int64_t outputs) { room_ = outputs; }

    // Asks for what a look at the pattern reads, ahead of it: first the pattern itself, then what it points to, then
    // the weights of tokens that have another label in an output than in truth.
    void prefetch_own() const { prefetch_bytes(this, sizeof *this); }
    void prefetch_block() const {
        prefetch_bytes(block_.data(), block_.size());
        prefetch_bytes(outputs_.data(), outputs_.size() * sizeof(Output));
        prefetch_bytes(labels_.data(), labels_.size() * sizeof(int32_t));
    }
    void prefetch_weights(const T* weights, int64_t lanes) const {
        constexpr std::size_t most = 8;  // further outputs mostly differ at the same tokens
        for (std::size_t n = 0; n < std::min(outputs_.size(), most); ++n)
            for (int64_t t = 0; t < length_; ++t) {
                if (labels(n)[t] == truth()[t]) continue;
                for (int64_t j = indptr()[t]; j < indptr()[t + 1]; ++j) {
                    const T* row = weights + indices()[j] * lanes;
                    prefetch(row + truth()[t]), prefetch(row + labels(n)[t]);
                }
            }
    }

    int64_t id;
    double cost;

  private:
    static void prefetch_bytes(const void* first, std::size_t bytes) {
        constexpr std::size_t line = 64, most = 4096;
        for (std::size_t at = 0; at < std::min(bytes, most); at += line) prefetch(static_cast<const char*>(first) + at);
    }

    int64_t block_bytes() const {
        return (length_ + 1) * 8 + (has_values_ ? count_ * int64_t(sizeof(T)) : 0) + (count_ + length_ + order_) * 4;
    }

    int64_t* indptr() const { return reinterpret_cast<int64_t*>(const_cast<char*>(block_.data())); }
    T* values() const { return reinterpret_cast<T*>(indptr() + length_ + 1); }
    int32_t* indices() const { return reinterpret_cast<int32_t*>(values() + (has_values_ ? count_ : 0)); }
    int32_t* truth() const { return indices() + count_; }
    int32_t* history() const { return truth() + length_; }

    int64_t length_, order_;
    int32_t previous_;
    int64_t remaining_, count_;
    bool has_values_;
    int64_t room_ = 0;  // for outputs
    std::vector<char> block_;
    std::vector<Output> outputs_;
    std::vector<int32_t> labels_;
};

}  // namespace larank
