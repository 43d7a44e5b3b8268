// Chains: sequences of tokens to label, [thesis] section 5.3.
//
//   Phi_g(x^t, y^{t-k..t-1}, y^t)   the features of token t among those of y^t, and for s = 1..k an indicator of the
//                                   pair (y^{t-s}, y^t): the kernel K_g of section 5.3.2, in explicit form
//   Phi_e(x, y) = sum_t Phi_g       so <w, Phi_e> = sum_t (W[x^t][y^t] + sum_s T_s[y^{t-s}][y^t])
//
// A *stretch* is what one dual problem is about: some consecutive tokens whose labels are asked for, and the labels
// before them. For exact inference it is a whole sequence, problem (5.11). For greedy inference it is one token after
// its k true labels, problem (5.12). So the two differ in how a sequence is cut, and in nothing else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "chain/grammar.hpp"
#include "chain/viterbi.hpp"
#include "memory/aligned.hpp"
#include "simd/units.hpp"

namespace larank {

// What the keys of SparseSum have room for.
constexpr int64_t most_lags = 255, most_labels = (int64_t{1} << 24) - 1;

// Sequences one after the other, as CSR rows of tokens. Without `values` all features are 1.
template <class T>
struct TokenRows {
    const int64_t* indptr;
    const int32_t* indices;
    const T* values;
    const T* ones;  // as many as the longest token has features

    Row<T> row(int64_t t) const {
        const int64_t begin = indptr[t];
        return {values ? values + begin : ones, indices + begin, nullptr, indptr[t + 1] - begin, T(0), 0};
    }

    double squared_norm(int64_t t) const {
        if (!values) return double(indptr[t + 1] - indptr[t]);
        double sum = 0;
        for (int64_t j = indptr[t]; j < indptr[t + 1]; ++j) sum += double(values[j]) * double(values[j]);
        return sum;
    }
};

// Tokens [first, first + length) and the labels around them.
template <class T>
struct Stretch {
    TokenRows<T> rows;
    int64_t first;
    int64_t length;
    const int32_t* truth;
    const int32_t* history;  // history[s - 1]: the label s before the first, or absent
    int32_t previous;        // the true label before the first, for the grammar
    int64_t remaining;       // labels after the last, for the grammar

    // The label at position t of an output, or before it.
    int32_t label(const int32_t* output, int64_t t) const { return t >= 0 ? output[t] : history[-t - 1]; }
};

// A sum of features of an output in explicit form, in which the same feature may come several times.
class SparseSum {
  public:
    SparseSum() : keys_(smallest), values_(smallest), is_used_(smallest, 0) {}

    void add(uint64_t key, double value) {
        if (2 * (used_.size() + 1) > keys_.size()) grow();
        const std::size_t at = find(key);
        if (!is_used_[at]) is_used_[at] = 1, keys_[at] = key, values_[at] = 0, used_.push_back(at);
        values_[at] += value;
    }

    // The squared norm of the sum, which is empty afterwards.
    double take_squared_norm() {
        double norm = 0;
        for (const std::size_t at : used_) norm += values_[at] * values_[at], is_used_[at] = 0;
        used_.clear();
        return norm;
    }

  private:
    static constexpr std::size_t smallest = 256;

    std::size_t find(uint64_t key) const {
        std::size_t at = std::size_t((key * 0x9e3779b97f4a7c15u) >> 20) & (keys_.size() - 1);
        while (is_used_[at] && keys_[at] != key) at = (at + 1) & (keys_.size() - 1);
        return at;
    }

    void grow() {
        std::vector<std::pair<uint64_t, double>> kept;
        for (const std::size_t at : used_) kept.emplace_back(keys_[at], values_[at]);
        const std::size_t size = 2 * keys_.size();
        keys_.resize(size), values_.resize(size), is_used_.assign(size, 0), used_.clear();
        for (const auto& [key, value] : kept) add(key, value);
    }

    std::vector<uint64_t> keys_;
    std::vector<double> values_;
    std::vector<char> is_used_;
    std::vector<std::size_t> used_;
};

// The weights of a chain model, which grow with its features and labels.
template <class T>
class ChainWeights {
  public:
    explicit ChainWeights(int64_t order) : order_(order), transitions_(std::size_t(order * lanes_), T(0)) {}

    int64_t order() const { return order_; }
    int64_t labels() const { return labels_; }
    int64_t lanes() const { return lanes_; }
    int64_t features() const { return features_; }
    T* tokens() { return tokens_.data(); }
    const T* tokens() const { return tokens_.data(); }
    T* lag(int64_t s) { return transitions_.data() + (s - 1) * (labels_ + 1) * lanes_; }
    Transitions<T> transitions() const { return {transitions_.data(), order_, labels_, lanes_}; }
    // What weights of so many features and labels take.
    static int64_t bytes_of(int64_t order, int64_t features, int64_t labels) {
        return (features + order * (labels + 1)) * padded<T>(labels) * int64_t(sizeof(T));
    }
    int64_t bytes() const { return int64_t((tokens_.capacity() + transitions_.capacity()) * sizeof(T)); }

