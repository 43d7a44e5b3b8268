// Stochastic gradient descent for linear models: SGD, SVMSGD2 and SGD-QN, [thesis] algorithms 7 and 8.
//
// Primal   min_W  lambda/2 |W|^2 + 1/n sum_i c_i l(x_i' W, y_i)                                       [thesis] (3.1)
// Dual     max_a  1/n sum_i c_i gain(a_i) - lambda/2 |V(a)|^2,   V(a) = 1/(lambda n) sum_i c_i a_i x_i
// Any a in the domain of the gain bounds the primal from below. The certificate takes a_i = -l'(x_i' W, y_i), times the
// best factor for each function, or the mean of such a_i over visits. One class against the rest, an example has one
// cost in the loss of its own class and another in those of the others.
// A visit to example t subtracts its gradient: W -= B l'(x_t' W, y_t) x_t / (t + t0). The regularisation is an example
// of its own that comes every `skip` visits: W -= skip lambda B W / (t + t0). B is 1/lambda (SGD with skip 1, SVMSGD2)
// or a diagonal that the visit after it estimates from the secant equation (SGD-QN).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "data/matrix.hpp"
#include "linear/losses.hpp"
#include "linear/shrinking.hpp"
#include "linear/visits.hpp"
#include "memory/aligned.hpp"
#include "simd/units.hpp"
#include "training/objectives.hpp"
#include "training/random.hpp"

namespace larank {

struct SgdOptions {
    Loss loss = Loss::hinge;
    bool joint = false;     // one loss of all scores, not one for each function
    int64_t functions = 1;  // of the label 1 if it is one, else of every class
    int64_t features = 1;
    bool intercept = true;  // a feature that is 1, regularised like the others
    double lambda = 1e-4;
    double t0 = 1;
    int64_t skip = 16;
    uint64_t seed = 0;

    int64_t rows() const { return features + intercept; }
};

// The loss of one example as a function of its scores.
template <class T>
struct ExampleLoss {
    double (*function)(const T* scores, int64_t functions, int64_t label, const ExampleCosts& costs, T* g);
    int64_t functions;
    int64_t label;
    ExampleCosts costs;

    // The loss, and the derivatives by the scores, both times the costs of the example.
    double gradient(const T* scores, T* g) const { return function(scores, functions, label, costs, g); }
};

// Weights of one function or several, and the loops for either layout.
template <class T>
class FunctionWeights {
  public:
    FunctionWeights(int64_t rows, int64_t functions)
        : rows_(rows), functions_(functions), lanes_(functions == 1 ? 1 : padded<T>(functions)), W_(rows * lanes_) {}

    int64_t rows() const { return rows_; }
    int64_t functions() const { return functions_; }
    int64_t lanes() const { return lanes_; }
    T* data() { return W_.data(); }
    const T* data() const { return W_.data(); }
    int64_t size() const { return W_.size(); }
    T& at(int64_t row, int64_t m) { return W_.data()[row * lanes_ + m]; }
    T at(int64_t row, int64_t m) const { return W_.data()[row * lanes_ + m]; }
    double squared_norm() const {
        double totals[8] = {};  // lanes come in eights, or are summed up one by one
        int64_t at = 0;
        for (; at + 8 <= W_.size(); at += 8)
            for (int64_t c = 0; c < 8; ++c) totals[c] += double(W_.data()[at + c]) * double(W_.data()[at + c]);
        for (; at < W_.size(); ++at) totals[0] += double(W_.data()[at]) * double(W_.data()[at]);
        return std::accumulate(totals, totals + 8, 0.0);
    }
    void fill(T value) { std::fill(W_.data(), W_.data() + W_.size(), value); }

    void scores(const Row<T>& x, T* out) const {
        if (lanes_ == 1)
            out[0] = units<T>().dot_one(x, W_.data());
        else
            units<T>().scores(x, W_.data(), lanes_, is_large(), out);
    }
    void scores_in_double(const Row<T>& x, double* out) const {
        if (lanes_ == 1)
            out[0] = units<T>().dot_one_in_double(x, W_.data());
        else
            units<T>().scores_in_double(x, W_.data(), lanes_, is_large(), out);
    }
    void add(const Row<T>& x, const T* coefficients) {
        if (lanes_ == 1)
            units<T>().add_one(x, coefficients[0], W_.data());
        else
            units<T>().add_row(x, coefficients, lanes_, W_.data());
    }
    void add_scaled(const Row<T>& x, const T* coefficients, const FunctionWeights& B) {
        if (lanes_ == 1)
            units<T>().add_one_scaled(x, coefficients[0], B.data(), W_.data());
        else
            units<T>().add_row_scaled(x, coefficients, lanes_, B.data(), W_.data());
    }

