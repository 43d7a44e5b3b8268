// The average of weights over a stream, in which those after s examples count like s^15: kernel/looks.hpp.
//
// The last weights of a noisy stream owe much to its last few examples; the average does not. The power was chosen
// among 1, 2, 4, 8 and 16: all serve noisy streams, but on texts of many rare features, where weights grow to the end,
// the model should not be much older than its examples.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernel/looks.hpp"
#include "memory/aligned.hpp"
#include "memory/snapshot.hpp"

namespace larank {

template <class T>
class WeightAverage {
  public:
    explicit WeightAverage(bool is_kept) : is_kept_(is_kept) {}

    bool is_kept() const { return is_kept_; }
    int64_t bytes() const { return A_.size() * int64_t(sizeof(T)); }

    // Work since the last look, for a finish to set back.
    int64_t work() const { return work_; }
    void set_work(int64_t work) { work_ = work; }
    void add_work(int64_t work) { work_ += work; }

    // A look is a pass over W. It waits for as much other work as makes it cheap.
    void after_example(const AlignedArray<T>& W) {
        if (!is_kept_) return;
        looks_.after_example();
        if (work_ < work_between * W.size() || !looks_.are_due()) return;
        if (looks_.have_begun())
            move(A_, W);
        else
            A_ = W;
        looks_.look();
        work_ = 0;
    }

    // The average, W included.
    AlignedArray<T> until_now(const AlignedArray<T>& W) const {
        if (!looks_.have_begun()) return W;
        AlignedArray<T> average = A_;
        move(average, W);
        return average;
    }

    // Goes on from an average of so many examples.
    void set(AlignedArray<T> average, int64_t examples) {
        A_ = std::move(average);
        looks_.set(examples);
    }

    // Gives the array another layout, if there is one.
    template <class Widened>
    void widen(Widened widened) {
        if (A_.size()) A_ = widened(A_);
    }

    // The average has the size of the weights.
    template <class Snapshot>
    void exchange(Snapshot& snapshot, int64_t size) {
        std::vector<T> average(A_.data(), A_.data() + A_.size());
        snapshot(is_kept_, average, looks_, work_);
        if constexpr (!Snapshot::reads) return;
        must_hold(work_ >= 0, "the work since a look is a count");
        must_hold(is_kept_ || looks_.examples() == 0, "there is an average of weights that is not kept");
        must_hold(int64_t(average.size()) == (looks_.have_begun() ? size : 0) && are_finite(average),
                  "the average of the weights does not fit them");
        A_ = AlignedArray<T>(int64_t(average.size()));
        std::copy(average.begin(), average.end(), A_.data());
    }

  private:
    static constexpr int64_t work_between = 64;  // times the size of W
    static constexpr int doublings = 4;          // to the power of 16

    // The average of the last look to that of now.
    void move(AlignedArray<T>& average, const AlignedArray<T>& W) const {
        const T share = T(looks_.share());
        T* const a = average.data();
        const T* const w = W.data();
        for (int64_t n = 0; n < W.size(); ++n) a[n] += share * (w[n] - a[n]);
    }

    bool is_kept_;
    Looks looks_{doublings};
    int64_t work_ = 0;
    AlignedArray<T> A_{0};  // in the layout of W; empty before the first look
};

}  // namespace larank
