// The network of concept labelling, [thesis] C.4: how well the concepts of some words of a sentence fit.
//
// Words x_i have vectors D(x_i), and so have symbols: concepts, what relations lead to, and "none", where a relation
// says nothing. A concept comes with what the relations R_1, ..., R_n of the universe u say of it:
//
//   C(c)        = (C(c), C(R_1(c)), ..., C(R_n(c)))                                                    (C.5)
//   h(c)        = W_h C(c) + b_h
//   g_i(x, y)   = W_g (D(x_i-k), ..., D(x_i+k), C(y_i-k), ..., C(y_i+k)) + b_g,    w = 2 k + 1, without y_i
//   g(x, y, u)  = sum over words i that have a label of g_i . h(y_i)                                   (C.4)
//
// To label word j with c adds to g, where V_o is the part of W_g that belongs to the concept o words further:
//
//   s(j, c) = g_j . h(c) + sum_i h(y_i) . V_j-i C(c) = q_j . C(c) + g_j . b_h,
//   q_j = W_h' g_j + r_j,    r_j = sum_i V_j-i' h(y_i)
//
// So g_j and r_j are kept for words without a label, and move when another word gets one. What the thesis leaves open:
// a word without a label has no vector (zeros), and so has a word that was never seen; what lies beyond the ends of a
// sentence has a vector of its own, word 0; "none" is symbol 0 and has one, too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "memory/aligned.hpp"
#include "simd/units.hpp"

namespace larank {

constexpr int32_t no_symbol = -1;  // of a word without a label, or of a concept that is not in the universe
constexpr int32_t padding_word = 0, unknown_word = -1, none_symbol = 0;

struct ConceptShape {
    int64_t words, symbols, relations;
    int64_t d;  // of the vectors
    int64_t N;  // of g and h
    int64_t window;

    int64_t parts() const { return 1 + relations; }
    int64_t concept_size() const { return parts() * d; }
    int64_t reach() const { return window / 2; }
    int64_t inputs() const { return window * (d + concept_size()); }
};

// `universe` has for each relation, for each symbol, what the relation leads to.
struct ConceptSentence {
    const int32_t* words;
    int64_t size;
    const int32_t* universe;
};

// Rows of N values are padded to whole vectors, with zeros that stay zeros.
template <class T>
struct ConceptWeights {
    explicit ConceptWeights(const ConceptShape& of)
        : shape(of),
          lanes(padded<T>(of.N)),
          D(of.words * of.d),
          C(of.symbols * of.d),
          Wg(of.inputs() * lanes),
          bg(lanes),
          Wh(of.concept_size() * lanes),
          bh(lanes) {}

    // The rows of W_g for the word, or concept, at a place of the window.
    T* of_word(int64_t place) { return Wg.data() + place * shape.d * lanes; }
    T* of_concept(int64_t place) { return Wg.data() + (shape.window * shape.d + place * shape.concept_size()) * lanes; }

    ConceptShape shape;
    int64_t lanes;
    AlignedArray<T> D, C, Wg, bg, Wh, bh;
};

// Scratch rows that are made anew for each sentence.
template <class T>
class ScratchRows {
  public:
    void reset(int64_t rows, int64_t columns) {
        columns_ = columns;
        values_.assign(std::size_t(rows * columns), T(0));
    }
    T* operator[](int64_t row) { return values_.data() + row * columns_; }
    const T* operator[](int64_t row) const { return values_.data() + row * columns_; }

  private:
    LargeVector<T> values_;
    int64_t columns_ = 0;
};

// weight * s(word, symbol)
struct ScoreTerm {
    int64_t word;
    int32_t symbol;
    double weight;
};

template <class T>
class ConceptNetwork {
  public:
    explicit ConceptNetwork(const ConceptShape& shape) : weights_(shape) {}

    ConceptWeights<T>& weights() { return weights_; }
    const ConceptShape& shape() const { return weights_.shape; }