  private:
    bool is_large() const { return W_.size() * int64_t{sizeof(T)} > 256 * 1024; }

    int64_t rows_, functions_, lanes_;
    AlignedArray<T> W_;
};

// What an algorithm does with the gradient of an example. `clock` has, for each function, the examples since it came.
template <class T>
class SgdStep {
  public:
    explicit SgdStep(const SgdOptions& options)
        : options_(options), W_(options.rows(), options.functions), rates_(W_.lanes()), coefficients_(W_.lanes()) {}
    virtual ~SgdStep() = default;

    void scores(const Row<T>& x, T* out) const { W_.scores(x, out); }
    // g holds the derivatives by the scores; `any` says whether one is not zero.
    virtual void step(const Row<T>& x, const T* g, bool any, const double* clock, const ExampleLoss<T>& loss) = 0;
    // The weights of the model, which the next steps may change.
    virtual const FunctionWeights<T>& model() { return W_; }
    int64_t lanes() const { return W_.lanes(); }
    // Named tables [row][function] and numbers, from which another object of the same options can go on.
    virtual std::vector<std::pair<const char*, FunctionWeights<T>*>> tables() { return {{"weights", &W_}}; }
    virtual std::vector<std::pair<const char*, std::vector<double>*>> numbers() { return {}; }
    // After `tables` and `numbers` were set.
    virtual void restored() {}

  protected:
    SgdOptions options_;
    FunctionWeights<T> W_;
    AlignedArray<T> rates_, coefficients_;
};

// SGD and SVMSGD2: B = 1/lambda.
template <class T>
class FirstOrderStep : public SgdStep<T> {
    using SgdStep<T>::coefficients_, SgdStep<T>::options_, SgdStep<T>::rates_, SgdStep<T>::W_;

  public:
    explicit FirstOrderStep(const SgdOptions& options) : SgdStep<T>(options), count_{double(options.skip)} {}

    void step(const Row<T>& x, const T* g, bool any, const double* clock, const ExampleLoss<T>&) override {
        if (any) {
            for (int64_t m = 0; m < W_.functions(); ++m)
                coefficients_.data()[m] = -T(1 / (options_.lambda * (clock[m] + options_.t0))) * g[m];
            W_.add(x, coefficients_.data());  // [thesis] algorithm 7, line 3
        }
        if (--count_[0] > 0) return;
        for (int64_t m = 0; m < W_.functions(); ++m)
            rates_.data()[m] = T(double(options_.skip) / (clock[m] + options_.t0));
        units<T>().shrink(rates_.data(), W_.rows(), W_.lanes(), W_.data());  // line 6
        count_[0] = double(options_.skip);
    }
    std::vector<std::pair<const char*, std::vector<double>*>> numbers() override { return {{"count", &count_}}; }

  private:
    std::vector<double> count_;
};

// SGD-QN: B is a diagonal, [thesis] algorithm 8.
template <class T>
class QuasiNewtonStep : public SgdStep<T> {
    using SgdStep<T>::coefficients_, SgdStep<T>::options_, SgdStep<T>::rates_, SgdStep<T>::W_;

  public:
    explicit QuasiNewtonStep(const SgdOptions& options)
        : SgdStep<T>(options),
          B_(options.rows(), options.functions),
          scores_(B_.lanes()),
          g_(B_.lanes()),
          curvatures_(B_.lanes()),
          schedule_{double(options.skip), 0.0, options.t0 / double(options.skip)} {
        B_.fill(T(1 / options.lambda));
    }

    void step(const Row<T>& x, const T* g, bool any, const double* clock, const ExampleLoss<T>& loss) override {
        const double lambda = options_.lambda, t0 = options_.t0, skip = double(options_.skip);
        if (any) {
            for (int64_t m = 0; m < W_.functions(); ++m) coefficients_.data()[m] = -T(1 / (clock[m] + t0)) * g[m];
            W_.add_scaled(x, coefficients_.data(), B_);  // line 4
        }
        if (update_B() != 0) {
            estimate(x, g, any, clock, loss);  // lines 6 to 8
            ++r();
            update_B() = 0;
        }
        if (--count() > 0) return;
        for (int64_t m = 0; m < W_.functions(); ++m) rates_.data()[m] = T(skip * lambda / (clock[m] + t0));
        units<T>().shrink_scaled(rates_.data(), W_.rows(), W_.lanes(), B_.data(), W_.data());  // line 13
        count() = skip;
        update_B() = 1;
    }

