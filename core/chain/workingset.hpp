// Outputs of chains as vectors of a working set: the rows Phi(x, y) - Phi(x, truth), which are never written out.
//
// The coefficients of a pattern add up to zero, so w = sum beta^y (Phi(x, y) - Phi(x, truth)), and the true output has
// an empty row. The patterns keep their outputs while the working set is there.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "chain/chain.hpp"
#include "chain/pattern.hpp"
#include "structured/workingset.hpp"

namespace larank {

template <class T>
class ChainRows {
  public:
    static constexpr int32_t is_truth = -1;

    ChainRows(ChainModel<T>& model, const std::vector<ChainPattern<T>>& patterns, const std::vector<T>& ones)
        : model_(model), search_(model), patterns_(patterns), ones_(ones) {}

    void add(std::size_t slot, int32_t output) { vectors_.push_back({int32_t(slot), output}); }
    std::pair<int32_t, int32_t> place(int32_t v) const { return vectors_[std::size_t(v)]; }

    void begin(int32_t v) {
        x_ = stretch(v);
        search_.plain(x_);
    }
    int64_t cost(int32_t v) const { return output(v) == is_truth ? 1 : pattern(v).length(); }
    double score(int32_t v) { return output(v) == is_truth ? 0.0 : search_.lead_in_lattice(x_, labels(v)); }

    // Steps of one pattern are summed up label by label, and added to w by `end`.
    void step(int32_t v, double amount) {
        if (output(v) == is_truth) return;
        ChainWeights<T>& w = model_.weights;
        sums_.resize(std::size_t(x_.length * w.lanes()), T(0));
        const int32_t* y = labels(v);
        ChainSearch<T>::for_each_difference(
            x_, y, x_.truth, w.order(),
            [&](int64_t t) {
                sums_[std::size_t(t * w.lanes() + y[t])] += T(amount);
                sums_[std::size_t(t * w.lanes() + x_.truth[t])] -= T(amount);
            },
            [&](int64_t s, int32_t py, int32_t y1, int32_t pz, int32_t z1) {
                w.transition(s, py, y1) += T(amount);
                w.transition(s, pz, z1) -= T(amount);
            });
    }
    void end() {
        if (sums_.empty()) return;
        ChainWeights<T>& w = model_.weights;
        for (int64_t t = 0; t < x_.length; ++t) {
            moved_.clear(), by_.clear();
            for (int64_t label = 0; label < w.labels(); ++label) {
                const T sum = sums_[std::size_t(t * w.lanes() + label)];
                if (sum != 0) moved_.push_back(int32_t(label)), by_.push_back(sum);
            }
            if (!moved_.empty())
                units<T>().add_row_of(x_.rows.row(x_.first + t), by_.data(), moved_.data(), int64_t(moved_.size()),
                                      w.lanes(), w.tokens());
        }
        sums_.clear();
    }
    double product(int32_t a, int32_t b) {
        if (output(a) == is_truth || output(b) == is_truth) return 0;
        const double between = a == b ? 0 : search_.squared_distance(stretch(a), labels(a), labels(b));
        return (distance(a) + distance(b) - between) / 2;
    }

  private:
    const ChainPattern<T>& pattern(int32_t v) const { return patterns_[std::size_t(place(v).first)]; }
    int32_t output(int32_t v) const { return place(v).second; }
    const int32_t* labels(int32_t v) const { return pattern(v).labels(std::size_t(output(v))); }
    double distance(int32_t v) const { return pattern(v).outputs()[std::size_t(output(v))].distance; }
    Stretch<T> stretch(int32_t v) const { return pattern(v).stretch(ones_.data()); }

    ChainModel<T>& model_;
    ChainSearch<T> search_;
    const std::vector<ChainPattern<T>>& patterns_;
    const std::vector<T>& ones_;
    std::vector<std::pair<int32_t, int32_t>> vectors_;  // the slot of the pattern, and which of its outputs
    Stretch<T> x_{};                                    // of the pattern at work
    std::vector<T> sums_;                               // [token][lane]
    std::vector<int32_t> moved_;
    std::vector<T> by_;
};

template <class T>
using ChainWorkingSet = StructuredWorkingSet<ChainRows<T>>;

}  // namespace larank