    void grow(int64_t features, int64_t labels) {
        if (labels > labels_) grow_labels(labels);
        if (features <= features_) return;
        const std::size_t size = std::size_t(features * lanes_);
        if (size > tokens_.capacity()) tokens_.reserve(size + size / 2);
        tokens_.resize(size, T(0));
        features_ = features;
    }

    double squared_norm() const {
        double sum = 0;
        for (const T w : tokens_) sum += double(w) * double(w);
        for (const T w : transitions_) sum += double(w) * double(w);
        return sum;
    }

    void scale(T factor) {
        for (T& w : tokens_) w *= factor;
        for (T& w : transitions_) w *= factor;
    }

    // T_s[previous][label].
    T& transition(int64_t s, int32_t previous, int32_t label) { return lag(s)[(previous + 1) * lanes_ + label]; }
    T transition(int64_t s, int32_t previous, int32_t label) const { return transitions().row(s, previous)[label]; }

  private:
    void grow_labels(int64_t labels) {
        const int64_t lanes = padded<T>(labels);
        std::vector<T> transitions(std::size_t(order_ * (labels + 1) * lanes), T(0));
        if (lanes != lanes_) {
            LargeVector<T> wider(std::size_t(features_ * lanes), T(0));
            for (int64_t f = 0; f < features_; ++f)
                std::copy_n(tokens_.data() + f * lanes_, labels_, wider.data() + f * lanes);
            tokens_.swap(wider);
        }
        for (int64_t row = 0; row < order_ * (labels_ + 1); ++row) {
            const int64_t s = row / (labels_ + 1), p = row % (labels_ + 1);
            std::copy_n(transitions_.data() + row * lanes_, labels_,
                        transitions.data() + (s * (labels + 1) + p) * lanes);
        }
        transitions_.swap(transitions);
        labels_ = labels, lanes_ = lanes;
    }

    int64_t order_;
    int64_t labels_ = 0, lanes_ = lane_count<T>, features_ = 0;
    LargeVector<T> tokens_;       // [feature][lane]
    std::vector<T> transitions_;  // [lag][absent or label][lane]
};

// What a label costs in place of another, padded like the weights; 0 or 1 where nothing else is said.
template <class T>
class LabelLoss {
  public:
    void grow(int64_t labels) {
        if (is_given_ || labels == labels_) return;
        fill(labels, [](int64_t a, int64_t b) { return T(a != b); });
    }

    void give(const double* delta, int64_t labels) {
        is_given_ = true;
        fill(labels, [=](int64_t a, int64_t b) { return T(delta[a * labels + b]); });
    }

    int64_t labels() const { return labels_; }
    const T* row(int64_t truth) const { return delta_.data() + truth * lanes_; }

    // Delta(y, y_i) of an output: the sum over its labels.
    double operator()(const int32_t* truth, const int32_t* output, int64_t length) const {
        double sum = 0;
        for (int64_t t = 0; t < length; ++t) sum += double(row(truth[t])[output[t]]);
        return sum;
    }

  private:
    template <class Value>
    void fill(int64_t labels, Value value) {
        labels_ = labels, lanes_ = padded<T>(labels);
        delta_.assign(std::size_t(labels * lanes_), T(0));
        for (int64_t a = 0; a < labels; ++a)
            for (int64_t b = 0; b < labels; ++b) delta_[std::size_t(a * lanes_ + b)] = value(a, b);
    }

    bool is_given_ = false;
    int64_t labels_ = 0, lanes_ = 0;
    std::vector<T> delta_;
};

// A chain model: its weights, what labels cost, and what they may follow.
template <class T>
class ChainModel {
  public:
    explicit ChainModel(int64_t order) : weights(order) {}

    void grow(int64_t features, int64_t labels) {
        weights.grow(features, labels);
        loss.grow(weights.labels());
    }

    const Grammar<T>* grammar() const { return grammar_ ? &*grammar_ : nullptr; }
    void set_grammar(Grammar<T> grammar) {
        grammar_ = std::move(grammar);
        prepare(longest_);
    }
    bool is_prepared(int64_t longest) const { return !grammar_ || grammar_->is_prepared(longest); }

    // Sequences of this length may come; a grammar given later is prepared for them too, for their patterns remain.
    void prepare(int64_t longest) {
        longest_ = std::max(longest_, longest);
        if (grammar_) grammar_->prepare(longest_);
    }

