// Chain models, searches on them, and the sessions that train them.
#include "bindings/chain.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <cmath>
#include <limits>

namespace {

using namespace chains;
using Weights = larank::ChainWeights<Weight>;
using Transitions = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// ---- Searches ----

// Labels of the sequences [begin, end), and the first for which the grammar leaves none, or -1.
auto predict(const Model& model, const Sequences& sequences, int64_t begin, int64_t end, const std::string& inference) {
    SequenceSearch search(model, sequences, inference);
    sequences.check(begin, end);
    const int64_t first = sequences.start(begin);
    std::vector<int32_t> labels(std::size_t(sequences.start(end) - first));
    int64_t failed = -1;
    {
        nb::gil_scoped_release release;
        for (int64_t i = begin; i < end && failed < 0; ++i)
            if (!search.decode(search.plain(i), labels.data() + sequences.start(i) - first)) failed = i;
    }
    return std::pair{to_numpy(std::move(labels)), failed};
}

// The best labels of a sequence that have another label at one position; None if there are none. Greedy ones are those
// found with the same labels before that position.
std::optional<nb::ndarray<nb::numpy, int32_t>> path_without(const Model& model, const Sequences& sequences, int64_t i,
                                                            int64_t position, int32_t label,
                                                            const std::string& inference) {
    SequenceSearch search(model, sequences, inference);
    sequences.check(i);
    require(position >= 0 && position < sequences.length(i), "no such position");
    require(label >= 0 && label < model.weights.labels(), "no such label");
    const auto lattice = search.plain(i);
    search.search.nodes()[position * model.weights.lanes() + label] = Decoder::impossible;
    std::vector<int32_t> labels(std::size_t(sequences.length(i)));
    if (!search.decode(lattice, labels.data())) return std::nullopt;
    return to_numpy(std::move(labels));
}

nb::list best_paths(const Model& model, const Sequences& sequences, int64_t i, int64_t count) {
    SequenceSearch search(model, sequences, "exact");
    sequences.check(i);
    if (count < 1) throw std::invalid_argument("count must be at least 1, got " + std::to_string(count));
    std::vector<larank::Path> paths;
    {
        nb::gil_scoped_release release;
        paths = search.search.best_paths(search.plain(i), count);
    }
    nb::list found;
    for (larank::Path& path : paths) found.append(nb::make_tuple(to_numpy(std::move(path.labels)), path.score));
    return found;
}

// sum_i C_i max_y h_i(y) over the stretches of the sequences [begin, end).
double losses(const Model& model, const Sequences& sequences, Vector<int32_t> labels, Vector<double> costs,
              int64_t begin, int64_t end, const std::string& inference) {
    SequenceSearch search(model, sequences, inference);
    sequences.check(begin, end), sequences.check(model, labels);
    require(int64_t(costs.shape(0)) == sequences.size(), "costs must be one per sequence");
    nb::gil_scoped_release release;
    std::vector<int32_t> worst;
    double sum = 0;
    for (int64_t i = begin; i < end; ++i)
        search.for_each_stretch(i, labels.data(), larank::History::truth, [&](const Stretch& x) {
            worst.resize(std::size_t(x.length));
            search.search.argmax(search.search.augmented(x), worst.data());
            const double h = model.loss(x.truth, worst.data(), x.length) + search.search.lead(x, worst.data());
            sum += costs.data()[i] * std::max(h, 0.0);
        });
    return sum;
}

// The first sequence whose labels the grammar does not allow and where, or (-1, -1).
std::pair<int64_t, int64_t> violation(const Model& model, const Sequences& sequences, Vector<int32_t> labels) {
    check_model(model), sequences.check(model, labels);
    for (int64_t i = 0; i < sequences.size(); ++i)
        if (const int64_t at = sequences.violation(model, labels, i); at >= 0) return {i, at};
    return {-1, -1};
}

// ---- Weights, losses and grammars ----

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
    return nb::make_tuple(to_numpy(std::move(values)), to_numpy(std::move(columns)), to_numpy(std::move(starts)));
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
                 Transitions transitions) {
    require(starts.shape(0) >= 1, "starts must be one more than the features");
    const int64_t features = int64_t(starts.shape(0)) - 1, labels = int64_t(transitions.shape(2));
    require(int64_t(transitions.shape(0)) == w.order() && int64_t(transitions.shape(1)) == labels + 1,
            "transitions must have a table of labels + 1 rows per lag");
    require(columns.shape(0) == values.shape(0), "values and columns must be as many");
    require(are_finite(values) && are_finite(transitions), "weights must be finite");
    Weights fresh(w.order());
    fresh.grow(std::max(features, w.features()), std::max(labels, w.labels()));
    for (int64_t f = 0; f < features; ++f)
        for (int64_t j = starts.data()[f]; j < starts.data()[f + 1]; ++j) {
            require(j >= 0 && j < int64_t(values.shape(0)) && columns.data()[j] >= 0 && columns.data()[j] < labels,
                    "columns and starts must be those of a CSR matrix with a column per label");
            fresh.tokens()[f * fresh.lanes() + columns.data()[j]] = Weight(values.data()[j]);
        }
    const double* from = transitions.data();
    for (int64_t s = 1; s <= w.order(); ++s)
        for (int64_t p = -1; p < labels; ++p)
            for (int64_t y = 0; y < labels; ++y) fresh.transition(s, int32_t(p), int32_t(y)) = Weight(*from++);
    w = std::move(fresh);
}