    // A sentence without labels.
    void read(const ConceptSentence& sentence) {
        sentence_ = sentence;
        const int64_t n = sentence.size, d = shape().d, size = shape().concept_size();
        labels_.assign(std::size_t(n), no_symbol);
        has_scores_.assign(std::size_t(n), 0);
        X_.reset(n, shape().window * d);
        for (int64_t i = 0; i < n; ++i)
            each_place(i, [&](int64_t place, int32_t word) { std::copy_n(vector(word), d, X_[i] + place * d); });
        concepts_.reset(shape().symbols, size);
        for (int32_t c = 0; c < shape().symbols; ++c)
            for (int64_t part = 0; part < shape().parts(); ++part)
                std::copy_n(weights_.C.data() + symbol(c, part) * d, d, concepts_[c] + part * d);
        g_.reset(n, lanes());
        units<T>().dense_scores(X_[0], n, shape().window * d, weights_.Wg.data(), lanes(), g_[0]);
        for (int64_t i = 0; i < n; ++i) add(T(1), weights_.bg.data(), lanes(), g_[i]);
        r_.reset(n, size), q_.reset(n, size), h_.reset(n, lanes());
        scores_.reset(n, shape().symbols);
        product_.reset(1, lanes());
    }

    int64_t size() const { return sentence_.size; }
    int32_t label(int64_t i) const { return labels_[std::size_t(i)]; }

    // Brings s(j, c) of these symbols up to date.
    void score(int64_t j, const std::vector<int32_t>& symbols) {
        if (has_scores_[std::size_t(j)]) return;
        has_scores_[std::size_t(j)] = 1;
        const int64_t size = shape().concept_size();
        std::copy_n(r_[j], size, q_[j]);
        add_products(weights_.Wh.data(), size, g_[j], q_[j]);
        const T constant = dot(g_[j], weights_.bh.data(), lanes());
        for (const int32_t c : symbols) scores_[j][c] = constant + dot(q_[j], concepts_[c], size);
    }

    // What `score` found last.
    const T* scores(int64_t j) const { return scores_[j]; }

    void set_label(int64_t j, int32_t c) {
        labels_[std::size_t(j)] = c;
        find_h(c, h_[j]);
        each_near(j, [&](int64_t i) {
            if (label(i) != no_symbol) return;
            has_scores_[std::size_t(i)] = 0;
            add_combination(concepts_[c], concept_at(i, j), g_[i]);
            add_products(concept_at(j, i), shape().concept_size(), h_[j], r_[i]);
        });
    }

    // Moves all weights along the gradient of L = sum of the terms, whose words have no label and were scored. The step
    // is `rate`, or less: such that L grows by `most`, if the step were small enough for L to be linear.
    void ascend(const std::vector<ScoreTerm>& terms, double rate, double most) {
        find_gradient(terms);
        const T step = T(std::min(rate, most / squared_norm()));
        move_linear_layers(step);
        move_vectors(step);
    }

  private:
    int64_t lanes() const { return weights_.lanes; }
    const T* vector(int32_t word) const { return weights_.D.data() + word * shape().d; }
    int64_t symbol(int32_t c, int64_t part) const {
        return part == 0 ? c : std::max(none_symbol, sentence_.universe[(part - 1) * shape().symbols + c]);
    }
    // The part of W_g by which the concept of `other` counts for `word`.
    T* concept_at(int64_t word, int64_t other) { return weights_.of_concept(other - word + shape().reach()); }

    // Calls use(place, word) for the window of word i, but for words that were never seen.
    template <class Use>
    void each_place(int64_t i, Use use) const {
        for (int64_t offset = -shape().reach(); offset <= shape().reach(); ++offset) {
            const int64_t at = i + offset;
            const int32_t word = at < 0 || at >= sentence_.size ? padding_word : sentence_.words[at];
            if (word != unknown_word) use(offset + shape().reach(), word);
        }
    }
    template <class Use>
    void each_near(int64_t j, Use use) const {
        const int64_t end = std::min(sentence_.size, j + shape().reach() + 1);
        for (int64_t i = std::max<int64_t>(0, j - shape().reach()); i < end; ++i)
            if (i != j) use(i);
    }