    ChainWeights<T> weights;
    LabelLoss<T> loss;

  private:
    std::optional<Grammar<T>> grammar_;
    int64_t longest_ = 1;
};

// Scores and searches on a chain model; one per thread, the model is only read.
template <class T>
class ChainSearch {
  public:
    explicit ChainSearch(const ChainModel<T>& model) : model_(model) {}

    // The lattice of a stretch, and with it the loss of labels that are not the true ones.
    Lattice<T> plain(const Stretch<T>& x) {
        const ChainWeights<T>& w = model_.weights;
        nodes_.resize(std::size_t(x.length * w.lanes()));
        for (int64_t t = 0; t < x.length; ++t) {
            T* nodes = nodes_.data() + t * w.lanes();
            units<T>().scores(x.rows.row(x.first + t), w.tokens(), w.lanes(), true, nodes);
            std::fill(nodes + w.labels(), nodes + w.lanes(), Decoder<T>::impossible);
        }
        return {nodes_.data(), x.length, x.history, x.previous, x.remaining};
    }

    Lattice<T> augmented(const Stretch<T>& x) {
        const Lattice<T> lattice = plain(x);
        const ChainWeights<T>& w = model_.weights;
        for (int64_t t = 0; t < x.length; ++t) {
            const T* loss = model_.loss.row(x.truth[t]);
            for (int64_t y = 0; y < w.labels(); ++y) nodes_[std::size_t(t * w.lanes() + y)] += loss[y];
        }
        return lattice;
    }

    T* nodes() { return nodes_.data(); }

    // The output with the highest score, and that score.
    T argmax(const Lattice<T>& lattice, int32_t* output) {
        const Transitions<T> with = model_.weights.transitions();
        if (lattice.length == 1) return decoder_.best_label(lattice, with, model_.grammar(), *output);
        return decoder_.best_path(lattice, with, model_.grammar(), output);
    }

    bool greedy(const Lattice<T>& lattice, int32_t* output) {
        return decoder_.greedy_path(lattice, model_.weights.transitions(), model_.grammar(), output);
    }

    std::vector<Path> best_paths(const Lattice<T>& lattice, int64_t count) {
        return decoder_.best_paths(lattice, model_.weights.transitions(), model_.grammar(), count);
    }

    // <w, Phi(x, y) - Phi(x, truth)>: only what differs is looked at.
    double lead(const Stretch<T>& x, const int32_t* y) const {
        return lead_by(x, y, [&](int64_t t) { return token_lead(x, t, y[t], x.truth[t]); });
    }

    // The same for several outputs of one stretch while the weights stay: they often differ from truth at the same
    // tokens, whose part is computed once. `begin_leads` comes first.
    double next_lead(const Stretch<T>& x, const int32_t* y) {
        return lead_by(x, y, [&](int64_t t) {
            const std::size_t at = std::size_t(t * model_.weights.lanes() + y[t]);
            if (known_in_[at] != round_) known_in_[at] = round_, leads_[at] = token_lead(x, t, y[t], x.truth[t]);
            return leads_[at];
        });
    }

    // The same where `plain` has just made the lattice of the stretch.
    double lead_in_lattice(const Stretch<T>& x, const int32_t* y) const {
        return lead_by(x, y, [&](int64_t t) {
            const T* nodes = nodes_.data() + t * model_.weights.lanes();
            return double(nodes[y[t]]) - double(nodes[x.truth[t]]);
        });
    }

    void begin_leads(const Stretch<T>& x) {
        ++round_;
        const std::size_t size = std::size_t(x.length * model_.weights.lanes());
        if (known_in_.size() < size) known_in_.resize(size, 0), leads_.resize(size);
    }

    // |Phi(x, y) - Phi(x, z)|^2.
    double squared_distance(const Stretch<T>& x, const int32_t* y, const int32_t* z) {
        int64_t different = 0, last = 0;
        for (int64_t t = 0; t < x.length; ++t)
            if (y[t] != z[t]) ++different, last = t;
        if (different == 0) return 0;
        if (x.length == 1) return 2 * (x.rows.squared_norm(x.first) + double(model_.weights.order()));
        const bool is_alone = different == 1;
        for_each_difference(
            x, y, z, model_.weights.order(),
            [&](int64_t t) {
                if (!is_alone) add_token(x, t, y[t], z[t]);
            },
            [&](int64_t s, int32_t py, int32_t y1, int32_t pz, int32_t z1) {
                sum_.add(transition_key(s, py, y1), 1.0);
                sum_.add(transition_key(s, pz, z1), -1.0);
            });
        return sum_.take_squared_norm() + (is_alone ? 2 * x.rows.squared_norm(x.first + last) : 0);
    }

