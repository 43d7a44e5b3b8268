// The concept labeller and the sentences it works on, for any precision.
#pragma once

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ambiguous/concepts.hpp"
#include "bindings/arrays.hpp"
#include "bindings/choices.hpp"

template <>
struct Choices<larank::LabelOrder> {
    static constexpr const char* argument = "strategy";
    static constexpr std::array names{std::pair{"order-free", larank::LabelOrder::order_free},
                                      std::pair{"left-right", larank::LabelOrder::left_right},
                                      std::pair{"independent", larank::LabelOrder::independent}};
};

namespace concepts {

using Universes = nb::ndarray<const int32_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

inline void require(bool holds, const char* otherwise) {
    if (!holds) throw std::invalid_argument(otherwise);
}

template <class Array>
bool is_within(const Array& values, int64_t least, int64_t end) {
    return std::all_of(values.data(), values.data() + values.size(),
                       [&](int64_t value) { return value >= least && value < end; });
}

// Sentences, the universe of each and, where they are known, the labels of its words. Arrays are kept, not copied.
class Corpus {
  public:
    // Sentence i has the words from starts[i] and universes[universe_of[i]].
    Corpus(Vector<int64_t> starts, Vector<int32_t> words, Vector<int32_t> labels, Vector<int64_t> universe_of,
           Universes universes)
        : starts_(starts), words_(words), labels_(labels), universe_of_(universe_of), universes_(universes) {
        const std::size_t count = starts.shape(0);
        require(count > 0 && starts.data()[0] == 0 && std::size_t(starts.data()[count - 1]) == words.shape(0) &&
                    std::is_sorted(starts.data(), starts.data() + count),
                "starts must ascend from 0 to the number of words");
        require(labels.shape(0) == 0 || labels.shape(0) == words.shape(0), "labels must be none or one per word");
        require(universe_of.shape(0) + 1 == count, "universe_of must be one per sentence");
        require(is_within(universe_of, 0, int64_t(universes.shape(0))), "universe_of must be rows of universes");
        require(is_within(universes, larank::no_symbol, int64_t(universes.shape(2))),
                "universes must lead to symbols, from -1 on");
    }

    int64_t size() const { return int64_t(universe_of_.shape(0)); }
    int64_t start(int64_t i) const { return starts_.data()[i]; }
    const int32_t* labels(int64_t i) const { return labels_.data() + start(i); }

    larank::ConceptSentence sentence(int64_t i) const {
        const std::size_t per_universe = universes_.shape(1) * universes_.shape(2);
        return {words_.data() + start(i), start(i + 1) - start(i),
                universes_.data() + std::size_t(universe_of_.data()[i]) * per_universe};
    }

    void check(const larank::ConceptShape& shape) const {
        require(int64_t(universes_.shape(1)) == shape.relations && int64_t(universes_.shape(2)) == shape.symbols,
                "universes must have a row per relation and a column per symbol");
        require(is_within(words_, larank::unknown_word, shape.words), "words must be from -1 to their number - 1");
    }

    // The labels must be concepts of the universe of their sentence.
    void check_labels(const larank::ConceptShape& shape) {
        check(shape);
        require(labels_.shape(0) == words_.shape(0), "there must be labels to learn from");
        require(is_within(labels_, larank::none_symbol + 1, shape.symbols), "labels must be symbols");
        for (int64_t i = 0; shape.relations > 0 && i < size(); ++i)
            for (int64_t k = start(i); k < start(i + 1); ++k)
                require(sentence(i).universe[labels_.data()[k]] != larank::no_symbol,
                        "labels must be concepts of the universe of their sentence");
        knows_all_words_ = is_within(words_, 0, shape.words);
        checked_ = {shape.words, shape.symbols, shape.relations};
    }
    bool knows_all_words() const { return knows_all_words_; }
    bool is_checked_for(const larank::ConceptShape& shape) const {
        return checked_ == std::array{shape.words, shape.symbols, shape.relations};
    }

