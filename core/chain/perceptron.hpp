// Online rules on chains that look at a stretch once and keep nothing of it: the structured perceptron, [thesis]
// algorithm 6, and the passive-aggressive rule, which is LaRank with PROCESSNEW alone ([thesis] section 5.1.3).
//
// w += step (Phi(x, y_i) - Phi(x, y)). Perceptron: y is the prediction, the step C. Passive-aggressive: y is the output
// with the largest h (see chain/larank.hpp), the step min(C, h / |Phi(x, y_i) - Phi(x, y)|^2).
//
// The average of the weights after each of n stretches is w - u / n with u = sum over updates of (stretches before the
// update) times the update, so it costs one more array and no passes over it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "chain/chain.hpp"
#include "memory/snapshot.hpp"

namespace larank {

enum class OnlineRule { perceptron, passive_aggressive };

template <class T>
class ChainPerceptron {
  public:
    ChainPerceptron(ChainModel<T>& model, OnlineRule rule, bool averages)
        : model_(model), search_(model), rule_(rule), averages_(averages), early_(model.weights.order()) {}

    // Another one at the same point, on a copy of its model.
    ChainPerceptron(ChainModel<T>& copy, const ChainPerceptron& other)
        : model_(copy),
          search_(copy),
          rule_(other.rule_),
          averages_(other.averages_),
          early_(other.early_),
          stretches_(other.stretches_),
          steps_(other.steps_),
          linear_(other.linear_) {}

    // Returns h of the output found. The number of the stretch is for solvers that keep it.
    double process(const Stretch<T>& x, int64_t, double cost) {
        output_.resize(std::size_t(x.length));
        const bool is_perceptron = rule_ == OnlineRule::perceptron;
        search_.argmax(is_perceptron ? search_.plain(x) : search_.augmented(x), output_.data());
        const int64_t before = stretches_++;
        if (std::equal(x.truth, x.truth + x.length, output_.data())) return 0;
        const double loss = model_.loss(x.truth, output_.data(), x.length);
        const double h = loss + search_.lead(x, output_.data());
        const double distance = search_.squared_distance(x, x.truth, output_.data());
        double step = cost;
        if (!is_perceptron)
            step = std::min(cost, distance > 0 ? h / distance : std::numeric_limits<double>::infinity());
        if (step <= 0) return std::max(h, 0.0);
        ++steps_;
        add_difference(model_.weights, x, x.truth, output_.data(), step);
        if (averages_) {
            early_.grow(model_.weights.features(), model_.weights.labels());
            add_difference(early_, x, x.truth, output_.data(), step * double(before));
        }
        linear_ += step * loss;
        return std::max(h, 0.0);
    }

    std::vector<std::pair<const char*, int64_t>> operations() const {
        return {{"examples", stretches_}, {"steps", steps_}};
    }
    int64_t argmax_calls() const { return stretches_; }
    double linear() const { return linear_; }
    double half_squared_norm() const { return model_.weights.squared_norm() / 2; }
    // The dual objective, as long as every stretch was seen once and the rule is the passive-aggressive one.
    double dual() const { return linear_ - half_squared_norm(); }

    int64_t bytes() const { return early_.bytes(); }
    const ChainWeights<T>& early() const { return early_; }
    ChainWeights<T>& early() { return early_; }
    void restore(double linear, int64_t stretches) { linear_ = linear, stretches_ = stretches; }

    // All that the weights and `early` do not tell.
    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(stretches_, steps_, linear_);
        if constexpr (Snapshot::reads)
            must_hold(stretches_ >= steps_ && steps_ >= 0 && std::isfinite(linear_), "a count is out of range");
    }

    // The average of all weights so far.
    ChainWeights<T> average() const {
        ChainWeights<T> mean = model_.weights;
        ChainWeights<T> early = early_;
        early.grow(mean.features(), mean.labels());
        const T n = T(std::max<int64_t>(stretches_, 1));
        for (int64_t j = 0; j < mean.features() * mean.lanes(); ++j) mean.tokens()[j] -= early.tokens()[j] / n;
        for (int64_t s = 1; s <= mean.order(); ++s)
            for (int64_t j = 0; j < (mean.labels() + 1) * mean.lanes(); ++j) mean.lag(s)[j] -= early.lag(s)[j] / n;
        return mean;
    }

  private:
    ChainModel<T>& model_;
    ChainSearch<T> search_;
    OnlineRule rule_;
    bool averages_;
    ChainWeights<T> early_;
    int64_t stretches_ = 0, steps_ = 0;
    std::vector<int32_t> output_;
    double linear_ = 0;
};

}  // namespace larank
