// Concept labelling [thesis] C.4: words get their concepts one after another, and what is known helps with the rest.
//
// Inference. Words start without labels. In each step the pair of a word and a concept with the highest score s(j, c)
// is chosen among the words whose turn it is, and the word is labeled (C.3):
//
//   order-free    all words that have no label yet: the most certain one comes first
//   left-right    the first word that has no label yet
//   independent   each word by itself; labels do not count for other words (NN of table C.2)
//
// Learning. In each step the good labels are those that are right: (i, y_i) for the words whose turn it is, or, where
// only a bag is known, the pairs of a word and a label left in the bag that a lexicon allows (ambiguous/lexicon.hpp).
// Let (j, c) be the other label with the highest score. A step is a mistake if s(j, c) is higher than that of all good
// labels. Then the sentence ends with an early update, a step of gradient descent on the ranking constraints (C.6), or
// those of C.7,
//
//   L = margin + s(j, c) - mean of s over the good labels.
//
// If the best good label wins, but by less than `margin`, the sentence ends in the same way, with this label in place
// of the mean. Otherwise its word is labeled, and the label is taken out of the bag. Where words are labeled
// independently, the one with the largest loss is learned from. Steps go down to -`overshoot` L at most, as far as L is
// linear: without this bound the weights of a product of linear layers can grow without end.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "ambiguous/conceptnetwork.hpp"
#include "ambiguous/lexicon.hpp"

namespace larank {

enum class LabelOrder { order_free, left_right, independent };

struct ConceptSettings {
    LabelOrder order;
    double margin;
};

struct ConceptCounters {
    int64_t sentences = 0;
    int64_t mistakes = 0;  // sentences
    int64_t updates = 0;
    int64_t scores = 0;  // words, each as often as it was looked at
};

// A word and the symbol it may get.
struct ConceptChoice {
    int64_t word = -1;
    int32_t symbol = no_symbol;
    double score = -std::numeric_limits<double>::infinity();
};

template <class T>
class ConceptLabeler {
  public:
    ConceptLabeler(const ConceptShape& shape, const ConceptSettings& settings)
        : network_(shape), settings_(settings), is_concept_(std::size_t(shape.symbols), 0) {}

    ConceptNetwork<T>& network() { return network_; }
    // Which symbols may be labels, where there are no relations; with relations these are all that the universe has.
    std::vector<uint8_t>& is_concept() { return is_concept_; }
    const ConceptCounters& counters() const { return counters_; }

    // Calls step(choice) for each word, in the order in which they are labeled; `scores` of the network are those by
    // which it was chosen.
    template <class Step>
    void predict(const ConceptSentence& sentence, Step step) {
        read(sentence);
        for (int64_t t = 0; t < sentence.size; ++t) {
            take_turn(t);
            const ConceptChoice best = find([](int64_t, int32_t) { return true; });
            check(best);
            step(best);
            settle(best);
        }
    }

    // Whether the sentence was labeled without a mistake; one label per word.
    bool learn(const ConceptSentence& sentence, const int32_t* labels, double rate) {
        return learn(sentence, labels, AlignedLabels{labels}, rate);
    }

    // The same with a bag of as many labels.
    bool learn_bag(const ConceptSentence& sentence, const int32_t* bag, ConceptLexicon& lexicon, double rate) {
        if (sentence.size == 0) return true;
        lexicon.share_out(sentence, bag);
        return learn(sentence, bag, BagOfLabels(sentence.size, bag, lexicon), rate);
    }

  private:
    static constexpr double overshoot = 2;

    struct AlignedLabels {
        bool contains(int64_t i, int32_t c) const { return c == labels[i]; }
        void take(const ConceptChoice&) {}

        static constexpr bool may_run_out = false;
        const int32_t* labels;
    };

    // The labels of a bag that are left, as far as the lexicon allows them for a word.
    class BagOfLabels {
      public:
        BagOfLabels(int64_t size, const int32_t* bag, const ConceptLexicon& lexicon) : left_(bag, bag + size) {
            std::vector<double> shares(std::size_t(*std::max_element(bag, bag + size)) + 1);
            for (int64_t i = 0; i < size; ++i) {
                for (int64_t k = 0; k < size; ++k) shares[std::size_t(bag[k])] = 0;
                for (int64_t k = 0; k < size; ++k) shares[std::size_t(bag[k])] += lexicon.share(i, k);
                double most = 0;
                for (int64_t k = 0; k < size; ++k) most = std::max(most, shares[std::size_t(bag[k])]);
                for (int64_t k = 0; k < size; ++k)
                    if (shares[std::size_t(bag[k])] >= least_share * most) allowed_.push_back({i, bag[k]});
            }
            std::sort(allowed_.begin(), allowed_.end());
        }
        bool contains(int64_t i, int32_t c) const {
            return std::binary_search(allowed_.begin(), allowed_.end(), std::pair{i, c}) &&
                   std::find(left_.begin(), left_.end(), c) != left_.end();
        }
        void take(const ConceptChoice& choice) { left_.erase(std::find(left_.begin(), left_.end(), choice.symbol)); }

