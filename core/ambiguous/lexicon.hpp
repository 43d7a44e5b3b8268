// Which word of a sentence stands for which concept of its bag, learned from words alone: for [thesis] C.7.
//
// A bag has as many labels as the sentence has words, but nobody says whose they are. The constraints of C.7 are kept
// by any network that predicts the bags, also by one that hangs labels on neighbours: a window of words knows them all.
// So labels are first shared out by a table of scores t(x, c), where the word itself counts and nothing else:
//
//   p(c | x) = exp t(x, c) / sum of exp t(x, c') over the labels c' met so far
//   A        = p(b_k | x_i), for word i and place k of the bag, scaled until rows and columns sum up to 1
//   t(x_i, c) += rate (sum of A_ik over places k with b_k = c, minus p(c | x_i))
//
// A, which Sinkhorn's scaling finds, gives each word one label and each label one word, as far as p knows. The step is
// one of gradient ascent on sum_ik A_ik log p(b_k | x_i).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "ambiguous/conceptnetwork.hpp"

namespace larank {

class ConceptLexicon {
  public:
    ConceptLexicon(int64_t words, int64_t symbols)
        : symbols_(symbols), scores_(std::size_t(words * symbols), 0.0), is_met_(std::size_t(symbols), 0) {}

    int64_t words() const { return int64_t(scores_.size()) / symbols_; }
    int64_t symbols() const { return symbols_; }
    std::vector<double>& scores() { return scores_; }
    std::vector<uint8_t>& is_met() { return is_met_; }

    void learn(const ConceptSentence& sentence, const int32_t* bag, double rate) {
        for (int64_t k = 0; k < sentence.size; ++k) is_met_[std::size_t(bag[k])] = 1;
        share_out(sentence, bag);
        for (int64_t i = 0; i < sentence.size; ++i) {
            double* const scores = scores_.data() + sentence.words[i] * symbols_;
            const double* const p = probabilities_.data() + i * symbols_;
            for (int64_t c = 0; c < symbols_; ++c)
                if (is_met_[std::size_t(c)]) scores[c] -= rate * p[c];
            for (int64_t k = 0; k < sentence.size; ++k) scores[bag[k]] += rate * share(i, k);
        }
    }

    // A for a sentence and its bag; `share` gives its values.
    void share_out(const ConceptSentence& sentence, const int32_t* bag) {
        const int64_t n = size_ = sentence.size;
        probabilities_.assign(std::size_t(n * symbols_), 0.0);
        shares_.resize(std::size_t(n * n));
        for (int64_t i = 0; i < n; ++i) {
            const double* const p = find_probabilities(sentence.words[i], i);
            for (int64_t k = 0; k < n; ++k)
                shares_[std::size_t(i * n + k)] = std::max(p[bag[k]], std::numeric_limits<double>::min());
        }
        for (int round = 0; round < rounds; ++round) scale_columns(), scale_rows();
    }
    double share(int64_t i, int64_t k) const { return shares_[std::size_t(i * size_ + k)]; }

  private:
    static constexpr int rounds = 10;

    const double* find_probabilities(int32_t word, int64_t i) {
        const double* const scores = scores_.data() + word * symbols_;
        double* const p = probabilities_.data() + i * symbols_;
        double most = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t c = 0; c < symbols_; ++c)
            if (is_met_[std::size_t(c)]) most = std::max(most, scores[c]);
        for (int64_t c = 0; c < symbols_; ++c)
            if (is_met_[std::size_t(c)]) sum += p[c] = std::exp(scores[c] - most);
        for (int64_t c = 0; c < symbols_; ++c) p[c] /= sum;
        return p;
    }

    void scale_columns() {
        for (int64_t k = 0; k < size_; ++k) {
            double sum = 0;
            for (int64_t i = 0; i < size_; ++i) sum += share(i, k);
            for (int64_t i = 0; i < size_; ++i) shares_[std::size_t(i * size_ + k)] /= sum;
        }
    }
    void scale_rows() {
        for (int64_t i = 0; i < size_; ++i) {
            double* const row = shares_.data() + i * size_;
            double sum = 0;
            for (int64_t k = 0; k < size_; ++k) sum += row[k];
            for (int64_t k = 0; k < size_; ++k) row[k] /= sum;
        }
    }

    int64_t symbols_;
    std::vector<double> scores_;
    std::vector<uint8_t> is_met_;
    int64_t size_ = 0;
    std::vector<double> probabilities_, shares_;
};

}  // namespace larank