void check_range(const char* name, int64_t least, int64_t most, int64_t value) {
    if (value < least || value > most)
        throw std::invalid_argument(std::string(name) + " must be from " + std::to_string(least) + " to " +
                                    std::to_string(most) + ", got " + std::to_string(value));
}

void grow(Model& model, int64_t features, int64_t labels) {
    check_range("features", 0, std::numeric_limits<int32_t>::max(), features);
    check_range("labels", 0, larank::most_labels, labels);
    model.grow(features, labels);
}

void set_loss(Model& model, Table<double> delta) {
    const int64_t labels = model.weights.labels();
    require(int64_t(delta.shape(0)) == labels && int64_t(delta.shape(1)) == labels,
            "delta must have a row and a column per label");
    for (int64_t a = 0; a < labels; ++a)
        for (int64_t b = 0; b < labels; ++b)
            if (const double cost = delta.data()[a * labels + b];
                !(cost >= 0 && std::isfinite(cost)) || (a == b && cost != 0))
                throw std::invalid_argument("delta must be 0 on its diagonal and not negative elsewhere, got " +
                                            std::to_string(cost));
    model.loss.give(delta.data(), labels);
}

void set_grammar(Model& model, nb::ndarray<const bool, nb::ndim<2>, nb::c_contig, nb::device::cpu> follows,
                 nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu> ends) {
    const int64_t labels = model.weights.labels();
    require(int64_t(follows.shape(0)) == labels + 1 && int64_t(follows.shape(1)) == labels &&
                int64_t(ends.shape(0)) == labels,
            "follows and ends must be for the labels of the model");
    model.set_grammar(larank::Grammar<Weight>(follows.data(), ends.data(), labels));
}

// ---- The patterns of LaRank ----

// All patterns: ids, costs, lengths, indptr, indices, values, truth, history, previous, remaining, then of their
// outputs how many, alpha and labels.
nb::tuple patterns_of(const LaRankSession& session) {
    std::vector<int64_t> ids, lengths, indptr{0}, remaining, outputs;
    std::vector<int32_t> indices, truth, history, previous, labels;
    std::vector<double> costs, values, alpha;
    for (const auto& pattern : session.solver.patterns()) {
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
        history.insert(history.end(), x.history, x.history + session.model.weights.order());
        previous.push_back(x.previous), remaining.push_back(x.remaining);
        outputs.push_back(int64_t(pattern.outputs().size()));
        for (std::size_t n = 0; n < pattern.outputs().size(); ++n) {
            alpha.push_back(pattern.outputs()[n].alpha);
            labels.insert(labels.end(), pattern.labels(n), pattern.labels(n) + x.length);
        }
    }
    return nb::make_tuple(to_numpy(std::move(ids)), to_numpy(std::move(costs)), to_numpy(std::move(lengths)),
                          to_numpy(std::move(indptr)), to_numpy(std::move(indices)), to_numpy(std::move(values)),
                          to_numpy(std::move(truth)), to_numpy(std::move(history)), to_numpy(std::move(previous)),
                          to_numpy(std::move(remaining)), to_numpy(std::move(outputs)), to_numpy(std::move(alpha)),
                          to_numpy(std::move(labels)));
}

