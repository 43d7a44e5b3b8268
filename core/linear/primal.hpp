// The losses of the primal multiclass SVM over a data set, with their gradient and products with their Hessian.
//
//   P(V, b) = sum_i c_i loss(V' x_i + b, y_i)        [primal] (1.1), without its regulariser; see
//   linear/aggregation.hpp
//
// V and everything of its shape is stored [feature][class], each feature's classes padded, see linear/rows.hpp; a last
// row is that of the biases b. One pass takes an example through scores, loss and gradient while it is in cache:
//   G_i = c_i (gradient of the loss in the scores),  grad V = sum_i x_i G_i',  grad b = sum_i G_i    [primal]
//   (1.5, 1.6)
// A pass may be cut into stripes of rows, which several threads take: each adds to a table of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "data/matrix.hpp"
#include "linear/aggregation.hpp"
#include "memory/aligned.hpp"
#include "simd/units.hpp"

namespace larank {

struct PrimalOptions {
    Loss loss;
    Aggregation aggregation;
    double softmax_gamma;
    double smoothing;
    int64_t classes;
    bool intercept;

    bool is_multinomial() const {
        return loss == Loss::log_loss && aggregation == Aggregation::interpolation && softmax_gamma == 1;
    }
};

// Sums over examples, each times its cost.
struct LossSums {
    double value = 0, largest = 0, mean = 0;
};

template <class T>
class PrimalLosses {
  public:
    // `offsets` are added to the scores, [example][class]; null: there are none.
    PrimalLosses(const Matrix<T>& X, const int32_t* labels, const double* costs, const T* offsets,
                 const PrimalOptions& options)
        : X_(X),
          labels_(labels),
          costs_(costs),
          offsets_(offsets),
          options_(options),
          lanes_(padded<T>(options.classes)),
          scores_(X.rows * options.classes),
          h_(X.rows * options.classes),
          q_(has_own_gradient() ? X.rows * options.classes : 0) {}

    int64_t lanes() const { return lanes_; }
    int64_t rows() const { return X_.rows; }
    int64_t weight_rows() const { return X_.columns + 1; }
    const PrimalOptions& options() const { return options_; }
    void smooth(double softmax_gamma, double smoothing) {
        options_.softmax_gamma = softmax_gamma;
        options_.smoothing = smoothing;
    }
    const T* scores() const { return scores_.data(); }

    // Adds up rows first .. last - 1 at V: returns the losses, writes the gradient, keeps what `product` needs.
    LossSums evaluate(int64_t first, int64_t last, const T* V, T* gradient) {
        switch (options_.loss) {
            case Loss::squared_hinge: return evaluate_with(SquaredHingeMargin{}, first, last, V, gradient);
            case Loss::smoothed_hinge:
                return evaluate_with(SmoothedHingeMargin{options_.smoothing}, first, last, V, gradient);
            default: return evaluate_with(LogisticMargin{}, first, last, V, gradient);
        }
    }

    // The product of the Hessian, at the V of `evaluate`, with D.
    void product(int64_t first, int64_t last, const T* D, T* out) const {
        const int64_t k = options_.classes;
        const double g = curvature_of_aggregation();
        const T* const shift = D + X_.columns * lanes_;
        AlignedArray<T> z(lanes_), change(lanes_);
        std::vector<double> bias(std::size_t(k), 0.0);
        clear(out);
        for (int64_t i = first; i < last; ++i) {
            if (costs_[i] == 0) continue;
            const Row<T> x = X_.row(i);
            prefetch_rows(x, out);
            units<T>().scores(x, D, lanes_, prefetches_, z.data());
            for (int64_t u = 0; u < k; ++u) z.data()[u] += shift[u];
            const T *const h = h_.data() + i * k, *const q = has_own_gradient() ? q_.data() + i * k : h;
            const T own = z.data()[labels_[i]];
            double along = 0, sum = 0;  // q'a with a_u = z_y - z_u; the sign of q does not matter
            for (int64_t u = 0; u < k; ++u) along += double(q[u]) * double(own - z.data()[u]);
            along *= g;
            for (int64_t u = 0; u < k; ++u) {
                const double by = double(h[u]) * double(own - z.data()[u]) - along * double(q[u]);
                sum += by;
                change.data()[u] = T(-by * costs_[i]);
            }
            change.data()[labels_[i]] += T(sum * costs_[i]);
            add(x, change.data(), out, bias);
        }
        put_biases(bias, out);
    }

