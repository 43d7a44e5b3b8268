// Online rules on chains that look at a stretch once and keep nothing of it: the structured perceptron, [thesis]
// algorithm 6, and the passive-aggressive rule, which is LaRank with PROCESSNEW alone ([thesis] section 5.1.3).
//
// w += step (Phi(x, y_i) - Phi(x, y)). Perceptron: y is the prediction, the step C. Passive-aggressive: y is the output
// with the largest h (see chain/larank.hpp), the step min(C, h / |Phi(x, y_i) - Phi(x, y)|^2).
// The average is that of the weights after each stretch.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "chain/average.hpp"
#include "chain/chain.hpp"
#include "memory/snapshot.hpp"

namespace larank {

enum class OnlineRule { perceptron, passive_aggressive };

template <class T>
class ChainPerceptron {
  public:
    ChainPerceptron(ChainModel<T>& model, OnlineRule rule, bool averages)
        : model_(model), search_(model), rule_(rule), average_(model.weights.order(), averages, 1) {}

    // Another one at the same point, on a copy of its model.
    ChainPerceptron(ChainModel<T>& copy, const ChainPerceptron& other)
        : model_(copy),
          search_(copy),
          rule_(other.rule_),
          average_(other.average_),
          examples_(other.examples_),
          steps_(other.steps_),
          linear_(other.linear_) {}

    // Returns h of the output found. The number of the stretch is for solvers that keep it.
    double process(const Stretch<T>& x, int64_t, double cost) {
        output_.resize(std::size_t(x.length));
        const bool is_perceptron = rule_ == OnlineRule::perceptron;
        search_.argmax(is_perceptron ? search_.plain(x) : search_.augmented(x), output_.data());
        average_.begin_stretch();
        ++examples_;
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
        average_.add(model_.weights, x, x.truth, output_.data(), step * average_.factor());
        linear_ += step * loss;
        return std::max(h, 0.0);
    }

    std::vector<std::pair<const char*, int64_t>> operations() const {
        return {{"examples", examples_}, {"steps", steps_}};
    }
    int64_t argmax_calls() const { return examples_; }
    double linear() const { return linear_; }
    double half_squared_norm() const { return model_.weights.squared_norm() / 2; }
    // The dual objective, as long as every stretch was seen once and the rule is the passive-aggressive one.
    double dual() const { return linear_ - half_squared_norm(); }

    int64_t bytes() const { return 0; }  // beside the weights and their average
    const ChainAverage<T>& average() const { return average_; }
    ChainAverage<T>& average() { return average_; }
    // From the weights to their average.
    void average(ChainWeights<T>& w) const { average_.take_from(w); }
    void shorten_average(double coming, double share) { average_.shorten(coming, share); }
    void restore(double linear) { linear_ = linear; }

    // All that the weights, and those of the average, do not tell.
    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(average_, examples_, steps_, linear_);
        if constexpr (Snapshot::reads)
            must_hold(examples_ >= steps_ && steps_ >= 0 && std::isfinite(linear_), "a count is out of range");
    }

  private:
    ChainModel<T>& model_;
    ChainSearch<T> search_;
    OnlineRule rule_;
    ChainAverage<T> average_;
    int64_t examples_ = 0, steps_ = 0;
    std::vector<int32_t> output_;
    double linear_ = 0;
};

}  // namespace larank
