// OSPAS, the online semantic parser for ambiguous supervision [thesis] section 6.2.1, algorithm 24.
//
// A sentence has words x_1, ..., x_n, each a set of binary features, and a bag b of labels with multiplicity, in which
// a label for every word should be. S(x, y) = <w_y, x> scores the labels.
//
//   predict   y^ = argmax_y S(x, y) over all labels known so far (line 7). Of equal scores the last label wins. A word
//             for which no label has a positive score, as one that was never seen, has no y^.
//   learn     words that have no label are tried one after the other. If y^ is not in the bag, the word takes
//             AMBIGSVMDUALSTEP(x, bagtoset(b)) (line 9, algorithm 23):
//               alpha = min(C, L_w(x, b) / |Psi|^2),   w_y <- w_y + alpha psi_y x,   |Psi|^2 = |x|^2 |psi|^2
//             If it is, both the word and one y^ of the bag are done with (line 11), and all other words get another
//             try. The sentence ends when all words are done, or all have been tried in vain (line 15).
//
// When a word takes the step:
//
//   mistake   if y^ is not in the bag, as printed
//   margin    at every look with a loss, as in section 6.1.2. So words also learn which labels come with them while y^
//             is in the bag, and those of the bag that never go away win.
//
// Which word is next is the strategy's choice, [thesis] section 6.2.2:
//
//   random       any
//   left-right   the one to the right of the last; after the last word the first
//   order-free   the one whose y^ has the highest score
//
// A word may have a key, and so has each label in the bag; a word looks at the labels of its own key alone. This is how
// roles are learned, where the bag has pairs of a symbol and its role and the symbols of the words are known. Where
// only labels are offered, as for symbols, all keys are the same.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "ambiguous/candidates.hpp"
#include "ambiguous/pairwise.hpp"
#include "training/random.hpp"

namespace larank {

enum class Exploration { random, left_right, order_free };
enum class TakesStep { at_mistakes, at_losses };
constexpr int32_t no_label = -1;

// Words, each with features indices[indptr[k] .. indptr[k + 1]), distinct.
struct BinaryRows {
    const int64_t* indptr = nullptr;
    const int32_t* indices = nullptr;

    int64_t size(int64_t k) const { return indptr[k + 1] - indptr[k]; }
};

// The words [begin, end) of a sentence, and its bag.
struct TaughtSentence {
    BinaryRows rows;
    int64_t begin = 0, end = 0;
    const int32_t* keys = nullptr;  // of all words
    const int32_t* bag_keys = nullptr;
    const int32_t* bag_labels = nullptr;
    int64_t bag_size = 0;
};

struct OspasCounters {
    int64_t sentences = 0;
    int64_t words = 0;     // looked at, each as often as it was tried
    int64_t mistakes = 0;  // y^ was not in the bag
    int64_t updates = 0;   // of the weights
};

// What proposition 13 is about: L_w(x, b) of all words that were looked at, each by the weights before it.
struct OspasOnline {
    double losses = 0;
    double largest = 0;  // |x|^2
};

struct OspasState {
    OspasCounters counters;
    OspasOnline online;
    uint64_t random = 0;
};

// W, a row of all labels per feature, with room for labels to come.
class LabelRows {
  public:
    int64_t features() const { return features_; }
    int64_t labels() const { return labels_; }
    double* row(int64_t feature) { return values_.data() + feature * lanes_; }
    const double* row(int64_t feature) const { return values_.data() + feature * lanes_; }
    int64_t bytes() const { return int64_t(values_.capacity() * sizeof(double)); }

    // What is new has zero weights; nothing shrinks.
    void grow(int64_t features, int64_t labels) {
        features = std::max(features, features_), labels = std::max(labels, labels_);
        if (labels > lanes_) {
            const int64_t lanes = (std::max(labels, lanes_ + lanes_ / 2) + unit - 1) / unit * unit;
            std::vector<double> wider(std::size_t(features * lanes));
            for (int64_t f = 0; f < features_; ++f) std::copy_n(row(f), labels_, wider.data() + f * lanes);
            values_ = std::move(wider), lanes_ = lanes;
        }
        values_.resize(std::size_t(features * lanes_));
        features_ = features, labels_ = labels;
    }

    // S(x, y) for all labels y; `scores` has as many entries.
    void scores(const BinaryRows& rows, int64_t k, double* scores) const {
        std::fill(scores, scores + labels_, 0.0);
        for (int64_t j = rows.indptr[k]; j < rows.indptr[k + 1]; ++j) {
            const double* const w = row(rows.indices[j]);
            for (int64_t y = 0; y < labels_; ++y) scores[y] += w[y];
        }
    }

    // Line 7, by the scores of all labels: the best label and its score.
    std::pair<int32_t, double> best(const double* scores) const {
        std::pair<int32_t, double> found{no_label, 0.0};
        for (int64_t y = 0; y < labels_; ++y)
            if (scores[y] > 0 && scores[y] >= found.second) found = {int32_t(y), scores[y]};
        return found;
    }

    void add(const BinaryRows& rows, int64_t k, double alpha, const double* psi) {
        for (int64_t j = rows.indptr[k]; j < rows.indptr[k + 1]; ++j) {
            double* const w = row(rows.indices[j]);
            for (int64_t y = 0; y < labels_; ++y) w[y] += alpha * psi[y];
        }
    }

  private:
    static constexpr int64_t unit = 8;  // of doubles in a line of cache

