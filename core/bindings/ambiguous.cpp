// The SVM under ambiguous supervision, on kernels and on linear features.
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "ambiguous/ambigsvm.hpp"
#include "ambiguous/expansion.hpp"
#include "bindings/linearsession.hpp"
#include "bindings/session.hpp"
#include "kernel/linearmachine.hpp"

namespace {

using larank::AmbigCounters;
using larank::OnlineSums;

template <class T>
using KernelAmbigSVM = Session<larank::AmbigSVM<larank::ExpansionMachine<T>>>;
template <class T>
using LinearAmbigSVM = LinearSession<larank::AmbigSVM<larank::LinearMachine<T>>>;

// Sets in the manner of a CSR matrix: `labels` and `weights` of set n from starts[n] to starts[n + 1].
std::vector<int32_t> numbers_in(larank::CandidateSets& sets, int64_t most_classes, Vector<int64_t> starts,
                                Vector<int32_t> labels, Vector<double> weights, Vector<int64_t> classes) {
    const std::size_t count = classes.shape(0);
    bool is_sound = starts.shape(0) == count + 1 && starts.data()[0] == 0 && labels.shape(0) == weights.shape(0) &&
                    starts.data()[count] == int64_t(labels.shape(0));
    for (std::size_t n = 0; is_sound && n < count; ++n) is_sound = starts.data()[n] <= starts.data()[n + 1];
    if (!is_sound) throw std::invalid_argument("starts must ascend from 0 to the number of labels and weights");
    std::vector<int32_t> numbers;
    for (std::size_t n = 0; n < count; ++n) {
        const int64_t from = starts.data()[n], size = starts.data()[n + 1] - from;
        if (classes.data()[n] > most_classes)
            throw std::invalid_argument("a candidate set must not have more classes than the session");
        numbers.push_back(sets.number_of(labels.data() + from, weights.data() + from, size, classes.data()[n]));
    }
    return numbers;
}

template <class S>
auto number_sets(S& s, Vector<int64_t> starts, Vector<int32_t> labels, Vector<double> weights,
                 Vector<int64_t> classes) {
    return to_numpy(numbers_in(s.solver.sets(), s.solver.classes(), starts, labels, weights, classes));
}

// The same for the sets that the examples of these ids, all there are, have from now on.
template <class S>
auto replace_sets(S& s, Vector<int64_t> ids, Vector<int64_t> starts, Vector<int32_t> labels, Vector<double> weights,
                  Vector<int64_t> classes) {
    larank::CandidateSets fresh;
    std::vector<int32_t> numbers = numbers_in(fresh, s.solver.classes(), starts, labels, weights, classes);
    if (ids.shape(0) != numbers.size()) throw std::invalid_argument("ids must be one per set");
    std::vector<int32_t> slots;
    for (std::size_t n = 0; n < numbers.size(); ++n) slots.push_back(s.solver.table().slot_of(ids.data()[n]));
    if (std::count_if(slots.begin(), slots.end(), [](int32_t slot) { return slot >= 0; }) < s.solver.table().size())
        throw std::invalid_argument("ids must name all support patterns");
    for (std::size_t n = 0; n < numbers.size(); ++n)
        if (slots[n] >= 0) s.solver.table()[slots[n]].label = numbers[n];
    s.solver.sets() = std::move(fresh);
    return to_numpy(std::move(numbers));
}

template <class S>
larank::CandidateSet set_of(const S& s, int32_t number) {
    if (number < 0 || int64_t(number) >= s.solver.sets().size())
        throw std::invalid_argument("there is no candidate set of this number");
    return s.solver.sets()[number];
}

// The way back: starts, labels, weights and classes.
template <class S>
auto sets_of(const S& s, Vector<int32_t> numbers) {
    std::vector<int64_t> starts{0}, classes;
    std::vector<int32_t> labels;
    std::vector<double> weights;
    for (std::size_t n = 0; n < numbers.shape(0); ++n) {
        const larank::CandidateSet set = set_of(s, numbers.data()[n]);
        labels.insert(labels.end(), set.labels, set.labels + set.size);
        weights.insert(weights.end(), set.weights, set.weights + set.size);
        starts.push_back(int64_t(labels.size()));
        classes.push_back(set.classes);
    }
    return std::tuple{to_numpy(std::move(starts)), to_numpy(std::move(labels)), to_numpy(std::move(weights)),
                      to_numpy(std::move(classes))};
}

template <class S>
auto losses(S& s, Table<double> scores, Vector<int32_t> sets) {
    const std::size_t count = sets.shape(0);
    if (scores.shape(0) != count || int64_t(scores.shape(1)) < s.solver.classes())
        throw std::invalid_argument("scores must have a row per set and a column per class");
    std::vector<double> found;
    for (std::size_t n = 0; n < count; ++n) {
        set_of(s, sets.data()[n]);
        found.push_back(s.solver.loss_of(sets.data()[n], scores.data() + n * scores.shape(1)));
    }
    return to_numpy(std::move(found));
}

template <class S>
void bind_ambiguous_session(nb::class_<S>& bound) {
    using State = std::tuple<double, double, double, int64_t, double, double, double, double, uint64_t>;
    bind_objectives(bound);
    bound.def("add_class", [](S& s) { s.solver.add_class(); })
        .def("number_sets", &number_sets<S>, "starts"_a.noconvert(), "labels"_a.noconvert(), "weights"_a.noconvert(),
             "classes"_a.noconvert())
        .def("replace_sets", &replace_sets<S>, "ids"_a.noconvert(), "starts"_a.noconvert(), "labels"_a.noconvert(),
             "weights"_a.noconvert(), "classes"_a.noconvert())
        .def("sets", &sets_of<S>, "numbers"_a.noconvert())
        .def("losses", &losses<S>, "scores"_a.noconvert(), "sets"_a.noconvert())
        .def_prop_ro("online", [](const S& s) { return s.solver.online(); })
        .def_prop_rw(
            "state",
            [](const S& s) {
                const larank::AmbigState at = s.solver.state();
                const OnlineSums& o = at.online;
                return State{at.dual,         at.linear, at.loss,   o.examples, o.costs,
                             o.squared_costs, o.losses,  o.largest, at.random};
            },
            [](S& s, const State& state) {
                const auto& [dual, linear, loss, examples, costs, squared_costs, losses, largest, random] = state;
                if (!are_finite(std::array{dual, linear, loss, costs, squared_costs, losses, largest}))
                    throw std::invalid_argument("the state must be of finite numbers");
                s.solver.set_state({dual, linear, loss, {examples, costs, squared_costs, losses, largest}, random});
            });
}

template <class T>
void bind_kernel(nb::module_& m, const char* name) {
    using S = KernelAmbigSVM<T>;
    nb::class_<S> bound = bind_session<larank::AmbigSVM<larank::ExpansionMachine<T>>>(m, name);
    bind_restore(bound);
    bind_ambiguous_session(bound);
    bound.def(
        "__init__",
        [](S* self, int64_t n_reprocess, uint64_t seed, int64_t memory_limit) {
            new (self) S(n_reprocess, seed, memory_limit, n_reprocess > 0);
        },
        nb::kw_only(), "n_reprocess"_a, "seed"_a, "memory_limit"_a);
}

template <class T>
void bind_linear(nb::module_& m, const char* name) {
    using S = LinearAmbigSVM<T>;
    nb::class_<S> bound = bind_linear_session<S>(m, name);
    bind_ambiguous_session(bound);
    bound.def(
        "__init__",
        [](S* self, int64_t n_reprocess, uint64_t seed, int64_t features) {
            new (self) S(n_reprocess, seed, features);
        },
        nb::kw_only(), "n_reprocess"_a, "seed"_a, "features"_a);
}

}  // namespace

void bind_ambiguous(nb::module_& m) {
    bind_struct<AmbigCounters>(m, "AmbigCounters", "process_new", &AmbigCounters::process_new, "reprocess",
                               &AmbigCounters::reprocess, "steps", &AmbigCounters::steps);
    bind_struct<OnlineSums>(m, "OnlineSums", "examples", &OnlineSums::examples, "costs", &OnlineSums::costs,
                            "squared_costs", &OnlineSums::squared_costs, "losses", &OnlineSums::losses, "largest",
                            &OnlineSums::largest);
    bind_kernel<float>(m, "KernelAmbigSVM32");
    bind_kernel<double>(m, "KernelAmbigSVM64");
    bind_linear<float>(m, "LinearAmbigSVM32");
    bind_linear<double>(m, "LinearAmbigSVM64");
}
