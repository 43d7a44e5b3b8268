// Chain models, searches on them, and the sessions that train them.
#include "bindings/arrays.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

#include "chain/chain.hpp"
#include "chain/larank.hpp"
#include "chain/perceptron.hpp"

namespace {

using Weight = double;
using larank::ChainModel;
using larank::Cut;
using Model = ChainModel<Weight>;
using Search = larank::ChainSearch<Weight>;
using Stretch = larank::Stretch<Weight>;

// The model as it is can be searched: labels, and a loss and a grammar for just these.
void check_model(const Model& model) {
    const int64_t labels = model.weights.labels();
    if (labels < 1) throw std::invalid_argument("the model has no labels");
    if (model.loss.labels() != labels)
        throw std::invalid_argument("delta was given for " + std::to_string(model.loss.labels()) +
                                    " labels, the model has " + std::to_string(labels) + "; give it again");
    if (model.grammar() && model.grammar()->labels() != labels)
        throw std::invalid_argument("the grammar was given for " + std::to_string(model.grammar()->labels()) +
                                    " labels, the model has " + std::to_string(labels) + "; give it again");
}

// Sequences as CSR rows of tokens; keeps the arrays it looks at.
class ChainBlock {
  public:
    ChainBlock(Vector<int64_t> starts, Vector<int64_t> indptr, Vector<int32_t> indices,
               std::optional<Vector<double>> values, int64_t feature_count)
        : features(feature_count), starts_(starts), indptr_(indptr), indices_(indices), values_(values) {
        if (starts.shape(0) < 1 || starts.data()[0] != 0) throw std::invalid_argument("starts must begin with 0");
        if (indptr.shape(0) < 1 || indptr.data()[0] != 0) throw std::invalid_argument("indptr must begin with 0");
        for (int64_t i = 0; i < sequences(); ++i) {
            if (starts.data()[i + 1] <= starts.data()[i])
                throw std::invalid_argument("starts must grow: every sequence needs a token");
            longest = std::max(longest, length(i));
        }
        if (starts.data()[sequences()] != tokens()) throw std::invalid_argument("starts must end with the tokens");
        int64_t most = 0;
        for (int64_t t = 0; t < tokens(); ++t) {
            if (indptr.data()[t + 1] < indptr.data()[t]) throw std::invalid_argument("indptr must not decrease");
            most = std::max(most, indptr.data()[t + 1] - indptr.data()[t]);
        }
        if (indptr.data()[tokens()] != int64_t(indices.shape(0)) || (values && values->shape(0) != indices.shape(0)))
            throw std::invalid_argument("indices and values must be as many as indptr says");
        for (std::size_t j = 0; j < indices.shape(0); ++j)
            if (indices.data()[j] < 0 || indices.data()[j] >= feature_count)
                throw std::invalid_argument("indices must be from 0 to features - 1");
        ones.assign(std::size_t(most), Weight(1));
    }

    int64_t sequences() const { return int64_t(starts_.shape(0)) - 1; }
    int64_t tokens() const { return int64_t(indptr_.shape(0)) - 1; }
    int64_t start(int64_t i) const { return starts_.data()[i]; }
    int64_t length(int64_t i) const { return start(i + 1) - start(i); }
    larank::TokenRows<Weight> rows() const {
        return {indptr_.data(), indices_.data(), values_ ? values_->data() : nullptr, ones.data()};
    }

    void check(const Model& model) const {
        if (features > model.weights.features())
            throw std::invalid_argument("the block has features that the model does not have");
        check_model(model);
    }
    void check(int64_t begin, int64_t end) const {
        if (begin < 0 || end < begin || end > sequences()) throw std::invalid_argument("no such sequences");
    }
    void check_sequence(int64_t i) const {
        if (i < 0 || i >= sequences()) throw std::invalid_argument("no sequence " + std::to_string(i));
    }

    int64_t features, longest = 0;
    std::vector<Weight> ones;