  private:
    Vector<int64_t> starts_;
    Vector<int32_t> words_, labels_;
    Vector<int64_t> universe_of_;
    Universes universes_;
    std::array<int64_t, 3> checked_{};  // the shape that the labels were checked for
    bool knows_all_words_ = false;
};

template <class T>
using Labeler = larank::ConceptLabeler<T>;
template <class T>
using Array = nb::ndarray<nb::numpy, T>;

inline larank::ConceptShape shape_of(int64_t words, int64_t symbols, int64_t relations, int64_t d, int64_t N,
                                     int64_t window) {
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    for (const int64_t size : {words, symbols, d, N, window})
        require(size > 0 && size < most, "sizes must be positive");
    require(relations >= 0 && relations < most && window % 2 == 1, "relations must be a count, and window odd");
    return {words, symbols, relations, d, N, window};
}

// Rows of the core, which are padded, to a table and back.
template <class T>
Array<T> unpadded(const T* rows, int64_t count, int64_t columns, int64_t stride) {
    std::vector<T> values(std::size_t(count * columns));
    for (int64_t k = 0; k < count; ++k) std::copy_n(rows + k * stride, columns, values.data() + k * columns);
    return to_numpy(std::move(values), {std::size_t(count), std::size_t(columns)});
}
template <class T>
void pad(Table<T> values, int64_t count, int64_t columns, int64_t stride, T* rows) {
    require(int64_t(values.shape(0)) == count && int64_t(values.shape(1)) == columns, "weights must have their shapes");
    require(are_finite(values), "weights must be finite");
    for (int64_t k = 0; k < count; ++k) std::copy_n(values.data() + k * columns, columns, rows + k * stride);
}

// D, C, W_g, b_g, W_h and b_h; a row of W is what one input contributes.
template <class T>
auto weights_of(Labeler<T>& labeler) {
    auto& w = labeler.network().weights();
    const larank::ConceptShape& s = w.shape;
    return std::make_tuple(unpadded(w.D.data(), s.words, s.d, s.d), unpadded(w.C.data(), s.symbols, s.d, s.d),
                           unpadded(w.Wg.data(), s.inputs(), s.N, w.lanes), unpadded(w.bg.data(), 1, s.N, w.lanes),
                           unpadded(w.Wh.data(), s.concept_size(), s.N, w.lanes),
                           unpadded(w.bh.data(), 1, s.N, w.lanes));
}
template <class T>
void set_weights(Labeler<T>& labeler, std::tuple<Table<T>, Table<T>, Table<T>, Table<T>, Table<T>, Table<T>> given) {
    auto& w = labeler.network().weights();
    const larank::ConceptShape& s = w.shape;
    const auto& [D, C, Wg, bg, Wh, bh] = given;
    pad<T>(D, s.words, s.d, s.d, w.D.data());
    pad<T>(C, s.symbols, s.d, s.d, w.C.data());
    pad<T>(Wg, s.inputs(), s.N, w.lanes, w.Wg.data());
    pad<T>(bg, 1, s.N, w.lanes, w.bg.data());
    pad<T>(Wh, s.concept_size(), s.N, w.lanes, w.Wh.data());
    pad<T>(bh, 1, s.N, w.lanes, w.bh.data());
}

// Calls use(sentence, labels, rate) for the sentences `order` of the corpus, each with its rate.
template <class Use>
void each_sentence(const larank::ConceptShape& shape, const Corpus& corpus, Vector<int64_t> order, Vector<double> rates,
                   Use use) {
    require(order.shape(0) == rates.shape(0), "rates must be one per sentence");
    require(is_within(order, 0, corpus.size()), "order must be sentences");
    require(std::all_of(rates.data(), rates.data() + rates.size(), [](double rate) { return std::isfinite(rate); }),
            "rates must be finite");
    require(corpus.is_checked_for(shape), "the corpus must be checked: call check");
    nb::gil_scoped_release release;
    for (std::size_t k = 0; k < order.shape(0); ++k)
        use(corpus.sentence(order.data()[k]), corpus.labels(order.data()[k]), rates.data()[k]);
}

// A lexicon has no row for words that were never seen.
inline void check_lexicon(const larank::ConceptLexicon& lexicon, const larank::ConceptShape& shape,
                          const Corpus& corpus) {
    require(corpus.knows_all_words(), "a lexicon needs words that are known, in a corpus that is checked");
    require(lexicon.words() == shape.words && lexicon.symbols() == shape.symbols,
            "the lexicon must have the words and symbols of the labeler");
}

template <class T>
void learn(Labeler<T>& labeler, const Corpus& corpus, Vector<int64_t> order, Vector<double> rates) {
    each_sentence(
        labeler.network().shape(), corpus, order, rates,
        [&](const auto& sentence, const int32_t* labels, double rate) { labeler.learn(sentence, labels, rate); });
}

// The same, where labels are bags. The lexicon learns from a sentence first, unless its rate is zero.
template <class T>
void learn_bags(Labeler<T>& labeler, const Corpus& corpus, larank::ConceptLexicon& lexicon, Vector<int64_t> order,
                Vector<double> rates, double lexicon_rate) {
    check_lexicon(lexicon, labeler.network().shape(), corpus);
    each_sentence(labeler.network().shape(), corpus, order, rates,
                  [&](const auto& sentence, const int32_t* bag, double rate) {
                      if (lexicon_rate > 0) lexicon.learn(sentence, bag, lexicon_rate);
                      labeler.learn_bag(sentence, bag, lexicon, rate);
                  });
}

// Only the lexicon.
template <class T>
void learn_lexicon(Labeler<T>& labeler, const Corpus& corpus, larank::ConceptLexicon& lexicon, Vector<int64_t> order,
                   Vector<double> rates) {
    check_lexicon(lexicon, labeler.network().shape(), corpus);
    each_sentence(labeler.network().shape(), corpus, order, rates,
                  [&](const auto& sentence, const int32_t* bag, double rate) { lexicon.learn(sentence, bag, rate); });
}

template <class T>
void check_concepts(Labeler<T>& labeler) {
    const std::vector<uint8_t>& is_concept = labeler.is_concept();
    require(std::find(is_concept.begin(), is_concept.end(), 1) != is_concept.end(), "there must be a concept");
}

// The labels of all words of the sentences [first, end).
template <class T>
auto predict(Labeler<T>& labeler, const Corpus& corpus, int64_t first, int64_t end) {
    require(0 <= first && first <= end && end <= corpus.size(), "first and end must be sentences");
    check_concepts(labeler);
    corpus.check(labeler.network().shape());
    std::vector<int32_t> labels(std::size_t(corpus.start(end) - corpus.start(first)));
    {
        nb::gil_scoped_release release;
        for (int64_t i = first; i < end; ++i) {
            int32_t* const of_sentence = labels.data() + (corpus.start(i) - corpus.start(first));
            labeler.predict(corpus.sentence(i),
                            [&](const larank::ConceptChoice& choice) { of_sentence[choice.word] = choice.symbol; });
        }
    }
    return to_numpy(std::move(labels));
}

// How one sentence is labeled: the words in the order of their labels and, at the time of each, the scores of all
// symbols.
template <class T>
auto trace(Labeler<T>& labeler, const Corpus& corpus, int64_t i) {
    require(0 <= i && i < corpus.size(), "i must be a sentence");
    check_concepts(labeler);
    corpus.check(labeler.network().shape());
    const std::size_t symbols = std::size_t(labeler.network().shape().symbols);
    std::vector<int64_t> words;
    std::vector<T> scores;
    labeler.predict(corpus.sentence(i), [&](const larank::ConceptChoice& choice) {
        words.push_back(choice.word);
        const T* const of_word = labeler.network().scores(choice.word);
        scores.insert(scores.end(), of_word, of_word + symbols);
    });
    const std::size_t count = words.size();
    return std::make_tuple(to_numpy(std::move(words)), to_numpy(std::move(scores), {count, symbols}));
}

template <class T>
void bind_labeler(nb::module_& m, const char* name) {
    using L = Labeler<T>;
    nb::class_<L>(m, name)
        .def(
            "__init__",
            [](L* self, int64_t words, int64_t symbols, int64_t relations, int64_t d, int64_t N, int64_t window,
               const std::string& strategy, double margin) {
                new (self)
                    L(shape_of(words, symbols, relations, d, N, window), {named<larank::LabelOrder>(strategy), margin});
            },
            nb::kw_only(), "words"_a, "symbols"_a, "relations"_a, "d"_a, "N"_a, "window"_a, "strategy"_a, "margin"_a)
        .def(
            "check", [](L& self, Corpus& corpus) { corpus.check_labels(self.network().shape()); }, "corpus"_a)
        .def("learn", &learn<T>, "corpus"_a, "order"_a.noconvert(), "rates"_a.noconvert())
        .def("learn_bags", &learn_bags<T>, "corpus"_a, "lexicon"_a, "order"_a.noconvert(), "rates"_a.noconvert(),
             "lexicon_rate"_a)
        .def("learn_lexicon", &learn_lexicon<T>, "corpus"_a, "lexicon"_a, "order"_a.noconvert(), "rates"_a.noconvert())
        .def("predict", &predict<T>, "corpus"_a, "first"_a, "end"_a)
        .def("trace", &trace<T>, "corpus"_a, "i"_a)
        .def_prop_rw("weights", &weights_of<T>, &set_weights<T>, nb::for_getter(nb::rv_policy::move))
        .def_prop_rw(
            "is_concept", [](L& self) { return to_numpy(std::vector<uint8_t>(self.is_concept())); },
            [](L& self, Vector<uint8_t> given) {
                require(given.shape(0) == self.is_concept().size(), "is_concept must be one per symbol");
                self.is_concept() = copied(given);
            },
            nb::for_getter(nb::rv_policy::move))
        .def_prop_ro("counters", [](const L& self) { return self.counters(); });
}

}  // namespace concepts
