// The Sequential Dual Method for linear multiclass SVMs [sdm].
//
// Primal   min_W  1/2 |W|^2 + sum_i C_i loss(x_i' W, y_i)                               [sdm] (1), (14)
// Dual     max_a  sum_i gain(a_i, y_i) - 1/2 |W(a)|^2,   w_m = sum_i a_i^m x_i           [sdm] (4), (16), negated
//   Crammer-Singer   loss = max_m (e^m + s_m) - s_y       gain = a^y,  a^m <= C_i^m, sum_m a^m = 0
//   Weston-Watkins   loss = sum_{m != y} [1 + s_m - s_y]+ gain = a^y,  -C_i <= a^m <= 0, sum_m a^m = 0
//   One-versus-rest  loss = sum_m [1 -+ s_m]+             gain = sum |a^m|, 0 <= +-a^m <= C_i
// A visit to example i solves its QP exactly (rowqp.hpp) and updates W. A full loop visits all examples in random
// order; with shrinking, loops over those with a free coefficient follow until they are epsilon-optimal or have cost
// as much as five full ones. Cooling divides epsilon by ten from 1 down, each time a full loop is epsilon-optimal.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "coefficients.hpp"
#include "dispatch/units.hpp"
#include "matrix.hpp"
#include "random.hpp"

namespace larank {

// A 64-byte aligned array of zeros.
template <class T>
class AlignedArray {
  public:
    explicit AlignedArray(int64_t size)
        : storage_(std::size_t(size + lane_count<T>)), size_(size) {}
    T* data() {
        void* p = storage_.data();
        std::size_t space = storage_.size() * sizeof(T);
        return static_cast<T*>(std::align(64, std::size_t(size_) * sizeof(T), p, space));
    }
    const T* data() const { return const_cast<AlignedArray*>(this)->data(); }
    int64_t size() const { return size_; }

  private:
    std::vector<T> storage_;
    int64_t size_;
};

struct SdmOptions {
    Formulation formulation = Formulation::crammer_singer;
    int64_t classes = 2;
    double epsilon = 0.1;  // stop at this violation; 0: never
    bool shrinking = true;
    bool cooling = true;
    uint64_t seed = 0;
};

struct Objectives {
    double primal = 0, dual = 0, violation = 0;
};

template <class T>
class Sdm {
  public:
    Sdm(const Matrix<T>& X, const int32_t* labels, const double* costs, const SdmOptions& options)
        : X_(X), labels_(labels), options_(options), lanes_(padded<T>(options.classes)), random_(options.seed),
          coefficients_(X.rows), W_(X.weight_rows() * lanes_), scores_(lanes_), a_(lanes_), change_(lanes_), work_(lanes_) {
        cost_.assign(costs, costs + X.rows);
        norm_.resize(std::size_t(X.rows));
        for (int64_t i = 0; i < X.rows; ++i) {
            norm_[std::size_t(i)] = T(X.squared_norm(i));
            if (acts(i)) order_.push_back(int32_t(i));
        }
        everyone_ = order_;
        epsilon_ = options.cooling ? std::max(1.0, options.epsilon) : options.epsilon;
        random_.shuffle(order_);
    }

    // Visits examples until about `work` multiply-adds are done or a loop ends. True once the violation stop holds.
    bool advance(int64_t work) {
        while (!converged_ && work > 0) {
            if (position_ == order_.size()) {
                end_loop();
                return converged_;
            }
            const int64_t i = order_[position_++];
            if (position_ < order_.size()) X_.prefetch(order_[position_]);
            work -= (X_.count(i) + 8) * lanes_;
            visit(i);
        }
        return converged_;
    }

    // Everything from scratch: W from the coefficients, then primal, dual and the largest violation at that W.
    Objectives evaluate() {
        Objectives at;
        rebuild_weights();
        at.dual = -0.5 * squared_norm();
        at.primal = 0.5 * squared_norm();
        for (int64_t i = 0; i < X_.rows; ++i) {
            const double cost = cost_[std::size_t(i)];
            if (!acts(i)) {
                const double constant = cost * constant_loss();
                at.primal += constant;
                at.dual += constant;
                continue;
            }
            const RowStep<T> step = look(i, T(INFINITY));
            at.primal += cost * double(step.loss);
            at.dual += gain(i);
            at.violation = std::max(at.violation, double(step.violation));
        }
        return at;
    }

    // What the last full loop saw: losses as they were when each example was visited.
    Objectives estimate() const { return estimate_; }
    int64_t visits() const { return visits_; }
    int64_t full_loops() const { return full_loops_; }
    int64_t shrunk_loops() const { return shrunk_loops_; }
    int64_t steps() const { return steps_; }
    double epsilon() const { return epsilon_; }
    const AlignedArray<T>& weights() const { return W_; }
    int64_t lanes() const { return lanes_; }
    const Matrix<T>& matrix() const { return X_; }
    const SdmOptions& options() const { return options_; }
    const Coefficients<T>& coefficients() const { return coefficients_; }

    // Starts from given coefficients, scaled by `factor`; those that this problem does not allow are left out.
    void seed(int64_t i, const int32_t* classes, const double* values, int64_t count, double factor) {
        auto* entry = coefficients_.resize(i, count);
        for (int64_t e = 0; e < count; ++e) entry[e] = {T(values[e] * factor), classes[e]};
    }
    void rebuild_weights() {
        std::vector<double> W(std::size_t(W_.size()), 0.0);
        for (int64_t i = 0; i < X_.rows; ++i) {
            if (!coefficients_.count(i)) continue;
            X_.each(i, [&](int64_t feature, T value) {
                double* w = W.data() + feature * lanes_;
                for (auto e = coefficients_.begin(i); e != coefficients_.end(i); ++e)
                    w[e->label] += double(e->value) * double(value);
            });
        }
        std::copy(W.begin(), W.end(), W_.data());
    }

