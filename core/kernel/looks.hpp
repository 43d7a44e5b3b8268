// When an average over a stream looks at what it averages, and how much a look counts.
//
//   A <- A + (1 - (s / t)^p) (W - A)    at a look after t examples, the last one having been after s
//
// What there was after s examples counts like s^(p - 1), so about the last p-th part of the stream makes the average.
// Nobody needs to say where it begins, nor how long the stream will be.
#pragma once

#include <cstdint>

#include "memory/snapshot.hpp"

namespace larank {

class Looks {
  public:
    // p is a power of two, given by its logarithm.
    explicit Looks(int doublings) : doublings_(doublings) {}

    int64_t examples() const { return examples_; }
    bool have_begun() const { return looked_ > 0; }
    void after_example() { ++examples_; }

    // Whether so many examples have come since the last look that what it adds counts in single precision.
    bool are_due() const { return since_last() >= examples_ / most; }
    int64_t since_last() const { return examples_ - looked_; }
    void look() { looked_ = examples_; }
    // The share of what there is now in an average from the last look on; all of it where there was none.
    double share() const {
        double left = double(looked_) / double(examples_);
        for (int n = 0; n < doublings_; ++n) left *= left;
        return 1 - left;
    }

    // Goes on from an average of so many examples.
    void set(int64_t examples) { looked_ = examples_ = examples; }

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(examples_, looked_);
        if constexpr (Snapshot::reads)
            must_hold(looked_ >= 0 && looked_ <= examples_, "an average is of no part of a stream");
    }

  private:
    static constexpr int64_t most = 1024;

    int doublings_;
    int64_t examples_ = 0, looked_ = 0;
};

}  // namespace larank