    // The diagonal of the Hessian of example i in its scores, times its cost.
    void curvatures(int64_t i, double* out) const {
        const int64_t k = options_.classes;
        const double g = curvature_of_aggregation();
        const T *const h = h_.data() + i * k, *const q = has_own_gradient() ? q_.data() + i * k : h;
        double sum = 0, gradient = 0;
        for (int64_t u = 0; u < k; ++u) {
            sum += double(h[u]), gradient += double(q[u]);
            out[u] = std::max(0.0, double(h[u]) - g * double(q[u]) * double(q[u])) * costs_[i];
        }
        out[labels_[i]] = std::max(0.0, sum - g * gradient * gradient) * costs_[i];
    }

  private:
    bool has_own_gradient() const { return !options_.is_multinomial() && options_.aggregation != Aggregation::sum; }
    double curvature_of_aggregation() const {
        return options_.aggregation == Aggregation::sum ? 0.0 : options_.softmax_gamma;
    }
    void clear(T* table) const { std::fill(table, table + weight_rows() * lanes_, T(0)); }

    // Asks for the rows that the example will be added to, while its scores are computed.
    void prefetch_rows(const Row<T>& x, const T* table) const {
        if (!prefetches_ || !x.columns32) return;
        for (int64_t j = 0; j < x.count; ++j)
            for (int64_t m = 0; m < lanes_; m += lane_count<T>) prefetch(table + x.columns32[j] * lanes_ + m);
    }
    void add(const Row<T>& x, const T* coefficients, T* table, std::vector<double>& bias) const {
        units<T>().add_row(x, coefficients, lanes_, table);
        for (std::size_t u = 0; u < bias.size(); ++u) bias[u] += double(coefficients[u]);
    }
    void put_biases(const std::vector<double>& bias, T* table) const {
        if (!options_.intercept) return;
        for (std::size_t u = 0; u < bias.size(); ++u) table[X_.columns * lanes_ + int64_t(u)] = T(bias[u]);
    }

    template <class Margin>
    LossSums evaluate_with(const Margin& margin, int64_t first, int64_t last, const T* V, T* gradient) {
        const int64_t k = options_.classes;
        const Aggregate aggregate(options_.aggregation, options_.softmax_gamma);
        AlignedArray<T> f(lanes_), coefficients(lanes_);
        std::vector<double> scores(std::size_t(k), 0.0), q(scores), h(scores), bias(scores);
        const Derivatives derivatives{q.data(), h.data()};
        LossSums sums;
        clear(gradient);
        for (int64_t i = first; i < last; ++i) {
            if (costs_[i] == 0) continue;
            const Row<T> x = X_.row(i);
            const int64_t y = labels_[i];
            prefetch_rows(x, gradient);
            take_scores(i, x, V, f.data(), scores.data());
            const AggregatedLoss loss = options_.is_multinomial()
                                            ? multinomial_loss(scores.data(), k, y, derivatives)
                                            : aggregated_loss(margin, aggregate, scores.data(), k, y, derivatives);
            sums.value += costs_[i] * loss.value;
            sums.largest += costs_[i] * loss.largest;
            sums.mean += costs_[i] * loss.mean;
            double sum = 0;
            for (int64_t u = 0; u < k; ++u) {
                coefficients.data()[u] = T(-q[std::size_t(u)] * costs_[i]);
                sum += q[std::size_t(u)];
                h_.data()[i * k + u] = T(h[std::size_t(u)]);
                if (has_own_gradient()) q_.data()[i * k + u] = T(q[std::size_t(u)]);
            }
            coefficients.data()[y] = T(sum * costs_[i]);
            add(x, coefficients.data(), gradient, bias);
        }
        put_biases(bias, gradient);
        return sums;
    }

    void take_scores(int64_t i, const Row<T>& x, const T* V, T* f, double* scores) {
        const int64_t k = options_.classes;
        const T *const biases = V + X_.columns * lanes_, *const offsets = offsets_ ? offsets_ + i * k : nullptr;
        units<T>().scores(x, V, lanes_, prefetches_, f);
        for (int64_t u = 0; u < k; ++u) {
            f[u] += biases[u] + (offsets ? offsets[u] : T(0));
            scores[u] = double(f[u]);
            scores_.data()[i * k + u] = f[u];
        }
    }

    Matrix<T> X_;
    const int32_t* labels_;
    const double* costs_;
    const T* offsets_;
    PrimalOptions options_;
    int64_t lanes_;
    AlignedArray<T> scores_, h_, q_;                                                        // [example][class]
    bool prefetches_ = X_.starts && weight_rows() * lanes_ * int64_t{sizeof(T)} > 1 << 20;  // not in cache anyway
};

}  // namespace larank
