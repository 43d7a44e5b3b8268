// SplitMix64: the same sequence on every platform, unlike the distributions of <random>.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace larank {

class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed) {}

    uint64_t state() const { return state_; }
    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(state_);
    }

    uint64_t next() {
        uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

    // Uniform in [0, n), n < 2^32, up to a bias of n / 2^32.
    uint32_t below(uint32_t n) { return uint32_t(((next() >> 32) * n) >> 32); }

    // Uniform in [0, 1).
    double uniform() { return double(next() >> 11) * 0x1p-53; }

    template <class V>
    void shuffle(std::vector<V>& items) {
        for (std::size_t n = items.size(); n > 1; --n) std::swap(items[n - 1], items[below(uint32_t(n))]);
    }

  private:
    uint64_t state_;
};

}  // namespace larank
