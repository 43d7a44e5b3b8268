// The average of the weights of a chain over a stream, in which those after s stretches count like s^(p - 1).
//
// With steps d_r, each taken after m_r stretches, w is their sum, and the average after n stretches is w - u / n^p with
// u = sum_r m_r^p d_r. So it costs one more array and no passes over it. A solver that steps on the same differences
// again and again sums up m_r^p times its steps for each of them, and adds a sum to u when it lets the difference go.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "chain/chain.hpp"
#include "memory/snapshot.hpp"

namespace larank {

template <class T>
class ChainAverage {
  public:
    ChainAverage(int64_t order, bool is_kept, int power) : is_kept_(is_kept), power_(power), early_(order) {}

    bool is_kept() const { return is_kept_; }
    int64_t stretches() const { return stretches_; }
    int64_t bytes() const { return early_.bytes(); }
    const ChainWeights<T>& early() const { return early_; }
    ChainWeights<T>& early() { return early_; }
    void set_stretches(int64_t stretches) { stretches_ = stretches; }

    // Steps from here on are those of the next stretch.
    void begin_stretch() { factor_ = power(stretches_++); }

    double factor() const { return is_kept_ ? factor_ : 0.0; }  // m^p

    // u += weighted (Phi(x, y) - Phi(x, z)), where w has features for it.
    void add(const ChainWeights<T>& w, const Stretch<T>& x, const int32_t* y, const int32_t* z, double weighted) {
        if (!is_kept_ || weighted == 0) return;
        early_.grow(w.features(), w.labels());
        add_difference(early_, x, y, z, weighted);
    }

    // 1 / n^p.
    double share() const { return 1 / power(std::max<int64_t>(stretches_, 1)); }

    // The average stays what it is, and counts from now on as one of n stretches, fewer than there were: so many that
    // what is learnt from `coming` stretches has this share of the average right after them,
    // 1 - (n / (n + coming))^p. Returns the factor on what is not in u yet.
    double shorten(double coming, double share_of_coming) {
        const double longest = coming / std::expm1(-std::log1p(-share_of_coming) / power_);
        if (!(longest < double(stretches_))) return 1;
        const int64_t stretches = std::max<int64_t>(1, std::llround(longest));
        const double factor = power(stretches) * share();
        early_.scale(T(factor));
        stretches_ = stretches;
        return factor;
    }

    // From w to w - u / n^p.
    void take_from(ChainWeights<T>& w) const {
        const T share = T(this->share());
        for (int64_t f = 0; f < early_.features(); ++f)
            for (int64_t y = 0; y < early_.labels(); ++y)
                w.tokens()[f * w.lanes() + y] -= share * early_.tokens()[f * early_.lanes() + y];
        for (int64_t s = 1; s <= w.order(); ++s)
            for (int32_t p = absent; p < early_.labels(); ++p)
                for (int32_t y = 0; y < early_.labels(); ++y)
                    w.transition(s, p, y) -= share * early_.transition(s, p, y);
    }

    // All that `early` does not tell.
    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(stretches_);
        if constexpr (Snapshot::reads) must_hold(stretches_ >= 0, "the stretches of an average are a count");
    }

  private:
    double power(int64_t stretches) const {
        double product = 1;
        for (int n = 0; n < power_; ++n) product *= double(stretches);
        return product;
    }

    bool is_kept_;
    int power_;
    ChainWeights<T> early_;  // u
    int64_t stretches_ = 0;
    double factor_ = 0;
};

}  // namespace larank