// Patterns, each a sequence of its own, in place of those there are.
void restore_patterns(LaRankSession& session, double linear, const Sequences& sequences, Vector<int64_t> ids,
                      Vector<double> costs, Vector<int32_t> truth, Vector<int32_t> history, Vector<int32_t> previous,
                      Vector<int64_t> remaining, Vector<int64_t> outputs, Vector<double> alpha,
                      Vector<int32_t> labels) {
    Model& model = session.model;
    sequences.check(model), sequences.check(model, truth);
    const std::size_t count = std::size_t(sequences.size()), order = std::size_t(model.weights.order());
    for (const std::size_t size :
         {ids.shape(0), costs.shape(0), previous.shape(0), remaining.shape(0), outputs.shape(0)})
        require(size == count, "ids, costs, previous, remaining and outputs must be one per pattern");
    require(history.shape(0) == count * order, "history must be the order many per pattern");
    require(std::isfinite(linear) && are_finite(costs) && are_finite(alpha), "linear, costs and alpha must be finite");
    int64_t outputs_left = int64_t(alpha.shape(0)), labels_left = int64_t(labels.shape(0));
    const char* const too_many = "alpha and labels must be as many as outputs says";
    for (std::size_t i = 0; i < count; ++i) {
        require(ids.data()[i] >= 0 && remaining.data()[i] >= 0 &&
                    remaining.data()[i] <= std::numeric_limits<int32_t>::max(),
                "ids and remaining must be counts");
        const int64_t n = outputs.data()[i], length = sequences.length(int64_t(i));
        require(n >= 1 && n <= outputs_left && n <= labels_left / length, too_many);
        outputs_left -= n, labels_left -= n * length;
    }
    require(outputs_left == 0 && labels_left == 0, too_many);
    const auto check_labels = [&](Vector<int32_t> some, int32_t least) {
        for (std::size_t j = 0; j < some.shape(0); ++j)
            require(some.data()[j] >= least && some.data()[j] < model.weights.labels(),
                    "history, previous and labels must be labels of the model");
    };
    check_labels(history, larank::absent), check_labels(previous, larank::absent), check_labels(labels, 0);

    larank::ChainSearch<Weight> search(model);
    std::vector<larank::ChainPattern<Weight>> patterns;
    const double* share = alpha.data();
    const int32_t* y = labels.data();
    for (int64_t i = 0; i < sequences.size(); ++i) {
        const int64_t start = sequences.start(i);
        const Stretch x{sequences.rows(),
                        start,
                        sequences.length(i),
                        truth.data() + start,
                        history.data() + i * int64_t(order),
                        previous.data()[i],
                        remaining.data()[i]};
        model.prepare(x.length + x.remaining);
        patterns.emplace_back(x, int64_t(order), ids.data()[i], costs.data()[i]);
        for (int64_t n = 0; n < outputs.data()[i]; ++n, y += x.length) {
            patterns.back().add(y, model.loss(x.truth, y, x.length), search.squared_distance(x, x.truth, y));
            patterns.back().output(std::size_t(n)).alpha = *share++;
        }
    }
    session.solver.restore(linear, std::move(patterns));
}

int64_t support_vectors(const LaRankSession& session) {
    int64_t count = 0;
    for (const auto& pattern : session.solver.patterns()) count += int64_t(pattern.outputs().size()) + 1;
    return count;
}

// ---- What Python sees ----

void bind_model(nb::module_& m) {
    nb::class_<Sequences>(m, "ChainSequences")
        .def(nb::init<Vector<int64_t>, Vector<int64_t>, Vector<int32_t>, std::optional<Vector<double>>, int64_t>(),
             "starts"_a.noconvert(), "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert().none(),
             "features"_a)
        .def("__len__", &Sequences::size)
        .def_prop_ro("tokens", &Sequences::tokens)
        .def_ro("longest", &Sequences::longest);
    nb::class_<Model>(m, "ChainModel")
        .def(
            "__init__",
            [](Model* self, int64_t order) {
                check_range("order", 0, larank::most_lags, order);
                new (self) Model(order);
            },
            "order"_a)
        .def(
            "__init__",
            [](Model* self, const Model& other) {
                const nb::gil_scoped_release release;
                new (self) Model(other);
            },
            "model"_a)
        .def("grow", &grow, "features"_a, "labels"_a)
        .def_static(
            "bytes_of",
            [](int64_t order, int64_t features, int64_t labels) {
                check_range("order", 0, larank::most_lags, order);
                check_range("features", 0, std::numeric_limits<int32_t>::max(), features);
                check_range("labels", 0, larank::most_labels, labels);
                return Weights::bytes_of(order, features, labels);
            },
            "order"_a, "features"_a, "labels"_a)
        .def_prop_ro("bytes", [](const Model& c) { return c.weights.bytes(); })
        .def_prop_ro("order", [](const Model& c) { return c.weights.order(); })
        .def_prop_ro("features", [](const Model& c) { return c.weights.features(); })
        .def_prop_ro("labels", [](const Model& c) { return c.weights.labels(); })
        .def_prop_ro("squared_norm", [](const Model& c) { return c.weights.squared_norm(); })
        .def("tokens", [](const Model& c) { return sparse_tokens(c.weights); })
        .def("transitions", [](const Model& c) { return dense_transitions(c.weights); })
        .def(
            "set_weights",
            [](Model& c, Vector<double> values, Vector<int32_t> columns, Vector<int64_t> starts,
               Transitions transitions) {
                set_weights(c.weights, values, columns, starts, transitions);
                c.loss.grow(c.weights.labels());
            },
            "values"_a.noconvert(), "columns"_a.noconvert(), "starts"_a.noconvert(), "transitions"_a.noconvert())
        .def("set_grammar", &set_grammar, "follows"_a.noconvert(), "ends"_a.noconvert())
        .def("set_loss", &set_loss, "delta"_a.noconvert())
        .def("prepare", &Model::prepare, "longest"_a)
        .def("is_prepared", &Model::is_prepared, "longest"_a)
        .def("violation", &violation, "sequences"_a, "labels"_a.noconvert())
        .def("predict", &predict, "sequences"_a, "begin"_a, "end"_a, "inference"_a)
        .def("path_without", &path_without, "sequences"_a, "number"_a, "position"_a, "label"_a, "inference"_a)
        .def("best_paths", &best_paths, "sequences"_a, "number"_a, "count"_a)
        .def("losses", &losses, "sequences"_a, "labels"_a.noconvert(), "costs"_a.noconvert(), "begin"_a, "end"_a,
             "inference"_a);
}

