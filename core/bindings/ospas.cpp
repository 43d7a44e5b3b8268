// OSPAS on batches of sentences: words with binary features, and bags of labels.
#include "ambiguous/ospas.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/choices.hpp"

template <>
struct Choices<larank::Exploration> {
    static constexpr const char* argument = "strategy";
    static constexpr std::array names{std::pair{"random", larank::Exploration::random},
                                      std::pair{"left-right", larank::Exploration::left_right},
                                      std::pair{"order-free", larank::Exploration::order_free}};
};

template <>
struct Choices<larank::TakesStep> {
    static constexpr const char* argument = "update";
    static constexpr std::array names{std::pair{"mistake", larank::TakesStep::at_mistakes},
                                      std::pair{"margin", larank::TakesStep::at_losses}};
};

namespace {

using larank::BinaryRows;
using larank::Ospas;
using larank::OspasCounters;
using larank::OspasOnline;

void require(bool holds, const char* otherwise) {
    if (!holds) throw std::invalid_argument(otherwise);
}

// Whether starts go from 0 to `end` and never back.
bool ascends(Vector<int64_t> starts, int64_t end) {
    const int64_t* const first = starts.data();
    const std::size_t count = starts.shape(0);
    return count > 0 && first[0] == 0 && first[count - 1] == end && std::is_sorted(first, first + count);
}

BinaryRows rows_of(const Ospas& model, Vector<int64_t> indptr, Vector<int32_t> indices) {
    require(ascends(indptr, int64_t(indices.shape(0))), "indptr must ascend from 0 to the number of indices");
    for (std::size_t k = 0; k + 1 < indptr.shape(0); ++k)
        for (int64_t j = indptr.data()[k]; j < indptr.data()[k + 1]; ++j)
            require(indices.data()[j] >= 0 && indices.data()[j] < model.weights().features() &&
                        (j == indptr.data()[k] || indices.data()[j - 1] < indices.data()[j]),
                    "the indices of a word must ascend, from 0 to features - 1");
    return {indptr.data(), indices.data()};
}

void check_labels(const Ospas& model) { require(model.weights().labels() > 0, "there must be a label: call grow"); }

// The sentences [first, end); sentence i has the words from starts[i] and the bag from bag_starts[i].
void learn(Ospas& model, Vector<int64_t> starts, Vector<int64_t> indptr, Vector<int32_t> indices, Vector<int32_t> keys,
           Vector<int64_t> bag_starts, Vector<int32_t> bag_keys, Vector<int32_t> bag_labels, int64_t first,
           int64_t end) {
    const BinaryRows rows = rows_of(model, indptr, indices);
    check_labels(model);
    require(ascends(starts, int64_t(indptr.shape(0)) - 1), "starts must ascend from 0 to the number of words");
    require(keys.shape(0) + 1 == indptr.shape(0), "keys must be one per word");
    require(bag_starts.shape(0) == starts.shape(0) && ascends(bag_starts, int64_t(bag_labels.shape(0))),
            "bag_starts must be as many as starts, and ascend from 0 to the number of bag_labels");
    require(bag_keys.shape(0) == bag_labels.shape(0), "bag_keys and bag_labels must be as many");
    for (std::size_t n = 0; n < bag_labels.shape(0); ++n)
        require(bag_labels.data()[n] >= 0 && bag_labels.data()[n] < model.weights().labels(),
                "bag_labels must be from 0 to labels - 1");
    require(0 <= first && first <= end && end < int64_t(starts.shape(0)), "first and end must be sentences");
    nb::gil_scoped_release release;
    for (int64_t i = first; i < end; ++i) {
        const int64_t bag = bag_starts.data()[i];
        model.learn({rows, starts.data()[i], starts.data()[i + 1], keys.data(), bag_keys.data() + bag,
                     bag_labels.data() + bag, bag_starts.data()[i + 1] - bag});
    }
}

// The label of each word, -1 where it has none.
auto predict(const Ospas& model, Vector<int64_t> indptr, Vector<int32_t> indices) {
    const BinaryRows rows = rows_of(model, indptr, indices);
    check_labels(model);
    std::vector<int32_t> labels(indptr.shape(0) - 1);
    std::vector<double> scores(std::size_t(model.weights().labels()));
    {
        nb::gil_scoped_release release;
        for (std::size_t k = 0; k < labels.size(); ++k) {
            model.weights().scores(rows, int64_t(k), scores.data());
            labels[k] = model.weights().best(scores.data()).first;
        }
    }
    return to_numpy(std::move(labels));
}

// A row of all labels per word.
auto scores(const Ospas& model, Vector<int64_t> indptr, Vector<int32_t> indices) {
    const BinaryRows rows = rows_of(model, indptr, indices);
    const std::size_t words = indptr.shape(0) - 1, labels = std::size_t(model.weights().labels());
    std::vector<double> found(words * labels);
    {
        nb::gil_scoped_release release;
        for (std::size_t k = 0; k < words; ++k) model.weights().scores(rows, int64_t(k), found.data() + k * labels);
    }
    return to_numpy(std::move(found), {words, labels});
}

void grow(Ospas& model, int64_t features, int64_t labels) {
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    require(features >= 0 && features <= most && labels >= 0 && labels <= most, "features and labels must be counts");
    model.grow(features, labels);
}

auto weights_of(const Ospas& model) {
    const std::size_t features = std::size_t(model.weights().features()),
                      labels = std::size_t(model.weights().labels());
    std::vector<double> values(features * labels);
    for (std::size_t f = 0; f < features; ++f)
        std::copy_n(model.weights().row(int64_t(f)), labels, values.data() + f * labels);
    return to_numpy(std::move(values), {features, labels});
}

void set_weights(Ospas& model, Table<double> values) {
    const std::size_t features = values.shape(0), labels = values.shape(1);
    require(are_finite(values), "weights must be finite");
    grow(model, int64_t(features), int64_t(labels));
    for (std::size_t f = 0; f < features; ++f)
        std::copy_n(values.data() + f * labels, labels, model.weights().row(int64_t(f)));
}

using State = std::tuple<int64_t, int64_t, int64_t, int64_t, double, double, uint64_t>;

State state_of(const Ospas& model) {
    const auto [counters, online, random] = model.state();
    return {counters.sentences, counters.words, counters.mistakes, counters.updates, online.losses,
            online.largest,     random};
}

void set_state(Ospas& model, const State& state) {
    const auto& [sentences, words, mistakes, updates, losses, largest, random] = state;
    require(std::min({sentences, words, mistakes, updates}) >= 0 && std::isfinite(losses) && std::isfinite(largest),
            "the state must be of counts and finite sums");
    model.set_state({{sentences, words, mistakes, updates}, {losses, largest}, random});
}

}  // namespace