  private:
    Vector<int64_t> starts_, indptr_;
    Vector<int32_t> indices_;
    std::optional<Vector<double>> values_;
};

void check_labels(const ChainBlock& block, const Model& model, Vector<int32_t> labels) {
    if (int64_t(labels.shape(0)) != block.tokens()) throw std::invalid_argument("labels must be one per token");
    for (std::size_t t = 0; t < labels.shape(0); ++t)
        if (labels.data()[t] < 0 || labels.data()[t] >= model.weights.labels())
            throw std::invalid_argument("labels must be from 0 to the labels of the model - 1");
}

// States between two positions beyond which the exact search is not even begun.
constexpr double most_states = 1 << 24;

void check_states(const Model& model) {
    const double states = larank::Decoder<Weight>::states(model.weights.labels(), model.weights.order());
    if (states > most_states)
        throw std::invalid_argument("exact inference has (labels + 1)^order states, here " + std::to_string(states) +
                                    "; at most " + std::to_string(int64_t(most_states)) + " are possible");
}

Cut cut_named(const Model& model, const std::string& inference) {
    if (inference == "greedy") return Cut::tokens;
    if (inference != "exact")
        throw std::invalid_argument("inference must be 'exact' or 'greedy', got '" + inference + "'");
    check_states(model);
    return Cut::whole;
}

// Greedy decisions ask the grammar what can still be completed, which must be known before, for it is only read here.
void check_prepared(const Model& model, const ChainBlock& block, Cut cut) {
    if (cut == Cut::tokens && model.grammar() && !model.grammar()->is_prepared(block.longest))
        throw std::invalid_argument("the model must be prepared for sequences of " + std::to_string(block.longest) +
                                    " tokens");
}

// A sequence as a stretch of which nothing but the tokens is known.
Stretch unlabelled(const ChainBlock& block, int64_t i, const std::vector<int32_t>& history) {
    return {block.rows(), block.start(i), block.length(i), nullptr, history.data(), larank::absent, 0};
}

std::vector<int32_t> no_history(const Model& model) {
    return std::vector<int32_t>(std::size_t(model.weights.order()), larank::absent);
}

bool decode(Search& search, const larank::Lattice<Weight>& lattice, Cut cut, int32_t* labels) {
    if (cut == Cut::tokens) return search.greedy(lattice, labels);
    return search.argmax(lattice, labels) != larank::Decoder<Weight>::impossible;
}

// Labels of the sequences [begin, end), and the first for which the grammar leaves none, or -1.
std::pair<nb::ndarray<nb::numpy, int32_t>, int64_t> predict(const Model& model, const ChainBlock& block, int64_t begin,
                                                            int64_t end, const std::string& inference) {
    block.check(model), block.check(begin, end);
    const Cut cut = cut_named(model, inference);
    check_prepared(model, block, cut);
    const int64_t first = block.start(begin);
    std::vector<int32_t> labels(std::size_t(block.start(end) - first));
    int64_t failed = -1;
    {
        nb::gil_scoped_release release;
        Search search(model);
        const std::vector<int32_t> history = no_history(model);
        for (int64_t i = begin; i < end && failed < 0; ++i)
            if (!decode(search, search.plain(unlabelled(block, i, history)), cut,
                        labels.data() + block.start(i) - first))
                failed = i;
    }
    const std::size_t count = labels.size();
    return {to_numpy(std::move(labels), {count}), failed};
}

// The best labels of a sequence that have another label at one position; None if there are none. Greedy ones are those
// found with the same labels before that position.
nb::object path_without(const Model& model, const ChainBlock& block, int64_t i, int64_t position, int32_t label,
                        const std::string& inference) {
    block.check(model), block.check_sequence(i);
    if (position < 0 || position >= block.length(i)) throw std::invalid_argument("no such position");
    if (label < 0 || label >= model.weights.labels()) throw std::invalid_argument("no such label");
    const Cut cut = cut_named(model, inference);
    check_prepared(model, block, cut);
    Search search(model);
    const std::vector<int32_t> history = no_history(model);
    const auto lattice = search.plain(unlabelled(block, i, history));
    search.nodes()[position * model.weights.lanes() + label] = larank::Decoder<Weight>::impossible;
    std::vector<int32_t> labels(std::size_t(block.length(i)));
    if (!decode(search, lattice, cut, labels.data())) return nb::none();
    const std::size_t count = labels.size();
    return nb::cast(to_numpy(std::move(labels), {count}));
}

nb::list best_paths(const Model& model, const ChainBlock& block, int64_t i, int64_t count) {
    block.check(model), block.check_sequence(i), check_states(model);
    if (count < 1) throw std::invalid_argument("count must be at least 1, got " + std::to_string(count));
    std::vector<larank::Path> paths;
    {
        nb::gil_scoped_release release;
        Search search(model);
        const std::vector<int32_t> history = no_history(model);
        paths = search.best_paths(search.plain(unlabelled(block, i, history)), count);
    }
    nb::list found;
    for (larank::Path& path : paths) {
        const std::size_t length = path.labels.size();
        found.append(nb::make_tuple(to_numpy(std::move(path.labels), {length}), path.score));
    }
    return found;
}

// sum_i C_i max_y h_i(y) over the stretches of the sequences [begin, end), and the largest h.
std::pair<double, double> losses(const Model& model, const ChainBlock& block, Vector<int32_t> labels,
                                 Vector<double> costs, int64_t begin, int64_t end, const std::string& inference) {
    block.check(model), block.check(begin, end), check_labels(block, model, labels);
    if (int64_t(costs.shape(0)) != block.sequences()) throw std::invalid_argument("costs must be one per sequence");
    const Cut cut = cut_named(model, inference);
    check_prepared(model, block, cut);
    nb::gil_scoped_release release;
    Search search(model);
    std::vector<int32_t> history, worst;
    double sum = 0, largest = 0;
    for (int64_t i = begin; i < end; ++i) {
        const int32_t* truth = labels.data() + block.start(i);
        larank::for_each_stretch<Weight>({block.rows(), block.start(i), block.length(i), truth}, model.weights.order(),
                                         cut, truth, history, [&](const Stretch& x) {
                                             worst.resize(std::size_t(x.length));
                                             search.argmax(search.augmented(x), worst.data());
                                             const double h = model.loss(x.truth, worst.data(), x.length) +
                                                              search.lead(x, worst.data());
                                             sum += costs.data()[i] * std::max(h, 0.0);
                                             largest = std::max(largest, h);
                                         });
    }
    return {sum, largest};
}

// Where the grammar does not allow the labels of a sequence, see Grammar::violation.
int64_t violation(const Model& model, const ChainBlock& block, Vector<int32_t> labels, int64_t i) {
    return model.grammar() ? model.grammar()->violation(labels.data() + block.start(i), block.length(i)) : -1;
}

// What the sessions have in common: which sequences, in which order, cut how, with which labels as history.
template <class Process>
void for_each_example(Model& model, const ChainBlock& block, Vector<int32_t> labels, Vector<int64_t> order,
                      const std::string& inference, bool own_history, Process process) {
    block.check(model), check_labels(block, model, labels);
    for (std::size_t n = 0; n < order.shape(0); ++n) {
        block.check_sequence(order.data()[n]);
        if (violation(model, block, labels, order.data()[n]) >= 0)
            throw std::invalid_argument("the grammar does not allow the labels of sequence " +
                                        std::to_string(order.data()[n]));
    }
    const Cut cut = cut_named(model, inference);
    model.prepare(block.longest);
    nb::gil_scoped_release release;
    Search search(model);
    std::vector<int32_t> history, predicted;
    for (std::size_t n = 0; n < order.shape(0); ++n) {
        const int64_t i = order.data()[n];
        const int32_t* truth = labels.data() + block.start(i);
        const int32_t* past = truth;
        if (own_history) {
            predicted.resize(std::size_t(block.length(i)));
            const std::vector<int32_t> before = no_history(model);
            search.greedy(search.plain(unlabelled(block, i, before)), predicted.data());
            past = predicted.data();
        }
        larank::for_each_stretch<Weight>({block.rows(), block.start(i), block.length(i), truth}, model.weights.order(),
                                         cut, past, history,
                                         [&](const Stretch& x) { process(i, x.first - block.start(i), x); });
    }
}

using LaRank = larank::ChainLaRank<Weight>;

class LaRankSession {
  public:
    LaRankSession(Model& model, double tau, int64_t n_reprocess, int64_t memory_limit, bool returns, uint64_t seed)
        : model_(model), solver(model, {tau, n_reprocess, memory_limit, returns, seed}) {
        if (!(tau >= 0)) throw std::invalid_argument("tau must not be negative, got " + std::to_string(tau));
    }
    LaRankSession(const LaRankSession&) = delete;