template <class Session>
nb::class_<Session> bind_session(nb::module_& m, const char* name) {
    return nb::class_<Session>(m, name)
        .def("learn", &Session::learn, "sequences"_a, "labels"_a.noconvert(), "costs"_a.noconvert(),
             "ids"_a.noconvert(), "order"_a.noconvert(), "inference"_a, "history"_a)
        // The same session on a copy of its model.
        .def(
            "copy_for",
            [](const Session& s, Model& copy) {
                const nb::gil_scoped_release release;
                return std::make_unique<Session>(copy, s.solver);
            },
            nb::keep_alive<0, 2>(), "copy"_a)
        .def_prop_ro("bytes", [](const Session& s) { return s.solver.bytes() + s.solver.average().bytes(); })
        // A model of its own with the average of the weights, and what the session keeps for it.
        .def_prop_ro("averages", [](const Session& s) { return s.solver.average().is_kept(); })
        .def_prop_ro("stretches", [](const Session& s) { return s.solver.average().stretches(); })
        .def("average",
             [](const Session& s) {
                 const nb::gil_scoped_release release;
                 auto model = std::make_unique<Model>(s.model);
                 s.solver.average(model->weights);
                 return model;
             })
        .def(
            "shorten_average",
            [](Session& s, double coming, double share) {
                require(coming > 0 && std::isfinite(coming), "coming must be a number of stretches above zero");
                require(share > 0 && share < 1, "share must be between 0 and 1");
                s.solver.shorten_average(coming, share);
            },
            "coming"_a, "share"_a)
        .def("early",
             [](const Session& s) {
                 const Weights& early = s.solver.average().early();
                 return nb::make_tuple(sparse_tokens(early), dense_transitions(early));
             })
        .def(
            "restore_average",
            [](Session& s, int64_t stretches, Vector<double> values, Vector<int32_t> columns, Vector<int64_t> starts,
               Transitions transitions) {
                const Weights& weights = s.model.weights;
                require(stretches >= 0, "stretches must be a count");
                require(int64_t(starts.shape(0)) <= weights.features() + 1 &&
                            int64_t(transitions.shape(2)) <= weights.labels(),
                        "early must not have more features or labels than the model");
                set_weights(s.solver.average().early(), values, columns, starts, transitions);
                s.solver.average().set_stretches(stretches);
            },
            "stretches"_a, "values"_a.noconvert(), "columns"_a.noconvert(), "starts"_a.noconvert(),
            "transitions"_a.noconvert())
        .def_rw("seen_loss", &Session::seen_loss)
        // What the weights, and what is restored besides, do not tell of how far it is; to be read after these.
        .def("snapshot",
             [](Session& s) {
                 larank::SnapshotWriter writer;
                 writer(s.seen_loss, s.solver);
                 return to_numpy(writer.take());
             })
        .def(
            "read_snapshot",
            [](Session& s, Vector<uint8_t> bytes) {
                larank::SnapshotReader reader(bytes.data(), bytes.shape(0));
                reader(s.seen_loss, s.solver);
                reader.end();
            },
            "bytes"_a.noconvert())
        .def_prop_ro("linear", [](const Session& s) { return s.solver.linear(); })
        .def_prop_ro("dual", [](const Session& s) { return s.solver.dual(); })
        .def_prop_ro("half_squared_norm", [](const Session& s) { return s.solver.half_squared_norm(); })
        .def_prop_ro("argmax_calls", [](const Session& s) { return s.solver.argmax_calls(); })
        .def_prop_ro("operations", [](const Session& s) {
            nb::dict counts;
            for (const auto& [operation, count] : s.solver.operations()) counts[operation] = count;
            return counts;
        });
}

}  // namespace

