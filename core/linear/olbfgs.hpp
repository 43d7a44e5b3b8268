// Online limited-memory BFGS: B is a low-rank estimate of the inverse Hessian, [thesis] section 3.2.1.
//
// Step      w' = w - rate B g_t(w),   g_t(w) = lambda w + l'(w' x_t, y_t) x_t,   rate = 1 / (t0 (1 + t / 10^4))
// Pairs     s = w' - w and y = g_t(w') - g_t(w), both gradients of the same example; the last ten are kept
// B g by the two loops of L-BFGS over the pairs. They start from the mean of s'y / y'y over the pairs, times the
// identity; before there is a pair, from 1 / (lambda + |x|^2). All functions are one vector of parameters.
#pragma once

#include "linear/sgd.hpp"

namespace larank {

template <class T>
class OnlineLbfgsStep final : public SgdStep<T> {
    using SgdStep<T>::options_, SgdStep<T>::W_;

  public:
    explicit OnlineLbfgsStep(const SgdOptions& options)
        : SgdStep<T>(options),
          gradient_(W_),
          change_(W_),
          scores_(W_.lanes()),
          g_(W_.lanes()),
          pairs_(most_pairs, Pair{W_, W_}),
          products_(most_pairs, 0.0),
          scales_(most_pairs, 0.0),
          steps_{0, 0} {}

    void step(const Row<T>& x, const T* g, bool, const double*, const ExampleLoss<T>& loss) override {
        const T lambda = T(options_.lambda);
        gradient_.fill(0);
        gradient_.add(x, g);
        add(lambda, W_, gradient_);
        const double rate = 1 / (options_.t0 * (1 + steps_[0]++ / cooling));
        change_.fill(0);
        add(T(-rate), direction(std::max(loss.costs.own, loss.costs.rest) * squared_norm(x)), change_);
        add(T(1), change_, W_);

        W_.scores(x, scores_.data());
        loss.gradient(scores_.data(), g_.data());
        bool bends = false;  // the loss; the regularisation bends everywhere, which tells nothing of other examples
        for (int64_t m = 0; m < W_.functions(); ++m) {
            g_.data()[m] -= g[m];
            bends |= g_.data()[m] != 0;
        }
        if (!bends) return;
        const std::size_t at = std::size_t(steps_[1]) % most_pairs;  // that of the oldest pair
        y_.fill(0);
        y_.add(x, g_.data());
        add(lambda, change_, y_);
        const double sy = dot(change_, y_), yy = dot(y_, y_);
        if (!(sy > 0) || !(yy > 0)) return;
        std::swap(pairs_[at].s, change_);
        std::swap(pairs_[at].y, y_);
        products_[at] = sy;
        scales_[at] = sy / yy;
        ++steps_[1];
    }

    std::vector<std::pair<const char*, FunctionWeights<T>*>> tables() override {
        static constexpr const char* names[most_pairs][2] = {{"s0", "y0"}, {"s1", "y1"}, {"s2", "y2"}, {"s3", "y3"},
                                                             {"s4", "y4"}, {"s5", "y5"}, {"s6", "y6"}, {"s7", "y7"},
                                                             {"s8", "y8"}, {"s9", "y9"}};
        std::vector<std::pair<const char*, FunctionWeights<T>*>> found{{"weights", &W_}};
        for (std::size_t i = 0; i < most_pairs; ++i) {
            found.push_back({names[i][0], &pairs_[i].s});
            found.push_back({names[i][1], &pairs_[i].y});
        }
        return found;
    }
    std::vector<std::pair<const char*, std::vector<double>*>> numbers() override {
        return {{"products", &products_}, {"scales", &scales_}, {"steps", &steps_}};
    }
    void restored() override {
        for (const double count : steps_)
            if (!(count >= 0 && count < 9e15)) throw std::invalid_argument("the state must have counts of steps");
    }

  private:
    static constexpr std::size_t most_pairs = 10;  // the thesis's rank
    static constexpr double cooling = 1e4;         // visits after which steps have half their length

    struct Pair {
        FunctionWeights<T> s, y;
    };

    // gradient_ becomes B times itself.
    const FunctionWeights<T>& direction(double curvature) {
        const std::size_t made = std::size_t(steps_[1]), count = std::min(made, most_pairs);
        double alpha[most_pairs], scale = 0;
        for (std::size_t n = 0; n < count; ++n) {  // the latest first
            const std::size_t i = (made - 1 - n) % most_pairs;
            alpha[i] = dot(pairs_[i].s, gradient_) / products_[i];
            add(T(-alpha[i]), pairs_[i].y, gradient_);
            scale += scales_[i] / double(count);
        }
        const T start = T(count == 0 ? 1 / (options_.lambda + curvature) : scale);
        for (int64_t at = 0; at < gradient_.size(); ++at) gradient_.data()[at] *= start;
        for (std::size_t n = count; n-- > 0;) {
            const std::size_t i = (made - 1 - n) % most_pairs;
            add(T(alpha[i] - dot(pairs_[i].y, gradient_) / products_[i]), pairs_[i].s, gradient_);
        }
        return gradient_;
    }

    static double squared_norm(const Row<T>& x) {
        double total = double(x.intercept) * double(x.intercept);
        for (int64_t j = 0; j < x.count; ++j) total += double(x.values[j]) * double(x.values[j]);
        return total;
    }
    static Row<T> as_row(const FunctionWeights<T>& v) { return {v.data(), nullptr, nullptr, v.size(), T(0), 0}; }
    static double dot(const FunctionWeights<T>& a, const FunctionWeights<T>& b) {
        return double(units<T>().dot_one(as_row(a), b.data()));
    }
    static void add(T factor, const FunctionWeights<T>& a, FunctionWeights<T>& to) {
        units<T>().add_one(as_row(a), factor, to.data());
    }

    FunctionWeights<T> gradient_, change_, y_{W_};
    AlignedArray<T> scores_, g_;
    std::vector<Pair> pairs_;                // a ring
    std::vector<double> products_, scales_;  // s'y and s'y / y'y
    std::vector<double> steps_;              // made, and pairs found
};

}  // namespace larank