    // Stretch n of sequence i has the number ids[i] + n.
    void learn(const ChainBlock& block, Vector<int32_t> labels, Vector<double> costs, Vector<int64_t> ids,
               Vector<int64_t> order, const std::string& inference, bool own_history) {
        if (int64_t(costs.shape(0)) != block.sequences() || int64_t(ids.shape(0)) != block.sequences())
            throw std::invalid_argument("costs and ids must be one per sequence");
        for (std::size_t i = 0; i < ids.shape(0); ++i)
            if (ids.data()[i] < 0) throw std::invalid_argument("ids must not be negative");
        solver.set_ones(int64_t(block.ones.size()));
        for_each_example(model_, block, labels, order, inference, own_history,
                         [&](int64_t i, int64_t n, const Stretch& x) {
                             const double h = solver.process(x, ids.data()[i] + n, costs.data()[i]);
                             if (h >= 0) seen_loss += costs.data()[i] * h, ++looks;
                             solver.keep_within_limit();
                         });
    }

    // All patterns: ids, costs, lengths, indptr, indices, values, truth, history, previous, remaining, then of their
    // outputs how many, alpha and labels.
    nb::tuple state() const {
        std::vector<int64_t> ids, lengths, indptr{0}, remaining, outputs;
        std::vector<int32_t> indices, truth, history, previous, labels;
        std::vector<double> costs, values, alpha;
        for (const auto& pattern : solver.patterns()) {
            const Stretch x = pattern.stretch(nullptr);
            ids.push_back(pattern.id), costs.push_back(pattern.cost), lengths.push_back(x.length);
            const int64_t before = indptr.back(), count = x.rows.indptr[x.length];
            for (int64_t t = 1; t <= x.length; ++t) indptr.push_back(before + x.rows.indptr[t]);
            indices.insert(indices.end(), x.rows.indices, x.rows.indices + count);
            if (x.rows.values)
                values.insert(values.end(), x.rows.values, x.rows.values + count);
            else
                values.insert(values.end(), std::size_t(count), 1.0);
            truth.insert(truth.end(), x.truth, x.truth + x.length);
            history.insert(history.end(), x.history, x.history + model_.weights.order());
            previous.push_back(x.previous), remaining.push_back(x.remaining);
            outputs.push_back(int64_t(pattern.outputs().size()));
            for (std::size_t n = 0; n < pattern.outputs().size(); ++n) {
                alpha.push_back(pattern.outputs()[n].alpha);
                labels.insert(labels.end(), pattern.labels(n), pattern.labels(n) + x.length);
            }
        }
        const auto array = [](auto&& v) {
            const std::size_t n = v.size();
            return to_numpy(std::move(v), {n});
        };
        return nb::make_tuple(array(std::move(ids)), array(std::move(costs)), array(std::move(lengths)),
                              array(std::move(indptr)), array(std::move(indices)), array(std::move(values)),
                              array(std::move(truth)), array(std::move(history)), array(std::move(previous)),
                              array(std::move(remaining)), array(std::move(outputs)), array(std::move(alpha)),
                              array(std::move(labels)));
    }

