// Averaged stochastic gradient descent: the model is a running mean of the weights, recent ones count more.
//
// Step      W -= rate D l'(x_t' W, y_t) x_t,   rate = (1 + t / t0)^(-3/4) / (lambda t0)                  [asgd]
//           and every `skip` visits W <- W / (1 + skip rate lambda D), see [thesis] section 3.1.2
// Average   A <- (1 - m) A + m W,   m = 4 / (t + 5)                                                     [averaging]
// D is a diagonal that evens out the scales of the features, given at the start. The average is kept as A = p U + q W
// with numbers p and q, so that a visit touches no more than the features of its example: where W changes by d, U
// changes by -(q / p) d, and A does not.
#pragma once

#include "linear/sgd.hpp"

namespace larank {

template <class T>
class AveragedStep final : public SgdStep<T> {
    using SgdStep<T>::coefficients_, SgdStep<T>::options_, SgdStep<T>::rates_, SgdStep<T>::W_;

  public:
    explicit AveragedStep(const SgdOptions& options)
        : SgdStep<T>(options),
          U_(options.rows(), options.functions),
          scaling_(std::size_t(options.rows()), 1.0),
          p_(std::size_t(options.functions), 1.0),
          q_(std::size_t(options.functions), 0.0),
          rate_(q_),
          count_{double(options.skip)} {}

    void step(const Row<T>& x, const T* g, bool any, const double* clock, const ExampleLoss<T>&) override {
        const std::size_t functions = p_.size();
        const double since = std::fmod(clock[0], visits_per_rate);
        if (since == 0 || rate_[functions - 1] == 0)
            for (std::size_t m = 0; m < functions; ++m) rate_[m] = rate(std::max(0.0, clock[m] - since));
        if (any) {
            T *change = coefficients_.data(), *opposite = rates_.data();
            for (std::size_t m = 0; m < functions; ++m) {
                const double d = -rate_[m] * double(g[m]);
                change[m] = T(d);
                opposite[m] = T(-q_[m] / p_[m] * d);
            }
            const T* const D = diagonal();
            if (W_.lanes() == 1)
                units<T>().add_one_twice(x, D, change[0], opposite[0], W_.data(), U_.data());
            else
                units<T>().add_row_twice(x, D, change, opposite, W_.lanes(), W_.data(), U_.data());
        }
        if (--count_[0] <= 0) {
            shrink();
            count_[0] = double(options_.skip);
        }
        bool small = false;
        for (std::size_t m = 0; m < functions; ++m) {
            const double share = 4 / (clock[m] + 5);
            p_[m] *= 1 - share;
            q_[m] = (1 - share) * q_[m] + share;
            small |= p_[m] < least;
        }
        if (small) return_to_plain();
    }

    const FunctionWeights<T>& model() override {
        if (!model_) model_ = std::make_unique<FunctionWeights<T>>(U_.rows(), U_.functions());
        for (int64_t j = 0; j < U_.rows(); ++j)
            for (int64_t m = 0; m < U_.functions(); ++m) model_->at(j, m) = average(j, m);
        return *model_;
    }

    std::vector<std::pair<const char*, FunctionWeights<T>*>> tables() override {
        return_to_plain();
        return {{"weights", &W_}, {"average", &U_}};
    }
    std::vector<std::pair<const char*, std::vector<double>*>> numbers() override {
        return {{"count", &count_}, {"diagonal", &scaling_}};
    }
    void restored() override {
        D_.assign(scaling_.begin(), scaling_.end());
        if (std::all_of(D_.begin(), D_.end(), [](T each) { return each == 1; })) D_.clear();
    }

  private:
    static constexpr double visits_per_rate = 16;  // the rate changes slowly, and its power takes long
    static constexpr double least = 1e-6;          // of p, for the sake of rounding

    double rate(double t) const {
        const double t0 = options_.t0;
        return std::pow(1 + t / t0, -0.75) / (options_.lambda * t0);
    }
    T average(int64_t j, int64_t m) const {
        const std::size_t n = std::size_t(m);
        return T(p_[n] * double(U_.at(j, m)) + q_[n] * double(W_.at(j, m)));
    }

    void shrink() {
        T *rates = coefficients_.data(), *ratios = rates_.data();
        for (std::size_t m = 0; m < p_.size(); ++m) {
            rates[m] = T(double(options_.skip) * rate_[m] * options_.lambda);
            ratios[m] = T(q_[m] / p_[m]);
        }
        units<T>().shrink_twice(rates, ratios, diagonal(), W_.rows(), W_.lanes(), W_.data(), U_.data());
    }
    const T* diagonal() const { return D_.empty() ? nullptr : D_.data(); }

    // A = U.
    void return_to_plain() {
        for (int64_t j = 0; j < U_.rows(); ++j)
            for (int64_t m = 0; m < U_.functions(); ++m) U_.at(j, m) = average(j, m);
        std::fill(p_.begin(), p_.end(), 1.0);
        std::fill(q_.begin(), q_.end(), 0.0);
    }

    FunctionWeights<T> U_;
    std::unique_ptr<FunctionWeights<T>> model_;           // once it is asked for
    std::vector<double> scaling_, p_, q_, rate_, count_;  // scaling: D, kept in full precision
    std::vector<T> D_;                                    // empty: the identity
};

}  // namespace larank