  private:
    bool acts(int64_t i) const { return norm_[std::size_t(i)] > 0 && cost_[std::size_t(i)] > 0; }
    bool shrunk() const { return order_is_shrunk_; }

    // Scores example i into scores_, its coefficients into a_, the QP's answer into change_.
    RowStep<T> look(int64_t i, T skip) {
        std::fill(a_.data(), a_.data() + lanes_, T(0));
        for (auto e = coefficients_.begin(i); e != coefficients_.end(i); ++e) a_.data()[e->label] = e->value;
        X_.scores(i, W_.data(), lanes_, scores_.data());
        const RowProblem<T> row{scores_.data(), a_.data(), options_.classes, lanes_, labels_[i],
                                norm_[std::size_t(i)], T(cost_[std::size_t(i)]), skip};
        return units<T>().solve_row[int(options_.formulation)](row, work_.data(), change_.data());
    }

    void visit(int64_t i) {
        ++visits_;
        const RowStep<T> step = look(i, T(0.1 * epsilon_));
        loop_violation_ = std::max(loop_violation_, double(step.violation));
        loop_loss_ += cost_[std::size_t(i)] * double(step.loss);
        if (step.moved) {
            ++steps_;
            X_.add_to(i, change_.data(), lanes_, W_.data());
            keep(i);
        }
        if (!shrunk() && options_.shrinking && is_free(i)) free_.push_back(int32_t(i));
    }

    void keep(int64_t i) {
        T* a = a_.data();
        const T* change = change_.data();
        int64_t count = 0;
        for (int64_t m = 0; m < options_.classes; ++m) {
            a[m] += change[m];
            count += a[m] != 0;
        }
        auto* entry = coefficients_.resize(i, count);
        for (int64_t m = 0; m < options_.classes; ++m)
            if (a[m] != 0) *entry++ = {a[m], int32_t(m)};
    }

    // Whether some coefficient of example i lies strictly inside its bounds.
    bool is_free(int64_t i) const {
        const T C = T(cost_[std::size_t(i)]);
        for (auto e = coefficients_.begin(i); e != coefficients_.end(i); ++e)
            if (std::abs(e->value) != C && (e->label != labels_[i] || options_.formulation != Formulation::weston_watkins))
                return true;
        return false;
    }

    void end_loop() {
        const bool optimal = loop_violation_ < epsilon_;
        if (!shrunk()) {
            ++full_loops_;
            estimate_.violation = loop_violation_;
            const double half = 0.5 * squared_norm();
            estimate_.primal = half + loop_loss_;
            estimate_.dual = -half;
            for (int64_t i = 0; i < X_.rows; ++i) {
                if (acts(i)) {
                    estimate_.dual += gain(i);
                } else {
                    const double constant = cost_[std::size_t(i)] * constant_loss();
                    estimate_.primal += constant;
                    estimate_.dual += constant;
                }
            }
            if (optimal && epsilon_ <= options_.epsilon) {
                converged_ = true;
                return;
            }
            if (optimal) epsilon_ = std::max(options_.epsilon, epsilon_ / 10);
            shrunk_effort_ = 0;
            if (options_.shrinking && !free_.empty()) {
                order_.swap(free_);
                order_is_shrunk_ = true;
            }
            free_.clear();
        } else {
            ++shrunk_loops_;
            shrunk_effort_ += int64_t(order_.size());
            if (optimal || shrunk_effort_ > 5 * int64_t(everyone_.size())) {
                order_ = everyone_;
                order_is_shrunk_ = false;
            }
        }
        random_.shuffle(order_);
        position_ = 0;
        loop_violation_ = 0;
        loop_loss_ = 0;
    }

    double gain(int64_t i) const {
        double all = 0;
        for (auto e = coefficients_.begin(i); e != coefficients_.end(i); ++e) {
            if (options_.formulation == Formulation::one_vs_rest) all += std::abs(double(e->value));
            else if (e->label != labels_[i]) all -= double(e->value);
        }
        return all;
    }

    // The loss of an example that cannot act because x_i = 0: all its scores are 0.
    double constant_loss() const {
        switch (options_.formulation) {
            case Formulation::crammer_singer: return 1;
            case Formulation::weston_watkins: return double(options_.classes - 1);
            default: return double(options_.classes);
        }
    }

    double squared_norm() const {
        double norm = 0;
        const T* W = W_.data();
        for (int64_t j = 0; j < W_.size(); ++j) norm += double(W[j]) * double(W[j]);
        return norm;
    }

    Matrix<T> X_;
    const int32_t* labels_;
    SdmOptions options_;
    int64_t lanes_;
    Random random_;
    std::vector<double> cost_;
    std::vector<T> norm_;
    Coefficients<T> coefficients_;
    AlignedArray<T> W_, scores_, a_, change_, work_;
    std::vector<int32_t> everyone_, order_, free_;
    std::size_t position_ = 0;
    bool order_is_shrunk_ = false, converged_ = false;
    double epsilon_ = 1, loop_violation_ = 0, loop_loss_ = 0;
    int64_t shrunk_effort_ = 0, visits_ = 0, steps_ = 0, full_loops_ = 0, shrunk_loops_ = 0;
    Objectives estimate_;
};

}  // namespace larank