    void restore(double linear, const ChainBlock& block, Vector<int64_t> ids, Vector<double> costs,
                 Vector<int32_t> truth, Vector<int32_t> history, Vector<int32_t> previous, Vector<int64_t> remaining,
                 Vector<int64_t> outputs, Vector<double> alpha, Vector<int32_t> labels) {
        block.check(model_), check_labels(block, model_, truth);
        check_state(block, ids, costs, history, previous, remaining, outputs, alpha, labels);
        const int64_t order = model_.weights.order();
        solver.set_ones(int64_t(block.ones.size()));
        Search search(model_);
        std::vector<larank::ChainPattern<Weight>> patterns;
        std::size_t next = 0;
        const int32_t* y = labels.data();
        for (int64_t i = 0; i < block.sequences(); ++i) {
            const Stretch x{block.rows(),
                            block.start(i),
                            block.length(i),
                            truth.data() + block.start(i),
                            history.data() + i * order,
                            previous.data()[i],
                            remaining.data()[i]};
            model_.prepare(x.length + x.remaining);
            patterns.emplace_back(x, order, ids.data()[i], costs.data()[i]);
            for (int64_t n = 0; n < outputs.data()[i]; ++n, y += x.length) {
                patterns.back().add(y, model_.loss(x.truth, y, x.length), search.squared_distance(x, x.truth, y));
                patterns.back().output(std::size_t(n)).alpha = alpha.data()[next++];
            }
        }
        solver.restore(linear, std::move(patterns));
    }