    // ---- Vectors and rows of lanes ----

    static Row<T> dense(const T* values, int64_t count) { return {values, nullptr, nullptr, count, T(0), 0}; }
    static T dot(const T* a, const T* b, int64_t count) { return units<T>().dot_one(dense(a, count), b); }
    static void add(T by, const T* from, int64_t count, T* to) { units<T>().add_one(dense(from, count), by, to); }
    static double squares(const T* values, int64_t count) { return double(dot(values, values, count)); }

    // out_k += <row k of W, v>
    void add_products(const T* W, int64_t rows, const T* v, T* out) const {
        for (int64_t k = 0; k < rows; ++k) out[k] += dot(W + k * lanes(), v, lanes());
    }
    // out += W' x, for a concept x
    void add_combination(const T* x, const T* W, T* out) {
        units<T>().scores(dense(x, shape().concept_size()), W, lanes(), false, product_[0]);
        add(T(1), product_[0], lanes(), out);
    }
    void find_h(int32_t c, T* out) {
        std::copy_n(weights_.bh.data(), lanes(), out);
        add_combination(concepts_[c], weights_.Wh.data(), out);
    }

    // ---- The gradient ----

    // dL / dC(c) of one concept.
    T* new_concept_gradient(int32_t c) {
        moved_concepts_.push_back(c);
        concept_gradients_.resize(moved_concepts_.size() * std::size_t(shape().concept_size()), T(0));
        return concept_gradient(moved_concepts_.size() - 1);
    }
    T* concept_gradient(std::size_t k) { return concept_gradients_.data() + k * std::size_t(shape().concept_size()); }

    void find_gradient(const std::vector<ScoreTerm>& terms) {
        const int64_t n = sentence_.size, size = shape().concept_size(), width = shape().window * shape().d;
        moved_concepts_.clear(), concept_gradients_.clear();
        is_moved_.assign(std::size_t(n), 0);
        sums_.assign(std::size_t(n), T(0));
        dg_.reset(n, lanes()), dq_.reset(n, size), dX_.reset(n, width), dh_.reset(n, lanes());
        term_h_.reset(1, lanes());
        for (const ScoreTerm& term : terms) {
            const T weight = T(term.weight);
            is_moved_[std::size_t(term.word)] = 1;
            sums_[std::size_t(term.word)] += weight;
            find_h(term.symbol, term_h_[0]);
            add(weight, term_h_[0], lanes(), dg_[term.word]);
            add(weight, concepts_[term.symbol], size, dq_[term.word]);
            add(weight, q_[term.word], size, new_concept_gradient(term.symbol));
        }
        for (int64_t i = 0; i < n; ++i)
            if (is_moved_[std::size_t(i)])
                each_place(i, [&](int64_t place, int32_t) {
                    add_products(weights_.of_word(place), shape().d, dg_[i], dX_[i] + place * shape().d);
                });
        for (int64_t l = 0; l < n; ++l) {
            if (label(l) == no_symbol) continue;
            T* const gradient = new_concept_gradient(label(l));
            each_moved_near(l, [&](int64_t i) {
                add_products(concept_at(i, l), size, dg_[i], gradient);
                add_combination(dq_[i], concept_at(l, i), dh_[l]);
            });
            add_products(weights_.Wh.data(), size, dh_[l], gradient);
        }
    }

    // Calls use(i) for words of the terms, and these have no label.
    template <class Use>
    void each_moved_near(int64_t l, Use use) const {
        each_near(l, [&](int64_t i) {
            if (is_moved_[std::size_t(i)]) use(i);
        });
    }

