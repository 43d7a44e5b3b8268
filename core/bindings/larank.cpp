// LaRank on kernels and on linear features, and the active set on kernels.
#include "bindings/larank.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>

#include "bindings/choices.hpp"
#include "bindings/lists.hpp"
#include "memory/heap.hpp"

template <>
struct Choices<larank::ScheduleKind> {
    static constexpr const char* argument = "schedule";
    static constexpr std::array names{std::pair{"adaptive", larank::ScheduleKind::adaptive},
                                      std::pair{"fixed", larank::ScheduleKind::fixed}};
};
template <>
struct Choices<larank::Forget> {
    static constexpr const char* argument = "forget";
    static constexpr std::array names{std::pair{"least", larank::Forget::least},
                                      std::pair{"oldest", larank::Forget::oldest}};
};
template <>
struct Choices<larank::Operation> {
    static constexpr const char* argument = "operations";
    static constexpr std::array names{std::pair{"new", larank::Operation::process_new},
                                      std::pair{"old", larank::Operation::process_old},
                                      std::pair{"optimize", larank::Operation::optimize}};
};

namespace {

using Names = std::vector<std::string>;

larank::LaRankOptions options_of(const std::string& schedule, int64_t n_reprocess, const Names& operations, double tau,
                                 uint64_t seed, int64_t max_patterns, const std::string& forget) {
    larank::ScheduleOptions options{named<larank::ScheduleKind>(schedule), n_reprocess, {false, false, false}};
    for (const std::string& operation : operations)
        options.allowed[std::size_t(named<larank::Operation>(operation))] = true;
    return {options, tau, seed, {max_patterns, named<larank::Forget>(forget)}};
}

template <class S>
nb::class_<S> bind_larank_session(nb::class_<S> bound) {
    bind_objectives(bound);
    bound.def("go_on", [](S& s) { s.solver.go_on(); })
        .def("add_class", [](S& s) { s.solver.machine().add_class(); })
        .def(
            "set_tau", [](S& s, double tau) { s.solver.steps().set_tau(tau); }, "tau"_a)
        .def(
            "set_margins",
            [](S& s, Table<double> margins) {
                if (margins.shape(0) != margins.shape(1)) throw std::invalid_argument("margins must be square");
                s.solver.steps().set_margins({margins.data(), margins.data() + margins.size()},
                                             int64_t(margins.shape(0)));
            },
            "margins"_a.noconvert())
        .def_prop_rw(
            "state",
            [](const S& s) {
                const larank::LaRankState state = s.solver.state();
                return std::make_tuple(state.dual, state.linear, state.loss, state.rates, state.random);
            },
            [](S& s, std::tuple<double, double, double, std::array<double, 3>, uint64_t> state) {
                const auto& [dual, linear, loss, rates, random] = state;
                if (!are_finite(std::array{dual, linear, loss}) || !are_finite(rates) ||
                    *std::min_element(rates.begin(), rates.end()) < 0)
                    throw std::invalid_argument(
                        "the state must be of finite numbers, and of rates that are not negative");
                s.solver.set_state({dual, linear, loss, rates, random});
            });
    return bound;
}

template <class S>
void check_slots(const S& s, const std::vector<int32_t>& slots) {
    const larank::SupportTable& table = s.solver.table();
    for (const int32_t slot : slots)
        if (slot < 0 || slot >= table.slots() || !table.contains(slot))
            throw std::invalid_argument("slots must be those of members");
}

// Scores of all classes, row by row, and the numbers of those whose rows of kernel values are not here.
template <class T>
auto member_scores(KernelLaRank<T>& s, const nb::sequence& members) {
    const std::vector<int32_t> slots = items_of<int32_t>(members);
    check_slots(s, slots);
    auto& machine = s.solver.machine();
    const std::size_t classes = std::size_t(machine.classes()), count = slots.size();
    std::vector<double> scores(count * classes);
    std::vector<int32_t> lacking;
    {
        const nb::gil_scoped_release release;
        std::vector<double> of_all;
        const bool are_all_here = machine.scores_of_all(of_all);
        const std::size_t width = std::size_t(machine.table().slots());
        for (std::size_t n = 0; n < count; ++n)
            if (are_all_here)
                for (std::size_t y = 0; y < classes; ++y)
                    scores[n * classes + y] = of_all[y * width + std::size_t(slots[n])];
            else if (machine.has_row(slots[n]))
                machine.scores_of_old(slots[n], scores.data() + n * classes);
            else
                lacking.push_back(int32_t(n));
    }
    return std::pair{to_numpy(std::move(scores), {count, classes}), lacking};
}

template <class T>
void set_costs(KernelLaRank<T>& s, Vector<double> costs) {
    larank::SupportTable& table = s.solver.table();
    for (const int32_t slot : table.present())
        if (table[slot].id < 0 || table[slot].id >= int64_t(costs.shape(0)))
            throw std::invalid_argument("costs must have an entry for every example");
    table.set_costs(costs.data());
}

template <class T>
void bind_kernel_larank(nb::module_& m, const char* name) {
    using S = KernelLaRank<T>;
    using Solver = MulticlassSolver<larank::KernelMachine<T>>;
    nb::class_<S> bound = bind_larank_session(bind_session<Solver>(m, name));
    bind_restore(bound);
    bind_decide(bound, [](const Solver& solver, const T* kernel, double* f) { solver.machine().scores_of(kernel, f); });
    bound
        .def(
            "__init__",
            [](S* self, const std::string& schedule, int64_t n_reprocess, const Names& operations, double tau,
               uint64_t seed, int64_t memory_limit, bool averages, int64_t max_patterns, const std::string& forget) {
                new (self) S(options_of(schedule, n_reprocess, operations, tau, seed, max_patterns, forget),
                             memory_limit, averages);
            },
            nb::kw_only(), "schedule"_a, "n_reprocess"_a, "operations"_a, "tau"_a, "seed"_a, "memory_limit"_a,
            "averages"_a = false, "max_patterns"_a = 0, "forget"_a = "least")
        .def_prop_ro("averages", [](const S& s) { return s.solver.machine().averages(); })
        .def(
            "model_half_squared_norm",
            [](S& s, nb::handle source) {
                return s.work(source, [](Solver& solver) { return solver.machine().model_squared_norm() / 2; });
            },
            "source"_a)
        .def("process_new_only", [](S& s) { s.solver.process_new_only(); })
        // The margin below which an example of either of two classes is a violating one.
        .def_prop_ro("reach", [](const S&) { return 1.0; })
        // The active set.
        .def(
            "admit",
            [](S& s, int64_t count) {
                s.fed.check(count);
                const nb::gil_scoped_release release;
                s.solver.active_set.admit(count);
            },
            "count"_a)
        .def(
            "converge",
            [](S& s, int64_t visits, nb::handle source) {
                return s.work(source, [visits](Solver& solver) { return solver.active_set.converge(visits); });
            },
            "visits"_a, "source"_a)
        .def(
            "widen",
            [](S& s, const nb::sequence& members, nb::handle source) {
                const std::vector<int32_t> slots = items_of<int32_t>(members);
                check_slots(s, slots);
                s.work(source, [&slots](Solver& solver) { solver.active_set.widen(slots); });
            },
            "slots"_a, "source"_a)
        .def(
            "set_coefficients",
            [](S& s, const nb::sequence& members, Table<double> values, nb::handle source) {
                const std::vector<int32_t> slots = items_of<int32_t>(members);
                if (values.shape(0) != slots.size() || int64_t(values.shape(1)) != s.solver.machine().classes())
                    throw std::invalid_argument("values must have a row per slot and a column per class");
                check_slots(s, slots);
                s.work(source, [&](Solver& solver) { solver.active_set.set_coefficients(slots, values.data()); });
            },
            "slots"_a, "values"_a.noconvert(), "source"_a)
        .def_prop_ro("support_vectors", [](const S& s) { return s.solver.table().vectors(); })
        .def(
            "finish_some",
            [](S& s, int64_t visits, nb::handle source) {
                return s.work(source, [visits](auto& solver) { return solver.finish(visits); });
            },
            "visits"_a, "source"_a)
        .def("prune", [](S& s) { s.solver.active_set.prune(); })
        .def(
            "set_formulation",
            [](S& s, const std::string& formulation) {
                s.solver.steps().set_formulation(named<larank::Formulation>(formulation));
            },
            "formulation"_a)
        .def("set_costs", &set_costs<T>, "costs"_a.noconvert())
        .def("member_scores", &member_scores<T>, "slots"_a);
}

// Weights as `averaged_weights` gives them, and how many examples they are an average of.
template <class T>
void set_average(LinearLaRank<T>& s, Table<T> weights, int64_t examples) {
    auto& machine = s.solver.machine();
    const int64_t classes = machine.classes(), rows = machine.weight_rows(), lanes = machine.lanes();
    if (!machine.averages() || examples < 1)
        throw std::invalid_argument("an average is of examples, in a session that averages");
    if (int64_t(weights.shape(0)) != classes || int64_t(weights.shape(1)) != rows || classes == 0)
        throw std::invalid_argument("weights must have a row per class and a column per feature");
    larank::AlignedArray<T> by_feature(rows * lanes);
    for (int64_t j = 0; j < rows; ++j)
        for (int64_t y = 0; y < classes; ++y) by_feature.data()[j * lanes + y] = weights.data()[y * rows + j];
    machine.set_average(std::move(by_feature), examples);
}

template <class T>
void bind_linear_larank(nb::module_& m, const char* name) {
    using S = LinearLaRank<T>;
    nb::class_<S> bound = bind_larank_session(bind_linear_session<S>(m, name));
    bound.def(
        "finish_some", [](S& s, int64_t visits) { return s.solver.finish(visits); }, "visits"_a,
        nb::call_guard<nb::gil_scoped_release>());
    bound.def(
        "__init__",
        [](S* self, const std::string& schedule, int64_t n_reprocess, const Names& operations, double tau,
           uint64_t seed, int64_t features, bool intercept, bool averages, int64_t max_patterns,
           const std::string& forget) {
            new (self) S(options_of(schedule, n_reprocess, operations, tau, seed, max_patterns, forget), features,
                         intercept, averages);
        },
        nb::kw_only(), "schedule"_a, "n_reprocess"_a, "operations"_a, "tau"_a, "seed"_a, "features"_a, "intercept"_a,
        "averages"_a = false, "max_patterns"_a = 0, "forget"_a = "least");
    bound.def_prop_ro("averages", [](const S& s) { return s.solver.machine().averages(); })
        .def("averaged_weights",
             [](const S& s) { return weights_of(s.solver.machine(), s.solver.machine().averaged_weights()); })
        .def("set_average", &set_average<T>, "weights"_a.noconvert(), "examples"_a);
}

auto excess_and_loss(Table<double> scores, Vector<int32_t> labels, Table<double> delta, Vector<int64_t> rows,
                     double scale, const std::string& formulation) {
    const int64_t examples = int64_t(scores.shape(0)), classes = int64_t(scores.shape(1));
    if (int64_t(labels.shape(0)) != examples) throw std::invalid_argument("labels must be one per row of scores");
    if (int64_t(delta.shape(0)) != classes || int64_t(delta.shape(1)) != classes)
        throw std::invalid_argument("delta must have one row and column per class");
    const auto kind = named<larank::Formulation>(formulation);
    const std::size_t count = rows.shape(0);
    std::vector<double> largest(count), losses(count);
    for (std::size_t n = 0; n < count; ++n) {
        const int64_t i = rows.data()[n];
        if (i < 0 || i >= examples || labels.data()[i] < 0 || labels.data()[i] >= classes)
            throw std::invalid_argument("rows and labels must be in range");
        const larank::Excess at =
            larank::excess_of(scores.data() + i * classes, classes, labels.data()[i], delta.data(), scale, kind);
        largest[n] = at.largest, losses[n] = at.loss;
    }
    return std::pair{to_numpy(std::move(largest)), to_numpy(std::move(losses))};
}

}  // namespace

void bind_larank(nb::module_& m) {
    using larank::StepCounters;
    bind_struct<StepCounters>(m, "StepCounters", "operations", &StepCounters::operations, "steps", &StepCounters::steps,
                              "finishing_steps", &StepCounters::finishing_steps, "argmax", &StepCounters::argmax,
                              "forgotten", &StepCounters::forgotten, "selection_seconds",
                              &StepCounters::selection_seconds, "step_seconds", &StepCounters::step_seconds);
    // What was freed goes back to the system, where the heap can do that.
    m.def("trim_heap", &larank::trim_heap);
    m.def("excess_and_loss", &excess_and_loss, "scores"_a.noconvert(), "labels"_a.noconvert(), "delta"_a.noconvert(),
          "rows"_a.noconvert(), "scale"_a, "formulation"_a);
    bind_kernel_larank<float>(m, "KernelLaRank32");
    bind_kernel_larank<double>(m, "KernelLaRank64");
    bind_linear_larank<float>(m, "LinearLaRank32");
    bind_linear_larank<double>(m, "LinearLaRank64");
}