    void check_state(const ChainBlock& block, Vector<int64_t> ids, Vector<double> costs, Vector<int32_t> history,
                     Vector<int32_t> previous, Vector<int64_t> remaining, Vector<int64_t> outputs, Vector<double> alpha,
                     Vector<int32_t> labels) const {
        const std::size_t count = std::size_t(block.sequences());
        if (ids.shape(0) != count || costs.shape(0) != count || previous.shape(0) != count ||
            remaining.shape(0) != count || outputs.shape(0) != count ||
            history.shape(0) != count * std::size_t(model_.weights.order()))
            throw std::invalid_argument("ids, costs, history, previous, remaining and outputs must be one per pattern");
        int64_t outputs_left = int64_t(alpha.shape(0)), labels_left = int64_t(labels.shape(0));
        for (std::size_t i = 0; i < count; ++i) {
            if (ids.data()[i] < 0 || remaining.data()[i] < 0 ||
                remaining.data()[i] > std::numeric_limits<int32_t>::max())
                throw std::invalid_argument("ids and remaining must be counts");
            const int64_t n = outputs.data()[i], length = block.length(int64_t(i));
            if (n < 1 || n > outputs_left || n > labels_left / length)
                throw std::invalid_argument("alpha and labels must be as many as outputs says");
            outputs_left -= n, labels_left -= n * length;
        }
        if (outputs_left != 0 || labels_left != 0)
            throw std::invalid_argument("alpha and labels must be as many as outputs says");
        const auto check_range = [&](Vector<int32_t> some, int32_t least) {
            for (std::size_t j = 0; j < some.shape(0); ++j)
                if (some.data()[j] < least || some.data()[j] >= model_.weights.labels())
                    throw std::invalid_argument("history, previous and labels must be labels of the model");
        };
        check_range(history, larank::absent), check_range(previous, larank::absent), check_range(labels, 0);
    }

    int64_t support_vectors() const {
        int64_t count = 0;
        for (const auto& pattern : solver.patterns()) count += int64_t(pattern.outputs().size()) + 1;
        return count;
    }

    Model& model_;
    LaRank solver;
    double seen_loss = 0;
    int64_t looks = 0;
};

class PerceptronSession {
  public:
    PerceptronSession(Model& model, larank::OnlineRule rule, bool averages)
        : model_(model), solver(model, rule, averages) {}
    PerceptronSession(const PerceptronSession&) = delete;

    void learn(const ChainBlock& block, Vector<int32_t> labels, Vector<double> costs, Vector<int64_t>,
               Vector<int64_t> order, const std::string& inference, bool own_history) {
        if (int64_t(costs.shape(0)) != block.sequences()) throw std::invalid_argument("costs must be one per sequence");
        for_each_example(model_, block, labels, order, inference, own_history,
                         [&](int64_t i, int64_t, const Stretch& x) {
                             seen_loss += costs.data()[i] * std::max(0.0, solver.process(x, costs.data()[i]));
                             ++looks;
                         });
    }

