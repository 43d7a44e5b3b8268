// MCSVM as published.
#include <nanobind/stl/string.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "bindings/choices.hpp"
#include "bindings/session.hpp"
#include "kernel/mcsvm.hpp"

template <>
struct Choices<larank::Selection> {
    static constexpr const char* argument = "selection";
    static constexpr std::array names{std::pair{"cycle", larank::Selection::cycle},
                                      std::pair{"kkt", larank::Selection::kkt}};
};
template <>
struct Choices<larank::RowSolver> {
    static constexpr const char* argument = "row_solver";
    static constexpr std::array names{std::pair{"fixed-point", larank::RowSolver::fixed_point},
                                      std::pair{"exact", larank::RowSolver::exact}};
};
template <>
struct Choices<larank::Cooling> {
    static constexpr const char* argument = "cooling";
    static constexpr std::array names{
        std::pair{"none", larank::Cooling::none}, std::pair{"exponential", larank::Cooling::exponential},
        std::pair{"linear", larank::Cooling::linear}, std::pair{"logarithmic", larank::Cooling::logarithmic}};
};

namespace {

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
        if (!std::isfinite(diagonal.data()[i])) throw std::invalid_argument("diagonal must be finite");
    }
    return new (self) larank::Mcsvm<T>(copied(labels), copied(costs), copied(diagonal),
                                       {delta.data(), delta.data() + delta.size()}, int64_t(classes), options);
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
                              {named<larank::Selection>(selection), named<larank::RowSolver>(row_solver),
                               named<larank::Cooling>(cooling), active_set, cache, epsilon, cache_bytes});
            },
            "labels"_a.noconvert(), "costs"_a.noconvert(), "diagonal"_a.noconvert(), "delta"_a.noconvert(),
            nb::kw_only(), "selection"_a, "row_solver"_a, "cooling"_a, "active_set"_a, "cache"_a, "epsilon"_a,
            "cache_bytes"_a)
        // The source's rows are those of examples, with all of them.
        .def(
            "run",
            [](Solver& s, int64_t rounds, nb::handle source) {
                PythonSource<T> asked(source);
                const nb::gil_scoped_release release;
                s.run(rounds, asked);
            },
            "rounds"_a, "source"_a)
        .def_prop_ro("is_done", &Solver::is_done)
        .def("objectives", &Solver::objectives, nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("support_patterns", &Solver::support_patterns)
        .def_prop_ro("counters", &Solver::counters)
        .def("coefficients", [](const Solver& s) {
            return to_numpy(std::vector<double>(s.coefficients()),
                            {std::size_t(s.examples()), std::size_t(s.classes())});
        });
}

}  // namespace

void bind_mcsvm(nb::module_& m) {
    using larank::McsvmCounters;
    bind_struct<McsvmCounters>(m, "McsvmCounters", "rounds", &McsvmCounters::rounds, "kernel_rows",
                               &McsvmCounters::kernel_rows, "cache_hits", &McsvmCounters::cache_hits,
                               "fixed_point_iterations", &McsvmCounters::fixed_point_iterations);
    bind_mcsvm_session<float>(m, "Mcsvm32");
    bind_mcsvm_session<double>(m, "Mcsvm64");
}
