// Kernel perceptrons.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <stdexcept>
#include <tuple>

#include "bindings/choices.hpp"
#include "bindings/session.hpp"
#include "kernel/perceptron.hpp"

template <>
struct Choices<larank::StepLoss> {
    static constexpr const char* argument = "loss";
    static constexpr std::array names{std::pair{"hinge", larank::StepLoss::hinge},
                                      std::pair{"squared_hinge", larank::StepLoss::squared_hinge}};
};

namespace {

using larank::PerceptronCounters;
using State = std::tuple<int64_t, int64_t, int64_t, int64_t>;

template <class T, class Rule>
auto bind_perceptron_of(nb::module_& m, const char* name) {
    using S = Session<larank::Perceptron<T, Rule>>;
    nb::class_<S> bound = bind_session<larank::Perceptron<T, Rule>>(m, name);
    bind_restore(bound);
    bound
        .def("split_column", [](S& s) { s.solver.split_column(); })
        // What was added to the coefficients of the table, each time as often as there were functions before.
        .def_prop_rw(
            "early", [](const S& s) { return to_numpy(s.solver.early()); },
            [](S& s, Vector<double> sums) {
                if (int64_t(sums.shape(0)) != s.solver.table().vectors())
                    throw std::invalid_argument("early must have one number per coefficient");
                if (!are_finite(sums)) throw std::invalid_argument("early must be finite");
                s.solver.set_early(sums.data());
            },
            nb::rv_policy::move)
        // The counters, which are all that it must remember beside the table.
        .def_prop_rw(
            "state",
            [](const S& s) {
                const PerceptronCounters& c = s.solver.counters();
                return State(c.visits, c.mistakes, c.updates, c.removals);
            },
            [](S& s, const State& c) {
                s.solver.set_counters({std::get<0>(c), std::get<1>(c), std::get<2>(c), std::get<3>(c)});
            });
    return bound;
}

template <class T>
void bind_plain(nb::module_& m, const char* name) {
    using Solver = larank::Perceptron<T, larank::PerceptronRule>;
    bind_perceptron_of<T, larank::PerceptronRule>(m, name).def(
        "__init__",
        [](Session<Solver>* self, double margin, std::optional<int64_t> budget, int64_t memory_limit) {
            new (self)
                Session<Solver>(larank::PerceptronRule{margin}, budget.value_or(Solver::no_budget), memory_limit);
        },
        nb::kw_only(), "margin"_a, "budget"_a.none(), "memory_limit"_a);
}

template <class T>
void bind_passive_aggressive(nb::module_& m, const char* name) {
    using Solver = larank::Perceptron<T, larank::PassiveAggressiveRule>;
    bind_perceptron_of<T, larank::PassiveAggressiveRule>(m, name).def(
        "__init__",
        [](Session<Solver>* self, const std::string& loss, int64_t memory_limit) {
            const larank::PassiveAggressiveRule rule{named<larank::StepLoss>(loss)};
            new (self) Session<Solver>(rule, Solver::no_budget, memory_limit);
        },
        nb::kw_only(), "loss"_a, "memory_limit"_a);
}

}  // namespace

void bind_perceptrons(nb::module_& m) {
    bind_struct<PerceptronCounters>(m, "PerceptronCounters", "visits", &PerceptronCounters::visits, "mistakes",
                                    &PerceptronCounters::mistakes, "updates", &PerceptronCounters::updates, "removals",
                                    &PerceptronCounters::removals);
    bind_plain<float>(m, "KernelPerceptron32");
    bind_plain<double>(m, "KernelPerceptron64");
    bind_passive_aggressive<float>(m, "KernelPassiveAggressive32");
    bind_passive_aggressive<double>(m, "KernelPassiveAggressive64");
}