    Model& model_;
    larank::ChainPerceptron<Weight> solver;
    double seen_loss = 0;
    int64_t looks = 0;
};

using Weights = larank::ChainWeights<Weight>;

// Weights of the features, those that are not zero, as CSR: values, columns, starts.
nb::tuple sparse_tokens(const Weights& w) {
    std::vector<double> values;
    std::vector<int32_t> columns;
    std::vector<int64_t> starts{0};
    for (int64_t f = 0; f < w.features(); ++f) {
        for (int64_t y = 0; y < w.labels(); ++y)
            if (const Weight value = w.tokens()[f * w.lanes() + y]; value != 0)
                values.push_back(double(value)), columns.push_back(int32_t(y));
        starts.push_back(int64_t(values.size()));
    }
    const std::size_t n = values.size(), rows = starts.size();
    return nb::make_tuple(to_numpy(std::move(values), {n}), to_numpy(std::move(columns), {n}),
                          to_numpy(std::move(starts), {rows}));
}

// T_s[absent or previous label][label].
nb::ndarray<nb::numpy, double> dense_transitions(const Weights& w) {
    std::vector<double> values;
    for (int64_t s = 1; s <= w.order(); ++s)
        for (int64_t p = -1; p < w.labels(); ++p)
            for (int64_t y = 0; y < w.labels(); ++y) values.push_back(double(w.transitions().row(s, p)[y]));
    const std::size_t order = std::size_t(w.order()), labels = std::size_t(w.labels());
    return to_numpy(std::move(values), {order, labels + 1, labels});
}

void set_weights(Weights& w, Vector<double> values, Vector<int32_t> columns, Vector<int64_t> starts,
                 nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu> transitions) {
    const int64_t features = int64_t(starts.shape(0)) - 1, labels = int64_t(transitions.shape(2));
    if (int64_t(transitions.shape(0)) != w.order() || int64_t(transitions.shape(1)) != labels + 1)
        throw std::invalid_argument("transitions must have a table of labels + 1 rows per lag");
    if (columns.shape(0) != values.shape(0)) throw std::invalid_argument("values and columns must be as many");
    Weights fresh(w.order());
    fresh.grow(std::max(features, w.features()), std::max(labels, w.labels()));
    for (int64_t f = 0; f < features; ++f)
        for (int64_t j = starts.data()[f]; j < starts.data()[f + 1]; ++j) {
            if (j < 0 || j >= int64_t(values.shape(0)) || columns.data()[j] < 0 || columns.data()[j] >= labels)
                throw std::invalid_argument("columns and starts must be those of a CSR matrix with a column per label");
            fresh.tokens()[f * fresh.lanes() + columns.data()[j]] = Weight(values.data()[j]);
        }
    const double* from = transitions.data();
    for (int64_t s = 1; s <= w.order(); ++s)
        for (int64_t p = -1; p < labels; ++p)
            for (int64_t y = 0; y < labels; ++y) fresh.transition(s, int32_t(p), int32_t(y)) = Weight(*from++);
    w = std::move(fresh);
}

void grow(Model& model, int64_t features, int64_t labels) {
    if (features < 0 || features > std::numeric_limits<int32_t>::max())
        throw std::invalid_argument("features must be from 0 to 2^31 - 1, got " + std::to_string(features));
    if (labels < 0 || labels > larank::most_labels)
        throw std::invalid_argument("labels must be from 0 to " + std::to_string(larank::most_labels) + ", got " +
                                    std::to_string(labels));
    model.grow(features, labels);
}

void set_loss(Model& model, Table<double> delta) {
    const int64_t labels = model.weights.labels();
    if (int64_t(delta.shape(0)) != labels || int64_t(delta.shape(1)) != labels)
        throw std::invalid_argument("delta must have a row and a column per label");
    for (int64_t a = 0; a < labels; ++a)
        for (int64_t b = 0; b < labels; ++b)
            if (const double cost = delta.data()[a * labels + b];
                !(cost >= 0 && std::isfinite(cost)) || (a == b && cost))
                throw std::invalid_argument("delta must be 0 on its diagonal and not negative elsewhere, got " +
                                            std::to_string(cost));
    model.loss.give(delta.data(), labels);
}

void bind_model(nb::module_& m) {
    nb::class_<ChainBlock>(m, "ChainBlock")
        .def(nb::init<Vector<int64_t>, Vector<int64_t>, Vector<int32_t>, std::optional<Vector<double>>, int64_t>(),
             "starts"_a.noconvert(), "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert().none(),
             "features"_a)
        .def_prop_ro("sequences", &ChainBlock::sequences)
        .def_prop_ro("tokens", &ChainBlock::tokens)
        .def_ro("longest", &ChainBlock::longest);
    nb::class_<Model>(m, "ChainModel")
        .def(
            "__init__",
            [](Model* self, int64_t order) {
                if (order < 0 || order > larank::most_lags)
                    throw std::invalid_argument("order must be from 0 to " + std::to_string(larank::most_lags) +
                                                ", got " + std::to_string(order));
                new (self) Model(order);
            },
            "order"_a)
        .def("grow", &grow, "features"_a, "labels"_a)
        .def_prop_ro("order", [](const Model& c) { return c.weights.order(); })
        .def_prop_ro("features", [](const Model& c) { return c.weights.features(); })
        .def_prop_ro("labels", [](const Model& c) { return c.weights.labels(); })
        .def_prop_ro("squared_norm", [](const Model& c) { return c.weights.squared_norm(); })
        .def("tokens", [](const Model& c) { return sparse_tokens(c.weights); })
        .def("transitions", [](const Model& c) { return dense_transitions(c.weights); })
        .def(
            "set_weights",
            [](Model& c, Vector<double> values, Vector<int32_t> columns, Vector<int64_t> starts,
               nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu> transitions) {
                set_weights(c.weights, values, columns, starts, transitions);
                c.loss.grow(c.weights.labels());
            },
            "values"_a.noconvert(), "columns"_a.noconvert(), "starts"_a.noconvert(), "transitions"_a.noconvert())
        .def(
            "set_grammar",
            [](Model& c, nb::ndarray<const bool, nb::ndim<2>, nb::c_contig, nb::device::cpu> follows,
               nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu> ends) {
                const int64_t labels = c.weights.labels();
                if (int64_t(follows.shape(0)) != labels + 1 || int64_t(follows.shape(1)) != labels ||
                    int64_t(ends.shape(0)) != labels)
                    throw std::invalid_argument("follows and ends must be for the labels of the model");
                c.set_grammar(std::make_unique<larank::Grammar<Weight>>(follows.data(), ends.data(), labels));
            },
            "follows"_a.noconvert(), "ends"_a.noconvert())
        .def("set_loss", &set_loss, "delta"_a.noconvert())
        .def("prepare", &Model::prepare, "longest"_a)
        // The first sequence whose labels the grammar does not allow and where, or (-1, -1).
        .def(
            "violation",
            [](const Model& c, const ChainBlock& block, Vector<int32_t> labels) {
                check_model(c), check_labels(block, c, labels);
                for (int64_t i = 0; i < block.sequences(); ++i)
                    if (const int64_t at = violation(c, block, labels, i); at >= 0) return std::pair(i, at);
                return std::pair(int64_t{-1}, int64_t{-1});
            },
            "block"_a, "labels"_a.noconvert())
        .def("predict", &predict, "block"_a, "begin"_a, "end"_a, "inference"_a)
        .def("path_without", &path_without, "block"_a, "sequence"_a, "position"_a, "label"_a, "inference"_a)
        .def("best_paths", &best_paths, "block"_a, "sequence"_a, "count"_a)
        .def("losses", &losses, "block"_a, "labels"_a.noconvert(), "costs"_a.noconvert(), "begin"_a, "end"_a,
             "inference"_a);
}

template <class Session>
nb::class_<Session> bind_session(nb::module_& m, const char* name) {
    return nb::class_<Session>(m, name)
        .def("learn", &Session::learn, "block"_a, "labels"_a.noconvert(), "costs"_a.noconvert(), "ids"_a.noconvert(),
             "order"_a.noconvert(), "inference"_a, "own_history"_a)
        .def_prop_ro("linear", [](const Session& s) { return s.solver.linear(); })
        .def("dual_from_weights", [](const Session& s) { return s.solver.dual_from_weights(); })
        .def_rw("seen_loss", &Session::seen_loss)
        .def_rw("looks", &Session::looks);
}

}  // namespace

