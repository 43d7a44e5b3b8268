// MCSVM as published.
#include "bindings/arrays.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernel/mcsvm.hpp"

namespace {

template <class Choice, std::size_t count>
Choice named(const char* argument, const std::string& name,
             const std::array<std::pair<const char*, Choice>, count>& choices) {
    for (const auto& [known, choice] : choices)
        if (name == known) return choice;
    throw std::invalid_argument("unknown " + std::string(argument) + " '" + name + "'");
}

larank::McsvmOptions mcsvm_options(const std::string& selection, const std::string& row_solver,
                                   const std::string& cooling, bool active_set, bool cache, double epsilon,
                                   int64_t cache_bytes) {
    using larank::Cooling;
    using larank::RowSolver;
    using larank::Selection;
    return {named<Selection, 2>("selection", selection, {{{"cycle", Selection::cycle}, {"kkt", Selection::kkt}}}),
            named<RowSolver, 2>("row_solver", row_solver,
                                {{{"fixed-point", RowSolver::fixed_point}, {"exact", RowSolver::exact}}}),
            named<Cooling, 4>("cooling", cooling,
                              {{{"none", Cooling::none},
                                {"exponential", Cooling::exponential},
                                {"linear", Cooling::linear},
                                {"logarithmic", Cooling::logarithmic}}}),
            active_set,
            cache,
            epsilon,
            cache_bytes};
}

template <class T>
std::vector<T> copied(Vector<T> values) {
    return {values.data(), values.data() + values.shape(0)};
}

template <class T>
larank::Mcsvm<T>* mcsvm_session(larank::Mcsvm<T>* self, Vector<int32_t> labels, Vector<double> costs,
                                Vector<double> diagonal, Table<double> delta, const larank::McsvmOptions& options) {
    const std::size_t examples = labels.shape(0), classes = delta.shape(0);
    if (examples == 0) throw std::invalid_argument("labels must name at least one example");
    if (costs.shape(0) != examples || diagonal.shape(0) != examples)
        throw std::invalid_argument("labels, costs and diagonal must be equally long");
    if (classes < 2 || delta.shape(1) != classes)
        throw std::invalid_argument("delta must be square, with two classes or more");
    for (std::size_t i = 0; i < examples; ++i) {
        if (labels.data()[i] < 0 || std::size_t(labels.data()[i]) >= classes)
            throw std::invalid_argument("labels must count from 0 to the number of classes less one");
        if (!(diagonal.data()[i] >= 0)) throw std::invalid_argument("diagonal must not be negative");
    }
    return new (self) larank::Mcsvm<T>(copied(labels), copied(costs), copied(diagonal),
                                       {delta.data(), delta.data() + delta.size()}, int64_t(classes), options);
}

template <class T>
nb::ndarray<nb::numpy, double> scores_of(const larank::Mcsvm<T>& solver) {
    std::vector<double> scores;
    for (int64_t i = 0; i < solver.examples(); ++i)
        for (int64_t r = 0; r < solver.classes(); ++r) scores.push_back(solver.score(i, r));
    return to_numpy(std::move(scores), {std::size_t(solver.examples()), std::size_t(solver.classes())});
}

template <class T>
void bind_mcsvm_session(nb::module_& m, const char* name) {
    using Solver = larank::Mcsvm<T>;
    nb::class_<Solver>(m, name)
        .def(
            "__init__",
            [](Solver* self, Vector<int32_t> labels, Vector<double> costs, Vector<double> diagonal, Table<double> delta,
               const std::string& selection, const std::string& row_solver, const std::string& cooling, bool active_set,
               bool cache, double epsilon, int64_t cache_bytes) {
                mcsvm_session(self, labels, costs, diagonal, delta,
                              mcsvm_options(selection, row_solver, cooling, active_set, cache, epsilon, cache_bytes));
            },
            "labels"_a.noconvert(), "costs"_a.noconvert(), "diagonal"_a.noconvert(), "delta"_a.noconvert(),
            nb::kw_only(), "selection"_a, "row_solver"_a, "cooling"_a, "active_set"_a, "cache"_a, "epsilon"_a,
            "cache_bytes"_a)
        .def("run", &Solver::run, "rounds"_a, nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("wanted", &Solver::wanted)
        .def(
            "provide",
            [](Solver& s, Vector<T> row) {
                if (s.wanted() < 0) throw std::logic_error("no row was asked for");
                if (int64_t(row.shape(0)) != s.examples())
                    throw std::invalid_argument("row must have one value per example");
                s.provide(row.data());
            },
            "row"_a.noconvert())
        .def_prop_ro("is_done", &Solver::is_done)
        .def("objectives", &Solver::objectives, nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("accuracy", &Solver::accuracy)
        .def_prop_ro("support_patterns", &Solver::support_patterns)
        .def_prop_ro("cached_rows", &Solver::cached_rows)
        .def_prop_ro("counters", &Solver::counters)
        .def("scores", &scores_of<T>)
        .def("coefficients",
             [](const Solver& s) {
                 return to_numpy(std::vector<double>(s.coefficients()),
                                 {std::size_t(s.examples()), std::size_t(s.classes())});
             })
        .def("violations", [](const Solver& s) {
            std::vector<double> psi;
            for (int64_t i = 0; i < s.examples(); ++i) psi.push_back(s.violation(i));
            return to_numpy(std::move(psi), {std::size_t(s.examples())});
        });
}

}  // namespace

void bind_mcsvm(nb::module_& m) {
    nb::class_<larank::McsvmCounters>(m, "McsvmCounters")
        .def_ro("rounds", &larank::McsvmCounters::rounds)
        .def_ro("kernel_rows", &larank::McsvmCounters::kernel_rows)
        .def_ro("cache_hits", &larank::McsvmCounters::cache_hits)
        .def_ro("fixed_point_iterations", &larank::McsvmCounters::fixed_point_iterations);
    bind_mcsvm_session<float>(m, "Mcsvm32");
    bind_mcsvm_session<double>(m, "Mcsvm64");
}