    std::vector<std::pair<const char*, FunctionWeights<T>*>> tables() override {
        return {{"weights", &W_}, {"scaling", &B_}};
    }
    std::vector<std::pair<const char*, std::vector<double>*>> numbers() override { return {{"schedule", &schedule_}}; }

  private:
    double& count() { return schedule_[0]; }
    double& update_B() { return schedule_[1]; }
    double& r() { return schedule_[2]; }

    // The secant of coefficient j of function m is [w' - w]_jm / (lambda [w' - w]_jm + (g'_m - g_m) x_j) with
    // [w' - w]_jm = -B_jm g_m x_j / (t + t0): that is 1 / (lambda + curvature_m / B_jm), whatever x_j is, and by
    // continuity 1 / lambda where x_j or g_m is 0. A joint loss may bend downwards along one function; that counts as
    // 0.
    void estimate(const Row<T>& x, const T* g, bool any, const double* clock, const ExampleLoss<T>& loss) {
        if (any) {
            W_.scores(x, scores_.data());
            loss.gradient(scores_.data(), g_.data());
        }
        for (int64_t m = 0; m < W_.functions(); ++m) {
            const double before = double(g[m]), after = double(g_.data()[m]);
            const double curvature = before != 0 ? (1 - after / before) * (clock[m] + options_.t0) : 0.0;
            curvatures_.data()[m] = T(std::max(0.0, curvature));
        }
        const double lambda = options_.lambda, share = std::min(1.0, 2 / r());  // [thesis] (3.7)
        units<T>().rescale(x, B_.rows(), curvatures_.data(), {T(share), T(lambda), T(1e-2 / lambda)}, B_.lanes(),
                           B_.data());
    }

    FunctionWeights<T> B_;
    AlignedArray<T> scores_, g_, curvatures_;
    std::vector<double> schedule_;  // count, updateB, r
};

struct SgdCounters {
    int64_t visits = 0, steps = 0, errors = 0;
    double loss = 0;  // of the examples, as they were when visited
};

template <class T>
class Sgd {
  public:
    Sgd(const SgdOptions& options, std::unique_ptr<SgdStep<T>> step)
        : options_(options),
          step_(std::move(step)),
          random_(options.seed),
          born_(std::size_t(options.functions), 0.0),
          clock_(std::size_t(options.functions), 0.0),
          scores_(step_->lanes()),
          g_(step_->lanes()) {
        with_loss([&](auto loss) {
            gradient_ = decltype(loss)::template gradient<T, T>;
            exact_gradient_ = decltype(loss)::template gradient<double, double>;
            exact_gains_ = decltype(loss)::template gains<double>;
            gains_ = decltype(loss)::template gains<T>;
        });
    }

    const SgdOptions& options() const { return options_; }
    SgdStep<T>& step() { return *step_; }
    const SgdCounters& counters() const { return counters_; }
    SgdCounters& counters() { return counters_; }
    double& time() { return t_; }
    std::vector<double>& born() { return born_; }
    uint64_t random_state() const { return random_.state(); }
    void set_random_state(uint64_t state) { random_ = Random(state); }

    // The examples to work on; labels and costs must outlive them. `rest_costs` act one-versus-rest alone.
    template <class Value>
    void feed(Matrix<Value> X, const int32_t* labels, const double* costs, const double* rest_costs, bool shuffled) {
        X.intercept = options_.intercept ? Value(1) : Value(0);
        order_.begin(X.rows, X.row_bytes(), shuffled ? &random_ : nullptr);
        X_.open(X, g_.size() > 1);
        labels_ = labels;
        costs_ = costs;
        rest_costs_ = options_.joint || options_.functions == 1 ? costs : rest_costs;
    }

    // Visits examples until about `work` multiply-adds are done; True once all were visited.
    bool run(int64_t work) {
        while (!order_.is_over() && work > 0) {
            order_.fetch_ahead([&](int64_t ahead) {
                X_.fetch_for_later(ahead);
                prefetch_for_later(labels_ + ahead);
                prefetch_for_later(costs_ + ahead);
                prefetch_for_later(rest_costs_ + ahead);
            });
            const int64_t i = order_.next();
            work -= (X_.count(i) + 8) * g_.size();
            visit(i, order_.coming());
        }
        return order_.is_over();
    }

    // ---- The bound of the derivatives at which examples were visited, each as often as the others ----

    void begin_bound() {
        window_sums_.assign(std::size_t(options_.functions), {});
        window_weights_.assign(std::size_t(options_.rows() * options_.functions), 0.0);
        window_g_.assign(std::size_t(options_.functions), 0.0);
        window_visits_ = 0;
    }
    double bound() const {
        return window_visits_ == 0 ? 0.0 : bound_of(window_sums_, window_weights_, double(window_visits_));
    }