void bind_ospas(nb::module_& m) {
    bind_struct<OspasCounters>(m, "OspasCounters", "sentences", &OspasCounters::sentences, "words",
                               &OspasCounters::words, "mistakes", &OspasCounters::mistakes, "updates",
                               &OspasCounters::updates);
    bind_struct<OspasOnline>(m, "OspasOnline", "losses", &OspasOnline::losses, "largest", &OspasOnline::largest);
    nb::class_<Ospas>(m, "Ospas")
        .def(
            "__init__",
            [](Ospas* self, double C, const std::string& strategy, const std::string& update, uint64_t seed) {
                new (self) Ospas(C, named<larank::Exploration>(strategy), named<larank::TakesStep>(update), seed);
            },
            nb::kw_only(), "C"_a, "strategy"_a, "update"_a, "seed"_a)
        .def("grow", &grow, "features"_a, "labels"_a)
        .def("learn", &learn, "starts"_a.noconvert(), "indptr"_a.noconvert(), "indices"_a.noconvert(),
             "keys"_a.noconvert(), "bag_starts"_a.noconvert(), "bag_keys"_a.noconvert(), "bag_labels"_a.noconvert(),
             "first"_a, "end"_a)
        .def("predict", &predict, "indptr"_a.noconvert(), "indices"_a.noconvert())
        .def("scores", &scores, "indptr"_a.noconvert(), "indices"_a.noconvert())
        .def_prop_ro("C", &Ospas::C)
        .def_prop_ro("features", [](const Ospas& model) { return model.weights().features(); })
        .def_prop_ro("labels", [](const Ospas& model) { return model.weights().labels(); })
        .def_prop_ro("bytes", [](const Ospas& model) { return model.weights().bytes(); })
        .def_prop_ro("counters", [](const Ospas& model) { return model.counters(); })
        .def_prop_ro("online", [](const Ospas& model) { return model.online(); })
        .def_prop_rw("weights", &weights_of, &set_weights, nb::for_getter(nb::rv_policy::move))
        .def_prop_rw("state", &state_of, &set_state);
}
