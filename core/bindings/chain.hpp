// Chains as Python hands them over: sequences and sessions, checked before the core looks at them.
#pragma once

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/choices.hpp"
#include "chain/chain.hpp"
#include "chain/larank.hpp"
#include "chain/perceptron.hpp"

template <>
struct Choices<larank::Cut> {
    static constexpr const char* argument = "inference";
    static constexpr std::array names{std::pair{"exact", larank::Cut::whole}, std::pair{"greedy", larank::Cut::tokens}};
};
template <>
struct Choices<larank::History> {
    static constexpr const char* argument = "history";
    static constexpr std::array names{std::pair{"true", larank::History::truth},
                                      std::pair{"predicted", larank::History::predictions}};
};
template <>
struct Choices<larank::OnlineRule> {
    static constexpr const char* argument = "rule";
    static constexpr std::array names{std::pair{"perceptron", larank::OnlineRule::perceptron},
                                      std::pair{"passive-aggressive", larank::OnlineRule::passive_aggressive}};
};

namespace chains {

using Weight = double;
using Model = larank::ChainModel<Weight>;
using Stretch = larank::Stretch<Weight>;
using Decoder = larank::Decoder<Weight>;

inline void require(bool is_so, const char* otherwise) {
    if (!is_so) throw std::invalid_argument(otherwise);
}

// The model as it is can be searched: labels, and a loss and a grammar for just these.
inline void check_model(const Model& model) {
    const int64_t labels = model.weights.labels();
    const auto check_given = [labels](const char* what, int64_t given) {
        if (given != labels)
            throw std::invalid_argument(std::string(what) + " was given for " + std::to_string(given) +
                                        " labels, the model has " + std::to_string(labels) + "; give it again");
    };
    require(labels >= 1, "the model has no labels");
    check_given("delta", model.loss.labels());
    if (model.grammar()) check_given("the grammar", model.grammar()->labels());
}

// Sequences as CSR rows of tokens; keeps the arrays it looks at.
class Sequences {
  public:
    Sequences(Vector<int64_t> starts, Vector<int64_t> indptr, Vector<int32_t> indices,
              std::optional<Vector<double>> values, int64_t feature_count)
        : features(feature_count), starts_(starts), indptr_(indptr), indices_(indices), values_(values) {
        require(starts.shape(0) >= 1 && starts.data()[0] == 0, "starts must begin with 0");
        require(indptr.shape(0) >= 1 && indptr.data()[0] == 0, "indptr must begin with 0");
        for (int64_t i = 0; i < size(); ++i) {
            require(length(i) > 0, "starts must grow: every sequence needs a token");
            longest = std::max(longest, length(i));
        }
        require(start(size()) == tokens(), "starts must end with the tokens");
        int64_t most = 0;
        for (int64_t t = 0; t < tokens(); ++t) {
            require(indptr.data()[t + 1] >= indptr.data()[t], "indptr must not decrease");
            most = std::max(most, indptr.data()[t + 1] - indptr.data()[t]);
        }
        require(
            indptr.data()[tokens()] == int64_t(indices.shape(0)) && (!values || values->shape(0) == indices.shape(0)),
            "indices and values must be as many as indptr says");
        for (std::size_t j = 0; j < indices.shape(0); ++j)
            require(indices.data()[j] >= 0 && indices.data()[j] < feature_count,
                    "indices must be from 0 to features - 1");
        ones_.assign(std::size_t(most), Weight(1));
    }

    int64_t size() const { return int64_t(starts_.shape(0)) - 1; }
    int64_t tokens() const { return int64_t(indptr_.shape(0)) - 1; }
    int64_t start(int64_t i) const { return starts_.data()[i]; }
    int64_t length(int64_t i) const { return start(i + 1) - start(i); }
    larank::TokenRows<Weight> rows() const {
        return {indptr_.data(), indices_.data(), values_ ? values_->data() : nullptr, ones_.data()};
    }

    void check(const Model& model) const {
        require(features <= model.weights.features(), "the sequences have features that the model does not have");
        check_model(model);
    }
    void check(int64_t begin, int64_t end) const {
        require(begin >= 0 && end >= begin && end <= size(), "no such sequences");
    }
    void check(int64_t i) const {
        if (i < 0 || i >= size()) throw std::invalid_argument("no sequence " + std::to_string(i));
    }
    void check(const Model& model, Vector<int32_t> labels) const {
        require(int64_t(labels.shape(0)) == tokens(), "labels must be one per token");
        for (std::size_t t = 0; t < labels.shape(0); ++t)
            require(labels.data()[t] >= 0 && labels.data()[t] < model.weights.labels(),
                    "labels must be from 0 to the labels of the model - 1");
    }
    // Where the grammar does not allow the labels of a sequence, see Grammar::violation.
    int64_t violation(const Model& model, Vector<int32_t> labels, int64_t i) const {
        return model.grammar() ? model.grammar()->violation(labels.data() + start(i), length(i)) : -1;
    }

