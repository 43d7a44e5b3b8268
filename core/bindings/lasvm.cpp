// LaSVM on blocks of kernel values.
#include "kernel/lasvm.hpp"
#include "bindings/session.hpp"

namespace {

template <class T>
void bind_lasvm_of(nb::module_& m, const char* name) {
    using Solver = larank::LaSVM<T>;
    using S = Session<Solver>;
    const auto by_problem = [](const Solver& solver, double (Solver::*value)(std::size_t) const) {
        std::vector<double> values;
        for (std::size_t p = 0; p < std::size_t(solver.columns()); ++p) values.push_back((solver.*value)(p));
        return to_numpy(std::move(values));
    };
    nb::class_<S> bound = bind_session<Solver>(m, name);
    bind_restore(bound);
    bind_objectives(bound);
    bind_decide(bound, [](const Solver& solver, const T* kernel, double* f) { solver.decide(kernel, f); });
    bound
        .def(
            "__init__",
            [](S* self, double tau, double delta_max, int64_t memory_limit) {
                new (self) S(larank::LaSVMOptions{tau, delta_max}, memory_limit);
            },
            nb::kw_only(), "tau"_a, "delta_max"_a, "memory_limit"_a)
        .def(
            "finish_some",
            [](S& s, int64_t steps, nb::handle source) {
                return s.work(source, [steps](Solver& solver) { return solver.finish(steps); });
            },
            "steps"_a, "source"_a)
        .def("take_over_finish", [](S& s) { s.solver.take_over_finish(); })
        .def("go_on", [](S& s) { s.solver.go_on(); })
        .def("add_class", [](S& s) { s.solver.add_class(); })
        .def_prop_ro("reach", [](const S& s) { return s.solver.reach(); })
        .def_prop_ro(
            "bias", [by_problem](const S& s) { return by_problem(s.solver, &Solver::bias); }, nb::rv_policy::move)
        .def_prop_ro(
            "delta", [by_problem](const S& s) { return by_problem(s.solver, &Solver::delta); }, nb::rv_policy::move);
}

}  // namespace

void bind_lasvm(nb::module_& m) {
    using larank::LaSVMCounters;
    bind_struct<LaSVMCounters>(m, "LaSVMCounters", "process", &LaSVMCounters::process, "reprocess",
                               &LaSVMCounters::reprocess, "steps", &LaSVMCounters::steps, "finishing_steps",
                               &LaSVMCounters::finishing_steps);
    bind_lasvm_of<float>(m, "LaSVM32");
    bind_lasvm_of<double>(m, "LaSVM64");
}