void bind_chains(nb::module_& m) {
    bind_model(m);
    bind_session<LaRankSession>(m, "ChainLaRank")
        .def(nb::init<Model&, double, int64_t, int64_t, bool, uint64_t>(), nb::keep_alive<1, 2>(), "model"_a,
             nb::kw_only(), "tau"_a, "n_reprocess"_a, "memory_limit"_a, "returns"_a, "seed"_a)
        .def_prop_ro("dual", [](const LaRankSession& s) { return s.solver.dual(); })
        .def_prop_ro("bytes", [](const LaRankSession& s) { return s.solver.bytes(); })
        .def_prop_ro("support_patterns", [](const LaRankSession& s) { return s.solver.patterns().size(); })
        .def_prop_ro("support_vectors", &LaRankSession::support_vectors)
        .def_prop_ro("random_state", [](const LaRankSession& s) { return s.solver.random_state(); })
        .def_prop_ro("counts",
                     [](const LaRankSession& s) {
                         const LaRank::Counts& c = s.solver.counts();
                         return std::tuple(c.process_new, c.process_old, c.optimize, c.steps, c.argmax, c.frozen);
                     })
        .def("process_old",
             [](LaRankSession& s) {
                 check_model(s.model_);
                 s.solver.process_old();
             })
        .def("optimize",
             [](LaRankSession& s) {
                 check_model(s.model_);
                 s.solver.optimize();
             })
        .def("state", &LaRankSession::state)
        .def("restore", &LaRankSession::restore, "linear"_a, "block"_a, "ids"_a.noconvert(), "costs"_a.noconvert(),
             "truth"_a.noconvert(), "history"_a.noconvert(), "previous"_a.noconvert(), "remaining"_a.noconvert(),
             "outputs"_a.noconvert(), "alpha"_a.noconvert(), "labels"_a.noconvert());
    bind_session<PerceptronSession>(m, "ChainPerceptron")
        .def(
            "__init__",
            [](PerceptronSession* self, Model& model, const std::string& rule, bool averages) {
                if (rule != "perceptron" && rule != "passive-aggressive")
                    throw std::invalid_argument("rule must be 'perceptron' or 'passive-aggressive', got '" + rule +
                                                "'");
                new (self) PerceptronSession(
                    model,
                    rule == "perceptron" ? larank::OnlineRule::perceptron : larank::OnlineRule::passive_aggressive,
                    averages);
            },
            nb::keep_alive<1, 2>(), "model"_a, nb::kw_only(), "rule"_a, "averages"_a)
        .def_prop_ro(
            "counts",
            [](const PerceptronSession& s) { return std::tuple(s.solver.counts().stretches, s.solver.counts().steps); })
        .def("average",
             [](const PerceptronSession& s) {
                 const Weights mean = s.solver.average();
                 return nb::make_tuple(sparse_tokens(mean), dense_transitions(mean));
             })
        .def("early",
             [](const PerceptronSession& s) {
                 return nb::make_tuple(sparse_tokens(s.solver.early()), dense_transitions(s.solver.early()));
             })
        .def(
            "restore",
            [](PerceptronSession& s, double linear, int64_t stretches, Vector<double> values, Vector<int32_t> columns,
               Vector<int64_t> starts,
               nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu> transitions) {
                s.solver.restore(linear, stretches);
                set_weights(s.solver.early(), values, columns, starts, transitions);
            },
            "linear"_a, "stretches"_a, "values"_a.noconvert(), "columns"_a.noconvert(), "starts"_a.noconvert(),
            "transitions"_a.noconvert());
}