    int64_t features, longest = 0;

  private:
    Vector<int64_t> starts_, indptr_;
    Vector<int32_t> indices_;
    std::optional<Vector<double>> values_;
    std::vector<Weight> ones_;
};

// A search in sequences that the model has weights for, in a way that it is able to.
class SequenceSearch {
  public:
    SequenceSearch(const Model& model, const Sequences& sequences, const std::string& inference)
        : search(model), model_(model), sequences_(sequences), cut_(named<larank::Cut>(inference)) {
        sequences.check(model);
        history_.assign(std::size_t(model.weights.order()), larank::absent);
        // States between two positions beyond which the exact search is not even begun.
        constexpr double most_states = 1 << 24;
        const double states = Decoder::states(model.weights.labels(), model.weights.order());
        if (cut_ == larank::Cut::whole && states > most_states)
            throw std::invalid_argument("exact inference has (labels + 1)^order states, here " +
                                        std::to_string(states) + "; at most " + std::to_string(int64_t(most_states)) +
                                        " are possible");
        // Greedy decisions ask the grammar what can still be completed, and only read it.
        if (cut_ == larank::Cut::tokens && model.grammar() && !model.grammar()->is_prepared(sequences.longest))
            throw std::invalid_argument("the model must be prepared for sequences of " +
                                        std::to_string(sequences.longest) + " tokens");
    }

    // The lattice of a sequence of which nothing but the tokens is known.
    larank::Lattice<Weight> plain(int64_t i) { return search.plain(whole(i, nullptr)); }

    // The labels found, unless the grammar leaves none.
    bool decode(const larank::Lattice<Weight>& lattice, int32_t* labels) {
        if (cut_ == larank::Cut::tokens) return search.greedy(lattice, labels);
        return search.argmax(lattice, labels) != Decoder::impossible;
    }

    // Calls visit(stretch) for the stretches of a sequence with these labels.
    template <class Visit>
    void for_each_stretch(int64_t i, const int32_t* labels, larank::History history, Visit visit) {
        const int32_t *truth = labels + sequences_.start(i), *past = truth;
        if (history == larank::History::predictions) {
            predicted_.resize(std::size_t(sequences_.length(i)));
            search.greedy(plain(i), predicted_.data());
            past = predicted_.data();
        }
        larank::for_each_stretch(whole(i, truth), model_.weights.order(), cut_, past, before_, visit);
    }

    larank::ChainSearch<Weight> search;

  private:
    Stretch whole(int64_t i, const int32_t* truth) const {
        const Sequences& all = sequences_;
        return {all.rows(), all.start(i), all.length(i), truth, history_.data(), larank::absent, 0};
    }

    const Model& model_;
    const Sequences& sequences_;
    larank::Cut cut_;
    std::vector<int32_t> history_, before_, predicted_;
};

// A solver that learns from sequences, and the losses it has seen on the way.
template <class Solver>
struct Session {
    template <class... Settings>
    explicit Session(Model& trained, const Settings&... settings) : model(trained), solver(trained, settings...) {}
    Session(const Session&) = delete;

    // The sequences in this order; stretch n of sequence i has the number ids[i] + n.
    void learn(const Sequences& sequences, Vector<int32_t> labels, Vector<double> costs, Vector<int64_t> ids,
               Vector<int64_t> order, const std::string& inference, const std::string& history_name) {
        const std::size_t count = std::size_t(sequences.size());
        sequences.check(model), sequences.check(model, labels);
        require(costs.shape(0) == count && ids.shape(0) == count, "costs and ids must be one per sequence");
        require(std::all_of(ids.data(), ids.data() + count, [](int64_t id) { return id >= 0; }),
                "ids must not be negative");
        for (std::size_t n = 0; n < order.shape(0); ++n) {
            sequences.check(order.data()[n]);
            if (sequences.violation(model, labels, order.data()[n]) >= 0)
                throw std::invalid_argument("the grammar does not allow the labels of sequence " +
                                            std::to_string(order.data()[n]));
        }
        const larank::History history = named<larank::History>(history_name);
        model.prepare(sequences.longest);
        SequenceSearch search(model, sequences, inference);
        nb::gil_scoped_release release;
        for (std::size_t n = 0; n < order.shape(0); ++n) {
            const int64_t i = order.data()[n];
            search.for_each_stretch(i, labels.data(), history, [&](const Stretch& x) {
                const int64_t id = ids.data()[i] + x.first - sequences.start(i);
                const double h = solver.process(x, id, costs.data()[i]);
                if (h >= 0) seen_loss += costs.data()[i] * h;
            });
        }
    }

    Model& model;
    Solver solver;
    double seen_loss = 0;
};

using LaRankSession = Session<larank::ChainLaRank<Weight>>;
using PerceptronSession = Session<larank::ChainPerceptron<Weight>>;

}  // namespace chains