    // Calls token(t) where the labels y and z differ, and pair(s, y^{t-s}, y^t, z^{t-s}, z^t) where the pairs do.
    template <class Token, class Pair>
    static void for_each_difference(const Stretch<T>& x, const int32_t* y, const int32_t* z, int64_t order, Token token,
                                    Pair pair) {
        int64_t last_difference = -order - 1;
        for (int64_t t = 0; t < x.length; ++t) {
            if (y[t] != z[t]) last_difference = t, token(t);
            if (t - last_difference > order) continue;
            for (int64_t s = 1; s <= order; ++s) {
                const int32_t before_y = x.label(y, t - s), before_z = x.label(z, t - s);
                if (y[t] != z[t] || before_y != before_z) pair(s, before_y, y[t], before_z, z[t]);
            }
        }
    }

  private:
    template <class TokenLead>
    double lead_by(const Stretch<T>& x, const int32_t* y, TokenLead lead_at) const {
        const ChainWeights<T>& w = model_.weights;
        double sum = 0;
        for_each_difference(
            x, y, x.truth, w.order(), [&](int64_t t) { sum += lead_at(t); },
            [&](int64_t s, int32_t py, int32_t y1, int32_t pz, int32_t z1) {
                sum += double(w.transition(s, py, y1)) - double(w.transition(s, pz, z1));
            });
        return sum;
    }

    double token_lead(const Stretch<T>& x, int64_t t, int32_t y, int32_t z) const {
        const int32_t classes[2] = {y, z};
        T scores[2];
        const ChainWeights<T>& w = model_.weights;
        units<T>().scores_of(x.rows.row(x.first + t), w.tokens(), w.lanes(), classes, 2, scores);
        return double(scores[0]) - double(scores[1]);
    }

    void add_token(const Stretch<T>& x, int64_t t, int32_t y, int32_t z) {
        const Row<T> row = x.rows.row(x.first + t);
        for (int64_t j = 0; j < row.count; ++j) {
            const uint64_t feature = uint64_t(row.columns32[j]) << 24;
            sum_.add(feature | uint64_t(y), double(row.values[j]));
            sum_.add(feature | uint64_t(z), -double(row.values[j]));
        }
    }

    static uint64_t transition_key(int64_t s, int32_t previous, int32_t label) {
        return (uint64_t(s) << 56) | (uint64_t(previous + 1) << 24) | uint64_t(label);
    }

    const ChainModel<T>& model_;
    Decoder<T> decoder_;
    SparseSum sum_;
    std::vector<T> nodes_;
    std::vector<double> leads_;       // of labels at tokens,
    std::vector<uint64_t> known_in_;  // as far as they were computed in this round
    uint64_t round_ = 0;
};

// w += step (Phi(x, y) - Phi(x, z)).
template <class T>
void add_difference(ChainWeights<T>& w, const Stretch<T>& x, const int32_t* y, const int32_t* z, double step) {
    const T coefficients[2] = {T(step), T(-step)};
    ChainSearch<T>::for_each_difference(
        x, y, z, w.order(),
        [&](int64_t t) {
            const int32_t classes[2] = {y[t], z[t]};
            units<T>().add_row_of(x.rows.row(x.first + t), coefficients, classes, 2, w.lanes(), w.tokens());
        },
        [&](int64_t s, int32_t py, int32_t y1, int32_t pz, int32_t z1) {
            w.transition(s, py, y1) += T(step);
            w.transition(s, pz, z1) -= T(step);
        });
}

// How a sequence is cut into stretches: whole for exact inference, token by token for greedy inference.
enum class Cut { whole, tokens };

// Which labels greedy training has before a token: the true ones, as in (5.12), or what the model predicts.
enum class History { truth, predictions };

// Calls visit(stretch) for each stretch of a sequence, which is given as the whole one. `past` holds the labels that
// token stretches have as history.
template <class T, class Visit>
void for_each_stretch(const Stretch<T>& sequence, int64_t order, Cut cut, const int32_t* past,
                      std::vector<int32_t>& history, Visit visit) {
    if (cut == Cut::whole) return visit(sequence);
    history.assign(std::size_t(order), absent);
    for (int64_t t = 0; t < sequence.length; ++t) {
        const int32_t previous = t > 0 ? sequence.truth[t - 1] : absent;
        visit(Stretch<T>{sequence.rows, sequence.first + t, 1, sequence.truth + t, history.data(), previous,
                         sequence.length - 1 - t});
        if (order == 0) continue;
        std::copy_backward(history.begin(), history.end() - 1, history.end());
        history[0] = past[t];
    }
}

}  // namespace larank