        static constexpr bool may_run_out = true;

      private:
        static constexpr double least_share = 0.1;  // beside the label of the bag with the largest share of the word

        std::vector<int32_t> left_;
        std::vector<std::pair<int64_t, int32_t>> allowed_;
    };

    template <class Good>
    bool learn(const ConceptSentence& sentence, const int32_t* met, Good good, double rate) {
        for (int64_t i = 0; i < sentence.size; ++i) is_concept_[std::size_t(met[i])] = 1;
        read(sentence);
        terms_.clear();
        double loss = 0;
        bool is_right = true;
        for (int64_t t = 0; t < sentence.size; ++t) {
            take_turn(t);
            const ConceptChoice right = find([&](int64_t i, int32_t c) { return good.contains(i, c); });
            const ConceptChoice wrong = find([&](int64_t i, int32_t c) { return !good.contains(i, c); });
            if (Good::may_run_out && right.word < 0) {  // other words have taken what this one may have
                check(wrong);
                is_right = false;
                if (settings_.order == LabelOrder::independent) continue;
                break;
            }
            check(right);
            const bool is_mistake = wrong.score >= right.score;
            is_right &= !is_mistake;
            if (wrong.score + settings_.margin > right.score) loss = rank(right, wrong, is_mistake, good, loss);
            if (settings_.order != LabelOrder::independent && !terms_.empty()) break;
            settle(right);
            good.take(right);
        }
        finish(loss, rate, is_right);
        return is_right;
    }

    const ConceptShape& shape() const { return network_.shape(); }

    void read(const ConceptSentence& sentence) {
        network_.read(sentence);
        offered_.clear();
        for (int32_t c = none_symbol + 1; c < shape().symbols; ++c)
            if (shape().relations == 0 ? is_concept_[std::size_t(c)] != 0 : sentence.universe[c] != no_symbol)
                offered_.push_back(c);
    }

    // The words whose turn it is in step t, scored.
    void take_turn(int64_t t) {
        turn_.clear();
        if (settings_.order == LabelOrder::order_free) {
            for (int64_t i = 0; i < network_.size(); ++i)
                if (network_.label(i) == no_symbol) turn_.push_back(i);
        } else {
            turn_.push_back(t);
        }
        for (const int64_t i : turn_) network_.score(i, offered_);
        counters_.scores += int64_t(turn_.size());
    }

    void settle(const ConceptChoice& choice) {
        if (settings_.order != LabelOrder::independent) network_.set_label(choice.word, choice.symbol);
    }

    // The highest score among the words whose turn it is and the symbols that are allowed.
    template <class Allowed>
    ConceptChoice find(Allowed allowed) const {
        ConceptChoice best;
        for (const int64_t i : turn_)
            for (const int32_t c : offered_)
                if (network_.scores(i)[c] > best.score && allowed(i, c)) best = {i, c, network_.scores(i)[c]};
        return best;
    }

    static void check(const ConceptChoice& choice) {
        if (!std::isfinite(choice.score)) throw std::domain_error("scores overflow: choose a smaller learning_rate");
    }

    // Keeps the terms of constraints that are violated, if their mean loss is larger than that of those before.
    template <class Good>
    double rank(const ConceptChoice& right, const ConceptChoice& wrong, bool is_mistake, const Good& good,
                double most) {
        ranked_.assign(1, {wrong.word, wrong.symbol, -1.0});
        for (const int64_t i : turn_)
            for (const int32_t c : offered_)
                if (is_mistake ? good.contains(i, c) : i == right.word && c == right.symbol)
                    ranked_.push_back({i, c, 1.0});
        const double share = 1 / double(ranked_.size() - 1);
        double loss = settings_.margin + wrong.score;
        for (std::size_t k = 1; k < ranked_.size(); ++k) {
            ranked_[k].weight = share;
            loss -= share * double(network_.scores(ranked_[k].word)[ranked_[k].symbol]);
        }
        if (loss <= most) return most;
        std::swap(terms_, ranked_);
        return loss;
    }

    void finish(double loss, double rate, bool is_right) {
        ++counters_.sentences;
        counters_.mistakes += !is_right;
        if (terms_.empty()) return;
        network_.ascend(terms_, rate, (1 + overshoot) * loss);
        ++counters_.updates;
    }

    ConceptNetwork<T> network_;
    ConceptSettings settings_;
    std::vector<uint8_t> is_concept_;
    ConceptCounters counters_;
    std::vector<int64_t> turn_;
    std::vector<int32_t> offered_;
    std::vector<ScoreTerm> terms_, ranked_;
};

}  // namespace larank
