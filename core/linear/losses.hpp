// The losses of linear models: values, derivatives, and what the Fenchel dual needs of them.
//
// A margin loss is a convex function l of z = +-s. Its conjugate at -a, where a = -l'(z) >= 0, enters the dual as
//   gain(a) = -l*(-a) = linear(a) - quadratic(a),
// `linear` concave with linear(0) = 0, and `quadratic` a multiple of a^2. So for a factor 0 <= f <= 1, or any f >= 0
// where the gain is finite for all a,
//   gain(f a) >= f linear(a) - f^2 quadratic(a).
// Joint losses look at the scores of all classes together; theirs are the same with the gradient in place of a.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace larank {

enum class Loss { hinge, squared_hinge, smoothed_hinge, log_loss, modified_huber };

struct Hinge {  // max(0, 1 - z)
    static double value(double z) { return std::max(0.0, 1 - z); }
    static double slope(double z) { return z < 1 ? -1.0 : 0.0; }
    static double linear(double a) { return a; }
    static double quadratic(double) { return 0; }
};

struct SquaredHinge {  // max(0, 1 - z)^2
    static double value(double z) { return z < 1 ? (1 - z) * (1 - z) : 0.0; }
    static double slope(double z) { return z < 1 ? -2 * (1 - z) : 0.0; }
    static double linear(double a) { return a; }
    static double quadratic(double a) { return a * a / 4; }
};

struct SmoothedHinge {  // (1 - z)^2 / 2 between 0 and 1, continued by straight lines
    static double value(double z) { return z >= 1 ? 0.0 : z <= 0 ? 0.5 - z : (1 - z) * (1 - z) / 2; }
    static double slope(double z) { return z >= 1 ? 0.0 : z <= 0 ? -1.0 : z - 1; }
    static double linear(double a) { return a; }
    static double quadratic(double a) { return a * a / 2; }
};

inline double entropy(double p) { return p > 0 ? -p * std::log(p) : 0.0; }

struct LogLoss {  // log(1 + exp(-z))
    static double value(double z) { return z > 0 ? std::log1p(std::exp(-z)) : std::log1p(std::exp(z)) - z; }
    static double slope(double z) { return z > 0 ? -std::exp(-z) / (1 + std::exp(-z)) : -1 / (1 + std::exp(z)); }
    static double linear(double a) { return entropy(a) + entropy(1 - a); }
    static double quadratic(double) { return 0; }
};

struct ModifiedHuber {  // max(0, 1 - z)^2, below -1 continued by a straight line
    static double value(double z) { return z >= 1 ? 0.0 : z < -1 ? -4 * z : (1 - z) * (1 - z); }
    static double slope(double z) { return z >= 1 ? 0.0 : z < -1 ? -4.0 : -2 * (1 - z); }
    static double linear(double a) { return a; }
    static double quadratic(double a) { return a * a / 4; }
};

// What one example adds to the primal, and to the dual at its own derivatives.
struct LossAndGain {
    double loss = 0, linear = 0, quadratic = 0;
};

// What an example costs in the loss of its own class and, where each class has a loss, in those of the others.
struct ExampleCosts {
    double own, rest;

    double of(int64_t m, int64_t label) const { return m == label ? own : rest; }
};

// One margin loss per function: that of the label shall be positive and all others negative. A single function is
// that of label 1; it is the loss of both classes, and its costs are alike.
template <class Margin>
struct OneVsRestLoss {
    template <class T, class G>
    static double gradient(const T* scores, int64_t functions, int64_t label, const ExampleCosts& costs, G* g) {
        double loss = 0;
        for (int64_t m = 0; m < functions; ++m) {
            const double sign = is_positive(m, functions, label) ? 1 : -1, z = sign * double(scores[m]);
            const double cost = costs.of(m, label);
            loss += cost * Margin::value(z);
            g[m] = G(cost) * G(sign * Margin::slope(z));
        }
        return loss;
    }
    // Gains of function m.
    template <class T>
    static LossAndGain gains(const T* scores, int64_t functions, int64_t label, int64_t m) {
        const double z = (is_positive(m, functions, label) ? 1 : -1) * double(scores[m]);
        const double a = -Margin::slope(z);
        return {Margin::value(z), Margin::linear(a), Margin::quadratic(a)};
    }

  private:
    static bool is_positive(int64_t m, int64_t functions, int64_t label) { return label == (functions == 1 ? 1 : m); }
};

// A margin loss of z = s_y - max_{m != y} s_m; of the hinge loss, this is the loss of Crammer and Singer.
template <class Margin>
struct BestOtherLoss {
    template <class T, class G>
    static double gradient(const T* scores, int64_t functions, int64_t label, const ExampleCosts& costs, G* g) {
        std::fill(g, g + functions, G(0));
        const int64_t other = best_other(scores, functions, label);
        const double z = double(scores[label]) - double(scores[other]);
        const G slope = G(costs.own) * G(Margin::slope(z));
        g[label] = slope, g[other] = -slope;
        return costs.own * Margin::value(z);
    }
    template <class T>
    static LossAndGain gains(const T* scores, int64_t functions, int64_t label, int64_t m) {
        if (m != 0) return {};
        const double z = double(scores[label]) - double(scores[best_other(scores, functions, label)]);
        const double a = -Margin::slope(z);
        return {Margin::value(z), Margin::linear(a), Margin::quadratic(a)};
    }

  private:
    template <class T>
    static int64_t best_other(const T* scores, int64_t functions, int64_t label) {
        int64_t best = label == 0;
        for (int64_t m = best + 1; m < functions; ++m)
            if (m != label && scores[m] > scores[best]) best = m;
        return best;
    }
};

// log sum_m exp(s_m) - s_y, the joint form of the log loss. The largest score is taken out of the sum, where it would
// be 1 and hide what the others add to it.
struct MultinomialLoss {
    template <class T, class G>
    static double gradient(const T* scores, int64_t functions, int64_t label, const ExampleCosts& costs, G* g) {
        const int64_t best = std::max_element(scores, scores + functions) - scores;
        const double top = double(scores[best]);
        double others = 0;
        for (int64_t m = 0; m < functions; ++m) {
            g[m] = G(std::exp(double(scores[m]) - top));
            if (m != best) others += double(g[m]);
        }
        const G share = G(1 / (1 + others));
        for (int64_t m = 0; m < functions; ++m) g[m] *= share;
        g[label] -= G(1);
        if (costs.own != 1)
            for (int64_t m = 0; m < functions; ++m) g[m] *= G(costs.own);
        return costs.own * (top - double(scores[label]) + std::log1p(others));
    }
    template <class T>
    static LossAndGain gains(const T* scores, int64_t functions, int64_t label, int64_t m) {
        if (m != 0) return {};
        const int64_t best = std::max_element(scores, scores + functions) - scores;
        const double top = double(scores[best]);
        double others = 0, weighted = 0;
        for (int64_t n = 0; n < functions; ++n) {
            if (n == best) continue;
            const double s = double(scores[n]) - top, e = std::exp(s);
            others += e;
            weighted += e * s;
        }
        return {top - double(scores[label]) + std::log1p(others), std::log1p(others) - weighted / (1 + others), 0};
    }
};

}  // namespace larank