    // ---- The certificate: sums over the examples fed, some at a time, in double precision ----

    // Without the dual, the bound is that of a = 0.
    void begin_evaluation(bool with_dual) {
        sums_.assign(std::size_t(options_.functions), {});
        examples_ = 0;
        loss_at_zero_ = 0;
        shrunk_losses_.assign(most_shrinkings, 0.0);
        dual_weights_.assign(with_dual ? std::size_t(options_.rows() * options_.functions) : 0, 0.0);
        model_ = &step_->model();
    }

    void evaluate(int64_t first, int64_t last) {
        check_rows(first, last);
        std::vector<double> g(std::size_t(options_.functions)), nothing(g.size(), 0.0);
        AlignedArray<double> scores(scores_.size());
        const ExampleCosts own{1, 0}, all{1, 1};
        const double of_own = exact_gradient_(nothing.data(), options_.functions, 0, own, g.data());
        const double of_rest = exact_gradient_(nothing.data(), options_.functions, 0, all, g.data()) - of_own;
        for (int64_t i = first; i < last; ++i) {
            const Row<T> x = X_(i);
            model_->scores_in_double(x, scores.data());
            loss_at_zero_ += costs(i).own * of_own + costs(i).rest * of_rest;
            if (dual_weights_.empty()) {
                sums_[0].loss += exact_gradient_(scores.data(), options_.functions, labels_[i], costs(i), g.data());
                continue;
            }
            for (int64_t m = 0; m < options_.functions; ++m) {
                const LossAndGain found = exact_gains_(scores.data(), options_.functions, labels_[i], m);
                LossAndGain& total = sums_[std::size_t(m)];
                const double cost = costs(i).of(m, labels_[i]);
                total.loss += cost * found.loss;
                total.linear += cost * found.linear;
                total.quadratic += cost * found.quadratic;
            }
            exact_gradient_(scores.data(), options_.functions, labels_[i], costs(i), g.data());
            for (double& each : g) each = -each;
            units<T>().add_row_in_double(x, g.data(), options_.functions, dual_weights_.data());
        }
        examples_ += last - first;
    }

    // The mean loss of w = 0.
    double loss_at_zero() const { return loss_at_zero_ / double(examples_); }

    // Adds the losses of the model times the first powers of `shrinking`.
    void evaluate_shrunk(int64_t first, int64_t last) {
        check_rows(first, last);
        std::vector<double> g(std::size_t(options_.functions));
        AlignedArray<double> scores(scores_.size());
        for (int64_t i = first; i < last; ++i) {
            model_->scores_in_double(X_(i), scores.data());
            for (double& losses : shrunk_losses_) {
                for (int64_t m = 0; m < options_.functions; ++m) scores.data()[m] *= shrinking;
                losses += exact_gradient_(scores.data(), options_.functions, labels_[i], costs(i), g.data());
            }
        }
    }
    std::vector<double> shrunk_losses() const {
        std::vector<double> means = shrunk_losses_;
        for (double& each : means) each /= double(examples_);
        return means;
    }

    Objectives objectives() const {
        if (!model_) throw std::logic_error("nothing was evaluated");
        const double n = double(examples_), lambda = options_.lambda;
        Objectives at;
        at.primal = lambda / 2 * model_->squared_norm();
        for (const LossAndGain& each : sums_) at.primal += each.loss / n;
        if (dual_weights_.empty()) return at;
        for (int64_t j = 0; j < options_.rows(); ++j)
            for (int64_t m = 0; m < options_.functions; ++m) {
                const double w = double(model_->at(j, m)), v = dual_weights_[std::size_t(j * options_.functions + m)];
                at.violation = std::max(at.violation, std::abs(lambda * w - v / n));  // of the gradient
            }
        at.dual = bound_of(sums_, dual_weights_, n);
        return at;
    }

  private:
    template <class Use>
    void with_loss(Use use) {
        switch (options_.loss) {
            case Loss::hinge: return with_form<Hinge>(use);
            case Loss::squared_hinge: return with_form<SquaredHinge>(use);
            case Loss::smoothed_hinge: return with_form<SmoothedHinge>(use);
            case Loss::modified_huber: return with_form<ModifiedHuber>(use);
            case Loss::log_loss: return options_.joint ? use(MultinomialLoss{}) : use(OneVsRestLoss<LogLoss>{});
        }
    }
    template <class Margin, class Use>
    void with_form(Use use) {
        if (options_.joint)
            use(BestOtherLoss<Margin>{});
        else
            use(OneVsRestLoss<Margin>{});
    }