    std::vector<double> values_;
    int64_t features_ = 0, labels_ = 0, lanes_ = 0;
};

class Ospas {
  public:
    Ospas(double C, Exploration exploration, TakesStep takes_step, uint64_t seed)
        : C_(C), exploration_(exploration), takes_step_(takes_step), random_(seed) {}

    const LabelRows& weights() const { return weights_; }
    LabelRows& weights() { return weights_; }
    double C() const { return C_; }
    const OspasCounters& counters() const { return counters_; }
    const OspasOnline& online() const { return online_; }
    OspasState state() const { return {counters_, online_, random_.state()}; }
    void set_state(const OspasState& state) {
        counters_ = state.counters, online_ = state.online;
        random_ = Random(state.random);
    }

    void grow(int64_t features, int64_t labels) {
        weights_.grow(features, labels);
        for (auto* values : {&scores_, &psi_}) values->resize(std::size_t(weights_.labels()));
    }

    // Algorithm 24.
    void learn(const TaughtSentence& sentence) {
        begin(sentence);
        bool has_more = true;
        while (has_more && !unlabeled_.empty()) {  // lines 3 and 15
            untried_ = unlabeled_;
            has_more = false;
            while (!has_more && !untried_.empty()) {  // line 5
                const int64_t k = choose(sentence);
                const int32_t label = predict(sentence.rows, k).first;
                const bool is_mistake = !is_in_bag(sentence.keys[k], label);
                look(sentence, k, is_mistake);
                if (is_mistake) continue;
                take(sentence.keys[k], label);
                unlabeled_.erase(std::find(unlabeled_.begin(), unlabeled_.end(), k));
                has_more = true;
            }
        }
        ++counters_.sentences;
    }

  private:
    // Leaves the scores of all labels in `scores_`.
    std::pair<int32_t, double> predict(const BinaryRows& rows, int64_t k) {
        weights_.scores(rows, k, scores_.data());
        return weights_.best(scores_.data());
    }

    void begin(const TaughtSentence& sentence) {
        unlabeled_.clear(), bag_.clear();
        for (int64_t k = sentence.begin; k < sentence.end; ++k) unlabeled_.push_back(k);
        for (int64_t n = 0; n < sentence.bag_size; ++n) bag_.push_back({sentence.bag_keys[n], sentence.bag_labels[n]});
        std::sort(bag_.begin(), bag_.end());
        last_ = sentence.begin - 1;
    }

    // Line 6: a word that was not tried since one was labeled.
    int64_t choose(const TaughtSentence& sentence) {
        auto chosen = untried_.begin();
        if (exploration_ == Exploration::random) {
            chosen += random_.below(uint32_t(untried_.size()));
        } else if (exploration_ == Exploration::left_right) {
            chosen = std::upper_bound(untried_.begin(), untried_.end(), last_);
            if (chosen == untried_.end()) chosen = untried_.begin();
        } else {
            double most = -std::numeric_limits<double>::infinity();
            for (auto k = untried_.begin(); k != untried_.end(); ++k)
                if (const double score = predict(sentence.rows, *k).second; score > most) most = score, chosen = k;
        }
        last_ = *chosen;
        untried_.erase(chosen);
        return last_;
    }

    bool is_in_bag(int32_t key, int32_t label) const {
        return std::binary_search(bag_.begin(), bag_.end(), std::pair{key, label});
    }
    void take(int32_t key, int32_t label) {
        bag_.erase(std::lower_bound(bag_.begin(), bag_.end(), std::pair{key, label}));
    }

    // The loss of the word whose scores are in `scores_`, and line 9. There is nothing to be learned where the bag has
    // no label for the word, or all of them.
    void look(const TaughtSentence& sentence, int64_t k, bool is_mistake) {
        const CandidateSet set = bag_to_set(sentence.keys[k]);
        const double squared_norm = double(sentence.rows.size(k));
        ++counters_.words;
        counters_.mistakes += is_mistake;
        online_.largest = std::max(online_.largest, squared_norm);
        if (set.size == 0) return;
        const Ascent at = loss_.ascend(set, scores_.data(), psi_.data());
        if (!std::isfinite(at.loss)) throw std::domain_error("scores overflow: choose a smaller C");
        online_.losses += at.loss;
        if ((takes_step_ == TakesStep::at_mistakes && !is_mistake) || !(at.loss > 0) || squared_norm == 0) return;
        const double alpha = std::min(C_, at.loss / (squared_norm * at.squared_norm));
        weights_.add(sentence.rows, k, alpha, psi_.data());
        ++counters_.updates;
    }

    CandidateSet bag_to_set(int32_t key) {
        set_.clear();
        for (auto entry = std::lower_bound(bag_.begin(), bag_.end(), std::pair{key, int32_t(0)});
             entry != bag_.end() && entry->first == key; ++entry)
            if (set_.empty() || set_.back() != entry->second) set_.push_back(entry->second);
        shares_.assign(set_.size(), set_.empty() ? 0.0 : 1 / double(set_.size()));
        return {set_.data(), shares_.data(), int64_t(set_.size()), weights_.labels()};
    }

    double C_;
    Exploration exploration_;
    TakesStep takes_step_;
    Random random_;
    LabelRows weights_;
    PairwiseLoss loss_;
    OspasCounters counters_;
    OspasOnline online_;
    std::vector<int64_t> unlabeled_, untried_;      // words, ascending
    std::vector<std::pair<int32_t, int32_t>> bag_;  // keys and labels, ascending
    int64_t last_ = -1;                             // the word that was tried last
    std::vector<int32_t> set_;
    std::vector<double> shares_, scores_, psi_;
};

}  // namespace larank