void bind_chains(nb::module_& m) {
    bind_model(m);
    bind_session<LaRankSession>(m, "ChainLaRank")
        .def(
            "__init__",
            [](LaRankSession* self, Model& model, double tau, int64_t n_reprocess, int64_t memory_limit, bool returns,
               uint64_t seed, int64_t max_patterns, bool averages) {
                if (!(tau >= 0)) throw std::invalid_argument("tau must not be negative, got " + std::to_string(tau));
                using Settings = larank::ChainLaRank<Weight>::Settings;
                new (self) LaRankSession(
                    model, Settings{tau, n_reprocess, memory_limit, returns, seed, max_patterns, averages});
            },
            nb::keep_alive<1, 2>(), "model"_a, nb::kw_only(), "tau"_a, "n_reprocess"_a, "memory_limit"_a, "returns"_a,
            "seed"_a, "max_patterns"_a = 0, "averages"_a = false)
        .def_prop_ro("support_patterns", [](const LaRankSession& s) { return s.solver.patterns().size(); })
        .def_prop_ro("support_vectors", &support_vectors)
        .def_prop_ro("random_state", [](const LaRankSession& s) { return s.solver.random_state(); })
        .def_prop_ro("has_rounds", [](const LaRankSession& s) { return s.solver.has_rounds(); })
        .def_prop_ro("has_room_for_rounds", [](const LaRankSession& s) { return s.solver.has_room_for_rounds(); })
        .def(
            "begin_round",
            [](LaRankSession& s, double epsilon, double accuracy) { s.solver.begin_round(epsilon, accuracy); },
            "epsilon"_a, "accuracy"_a)
        .def(
            "optimize_set",
            [](LaRankSession& s, double accuracy, double small) {
                require(s.solver.has_rounds(), "begin_round comes first");
                const nb::gil_scoped_release release;
                return s.solver.optimize_set(accuracy, small);
            },
            "accuracy"_a, "small"_a)
        // What `early` does not have: one number for each output of `state`.
        .def("early_of_outputs",
             [](LaRankSession& s) {
                 std::vector<double> values;
                 s.solver.each_early([&](double early) { values.push_back(early); });
                 return to_numpy(std::move(values));
             })
        .def(
            "restore_early_of_outputs",
            [](LaRankSession& s, Vector<double> values) {
                std::size_t outputs = 0;
                s.solver.each_early([&](double) { ++outputs; });
                require(values.shape(0) == outputs && are_finite(values), "values must be a number for each output");
                const double* next = values.data();
                s.solver.each_early([&](double& early) { early = *next++; });
            },
            "values"_a.noconvert())
        .def("end_rounds", [](LaRankSession& s) { s.solver.end_rounds(); })
        .def("state", &patterns_of)
        .def("restore", &restore_patterns, "linear"_a, "sequences"_a, "ids"_a.noconvert(), "costs"_a.noconvert(),
             "truth"_a.noconvert(), "history"_a.noconvert(), "previous"_a.noconvert(), "remaining"_a.noconvert(),
             "outputs"_a.noconvert(), "alpha"_a.noconvert(), "labels"_a.noconvert());
    bind_session<PerceptronSession>(m, "ChainPerceptron")
        .def(
            "__init__",
            [](PerceptronSession* self, Model& model, const std::string& rule, bool averages) {
                new (self) PerceptronSession(model, named<larank::OnlineRule>(rule), averages);
            },
            nb::keep_alive<1, 2>(), "model"_a, nb::kw_only(), "rule"_a, "averages"_a)
        .def_prop_ro("support_patterns", [](const PerceptronSession&) { return 0; })
        .def_prop_ro("support_vectors", [](const PerceptronSession&) { return 0; })
        .def(
            "restore",
            [](PerceptronSession& s, double linear) {
                require(std::isfinite(linear), "linear must be finite");
                s.solver.restore(linear);
            },
            "linear"_a);
}
