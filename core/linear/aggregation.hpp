// The loss of the primal multiclass SVM: one margin loss per wrong class, and an aggregation of them.
//
// With the scores f and the label y of an example, s_u = f_y - f_u and t_u = l(s_u) for the m wrong classes u, the loss
// is one of
//   sum              sum_u t_u,
//   interpolation    smax_g(t) = (1/g) log((1 - m) + sum_u exp(g t_u))        [primal] (1.4),
//   smoothed maximum (1/g) log sum_u exp(g t_u), which is max_u t_u for large g and convex where l is.
// With pi_u, the derivative of the aggregation by t_u, and q_u = pi_u l'(s_u), the loss has in s
//   the gradient q and the Hessian diag(h) - g q q',  h_u = pi_u (l''(s_u) + g l'(s_u)^2)    (g = 0 for the sum),
// and in f, through s_u = f_y - f_u, the gradient -q_u and, for the label, the sum of all q_u.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "linear/losses.hpp"

namespace larank {

struct MarginLoss {
    double value, slope, curvature;
};

struct LogisticMargin {
    MarginLoss operator()(double s) const {
        const double e = std::exp(-std::abs(s)), share = (s > 0 ? e : 1.0) / (1 + e);
        return {std::max(-s, 0.0) + std::log1p(e), -share, e / ((1 + e) * (1 + e))};
    }
};

struct SquaredHingeMargin {
    MarginLoss operator()(double s) const {
        return {SquaredHinge::value(s), SquaredHinge::slope(s), s < 1 ? 2.0 : 0.0};
    }
};

// The hinge max(0, 1 - s), rounded off over `width` below its corner.
struct SmoothedHingeMargin {
    double width;
    MarginLoss operator()(double s) const {
        const double z = 1 - (1 - s) / width;
        return {width * SmoothedHinge::value(z), SmoothedHinge::slope(z), z >= 0 && z < 1 ? 1 / width : 0.0};
    }
};

enum class Aggregation { sum, interpolation, smoothed_maximum };

// What one example of cost 1 adds: its loss, the largest margin loss, and that of pi, the mean of the margin losses.
struct AggregatedLoss {
    double value = 0, largest = 0, mean = 0;
};

// Derivatives in s of one example; the entries of the label are 0.
struct Derivatives {
    double *q, *h;
};

// pi_u of t, in place, and the aggregated value.
class Aggregate {
  public:
    Aggregate(Aggregation kind, double g) : kind_(kind), g_(g) {}

    double curvature() const { return kind_ == Aggregation::sum ? 0.0 : g_; }

    double operator()(double* t, int64_t classes, int64_t label, double largest) const {
        double value = 0;
        if (kind_ == Aggregation::sum) {
            for (int64_t u = 0; u < classes; ++u)
                if (u != label) value += t[u], t[u] = 1;
            return value;
        }
        // All exponents are at most 0. The constant 1 - m is dealt out among the classes, exp(g t_u) - 1 each, for many
        // small t would cancel against it.
        const double top = g_ * largest, least = std::exp(-top);
        double sum = kind_ == Aggregation::interpolation ? least : 0.0, excess = 0;
        for (int64_t u = 0; u < classes; ++u) {
            if (u == label) continue;
            const double above = g_ * t[u], e = std::exp(g_ * (t[u] - largest));
            excess += std::expm1(std::min(above, 1.0));  // needed where no t is large
            sum += kind_ != Aggregation::interpolation ? e : above < 1 ? std::expm1(above) * least : e - least;
            t[u] = e;
        }
        for (int64_t u = 0; u < classes; ++u) t[u] /= sum;
        if (kind_ == Aggregation::interpolation && top < 1) return std::log1p(excess) / g_;
        return largest + std::log(sum) / g_;
    }

  private:
    Aggregation kind_;
    double g_;
};

// Loss and derivatives of one example with these scores.
template <class Margin>
AggregatedLoss aggregated_loss(const Margin& margin, const Aggregate& aggregate, const double* scores, int64_t classes,
                               int64_t label, Derivatives into) {
    AggregatedLoss loss;
    double* const pi = into.h;
    for (int64_t u = 0; u < classes; ++u) {
        const double t = u == label ? 0.0 : margin(scores[label] - scores[u]).value;
        pi[u] = t;
        loss.largest = std::max(loss.largest, t);
    }
    pi[label] = 0;
    into.q[label] = 0;
    loss.value = aggregate(pi, classes, label, loss.largest);
    for (int64_t u = 0; u < classes; ++u) {
        if (u == label) continue;
        const MarginLoss at = margin(scores[label] - scores[u]);
        loss.mean += pi[u] * at.value;
        into.q[u] = pi[u] * at.slope;
        into.h[u] = pi[u] * (at.curvature + aggregate.curvature() * at.slope * at.slope);
    }
    return loss;
}

// The case g = 1 of the logistic loss, log sum_m exp(f_m) - f_y: h = -q are the probabilities of the wrong classes.
inline AggregatedLoss multinomial_loss(const double* scores, int64_t classes, int64_t label, Derivatives into) {
    const double top = *std::max_element(scores, scores + classes);
    double sum = 0, others = 0;
    for (int64_t u = 0; u < classes; ++u) {
        const double e = std::exp(scores[u] - top);
        into.h[u] = u == label ? 0.0 : e;
        sum += e;
        others += into.h[u];
    }
    for (int64_t u = 0; u < classes; ++u) into.h[u] /= sum, into.q[u] = -into.h[u];
    // log(1 + others / own) where the label has the largest score, for the difference of two large numbers is nothing.
    const double value = scores[label] == top ? std::log1p(others) : top + std::log(sum) - scores[label];
    return {value, 0, 0};
}

}  // namespace larank