    // Of the gradient, where those of different words and concepts are taken for orthogonal.
    double squared_norm() {
        const int64_t size = shape().concept_size(), width = shape().window * shape().d;
        double sum = 0;
        for (int64_t i = 0; i < sentence_.size; ++i) {
            if (!is_moved_[std::size_t(i)]) continue;
            const double constant = double(sums_[std::size_t(i)]) * double(sums_[std::size_t(i)]);
            double inputs = 1 + squares(X_[i], width), outputs = squares(g_[i], lanes());
            sum += constant * outputs + squares(dX_[i], width);
            each_near(i, [&](int64_t l) {
                if (label(l) == no_symbol) return;
                inputs += squares(concepts_[label(l)], size);
                outputs += squares(h_[l], lanes());
            });
            sum += squares(dg_[i], lanes()) * inputs + squares(dq_[i], size) * outputs;
        }
        for (int64_t l = 0; l < sentence_.size; ++l)
            if (label(l) != no_symbol) sum += squares(dh_[l], lanes()) * (1 + squares(concepts_[label(l)], size));
        return sum + squares(concept_gradients_.data(), int64_t(concept_gradients_.size()));
    }

    void move_linear_layers(T step) {
        const int64_t size = shape().concept_size(), width = shape().window * shape().d;
        for (int64_t i = 0; i < sentence_.size; ++i) {
            if (!is_moved_[std::size_t(i)]) continue;
            scale(step, dg_[i], lanes()), scale(step, dq_[i], size);
            units<T>().add_row(dense(dq_[i], size), g_[i], lanes(), weights_.Wh.data());
            add(step * sums_[std::size_t(i)], g_[i], lanes(), weights_.bh.data());
            units<T>().add_row(dense(X_[i], width), dg_[i], lanes(), weights_.Wg.data());
            add(T(1), dg_[i], lanes(), weights_.bg.data());
            each_near(i, [&](int64_t l) {
                if (label(l) == no_symbol) return;
                units<T>().add_row(dense(concepts_[label(l)], size), dg_[i], lanes(), concept_at(i, l));
                units<T>().add_row(dense(dq_[i], size), h_[l], lanes(), concept_at(l, i));
            });
        }
        for (int64_t l = 0; l < sentence_.size; ++l) {
            if (label(l) == no_symbol) continue;
            scale(step, dh_[l], lanes());
            units<T>().add_row(dense(concepts_[label(l)], size), dh_[l], lanes(), weights_.Wh.data());
            add(T(1), dh_[l], lanes(), weights_.bh.data());
        }
    }

    void move_vectors(T step) {
        const int64_t d = shape().d;
        for (int64_t i = 0; i < sentence_.size; ++i)
            if (is_moved_[std::size_t(i)])
                each_place(i, [&](int64_t place, int32_t word) {
                    add(step, dX_[i] + place * d, d, weights_.D.data() + word * d);
                });
        for (std::size_t k = 0; k < moved_concepts_.size(); ++k)
            for (int64_t part = 0; part < shape().parts(); ++part)
                add(step, concept_gradient(k) + part * d, d, weights_.C.data() + symbol(moved_concepts_[k], part) * d);
    }

    static void scale(T by, T* values, int64_t count) {
        for (int64_t k = 0; k < count; ++k) values[k] *= by;
    }

    ConceptWeights<T> weights_;
    ConceptSentence sentence_{};
    std::vector<int32_t> labels_;
    std::vector<uint8_t> has_scores_;    // and nothing has changed since
    ScratchRows<T> X_;                   // words of the window, by word
    ScratchRows<T> concepts_;            // C(c), by symbol
    ScratchRows<T> g_, r_, q_, scores_;  // by word without a label
    ScratchRows<T> h_;                   // of its label, by word with one
    ScratchRows<T> product_;
    std::vector<uint8_t> is_moved_;  // whether a word is in one of the terms
    std::vector<T> sums_;            // of the terms' weights, by word
    ScratchRows<T> dg_, dq_, dX_;    // dL / dg and so on, by word of the terms; dq is also that of r
    ScratchRows<T> dh_;              // by word with a label
    ScratchRows<T> term_h_;
    std::vector<int32_t> moved_concepts_;
    std::vector<T> concept_gradients_;
};

}  // namespace larank