    void check_rows(int64_t first, int64_t last) const {
        if (!model_ || first < 0 || last > X_.rows()) throw std::logic_error("no such rows to evaluate");
    }

    ExampleCosts costs(int64_t i) const { return {costs_[i], rest_costs_[i]}; }

    void visit(int64_t i, int64_t coming) {
        Row<T> x = X_(i);
        if (coming >= 0) x.dense_ahead = X_.dense_row(coming);
        const int64_t functions = options_.functions;
        const ExampleLoss<T> loss{gradient_, functions, labels_[i], costs(i)};
        step_->scores(x, scores_.data());
        counters_.errors += !is_right(labels_[i]);
        counters_.loss += loss.gradient(scores_.data(), g_.data());
        bool any = false;
        for (int64_t m = 0; m < functions; ++m) {
            any |= g_.data()[m] != 0;
            clock_[std::size_t(m)] = t_ - born_[std::size_t(m)];
        }
        if (!window_weights_.empty()) note_for_bound(x, i, any);
        step_->step(x, g_.data(), any, clock_.data(), loss);
        ++counters_.visits;
        counters_.steps += any;
        ++t_;
    }

    void note_for_bound(const Row<T>& x, int64_t i, bool any) {
        for (int64_t m = 0; m < options_.functions; ++m) {
            const LossAndGain found = gains_(scores_.data(), options_.functions, labels_[i], m);
            const double cost = costs(i).of(m, labels_[i]);
            window_sums_[std::size_t(m)].linear += cost * found.linear;
            window_sums_[std::size_t(m)].quadratic += cost * found.quadratic;
        }
        ++window_visits_;
        if (!any) return;
        for (int64_t m = 0; m < options_.functions; ++m) window_g_[std::size_t(m)] = -double(g_.data()[m]);
        units<T>().add_row_in_double(x, window_g_.data(), options_.functions, window_weights_.data());
    }

    bool is_right(int64_t label) const {
        const T* s = scores_.data();
        if (options_.functions == 1) return (s[0] > 0) == (label == 1);
        return std::max_element(s, s + options_.functions) - s == label;
    }

    // The dual at the derivatives that were summed up, times the best factor for each function.
    double bound_of(const std::vector<LossAndGain>& sums, const std::vector<double>& V, double n) const {
        std::vector<double> squared(std::size_t(options_.functions), 0.0);
        for (std::size_t at = 0; at < V.size(); ++at) squared[at % squared.size()] += V[at] * V[at];
        if (options_.joint) squared.assign(1, std::accumulate(squared.begin(), squared.end(), 0.0));
        double dual = 0;
        for (std::size_t m = 0; m < squared.size(); ++m)
            dual += best_bound(sums[m], squared[m] / (options_.lambda * n), n);
        return dual;
    }

    // max_f (f linear - f^2 (quadratic + norm / 2)) / n for the factors that are allowed.
    double best_bound(const LossAndGain& sums, double norm, double n) const {
        const double bend = sums.quadratic + norm / 2;
        double factor = bend > 0 ? sums.linear / (2 * bend) : 1.0;
        if (options_.loss != Loss::squared_hinge) factor = std::min(1.0, factor);
        return factor * (sums.linear - factor * bend) / n;
    }

    SgdOptions options_;
    std::unique_ptr<SgdStep<T>> step_;
    Random random_;
    double t_ = 0;
    std::vector<double> born_, clock_;  // when each function came; examples since
    SgdCounters counters_;

    double (*gradient_)(const T*, int64_t, int64_t, const ExampleCosts&, T*) = nullptr;
    double (*exact_gradient_)(const double*, int64_t, int64_t, const ExampleCosts&, double*) = nullptr;
    LossAndGain (*gains_)(const T*, int64_t, int64_t, int64_t) = nullptr;
    LossAndGain (*exact_gains_)(const double*, int64_t, int64_t, int64_t) = nullptr;

    RowReader<T> X_;
    VisitOrder order_;
    const int32_t* labels_ = nullptr;
    const double *costs_ = nullptr, *rest_costs_ = nullptr;
    AlignedArray<T> scores_, g_;

    const FunctionWeights<T>* model_ = nullptr;
    std::vector<LossAndGain> sums_;
    double loss_at_zero_ = 0;
    std::vector<double> shrunk_losses_;
    std::vector<LossAndGain> window_sums_;
    std::vector<double> window_weights_, window_g_;
    int64_t window_visits_ = 0;
    std::vector<double> dual_weights_;  // sum_i c_i a_i x_i, [row][function]
    int64_t examples_ = 0;
};

}  // namespace larank
