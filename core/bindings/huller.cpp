// The Huller.
#include <nanobind/stl/array.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "bindings/session.hpp"
#include "kernel/huller.hpp"

namespace {

using Products = std::vector<std::array<double, 3>>;
using Begun = std::vector<std::array<int64_t, 3>>;

template <class T>
void bind_huller_of(nb::module_& m, const char* name) {
    using S = Session<larank::Huller<T>>;
    nb::class_<S> bound = bind_session<larank::Huller<T>>(m, name);
    bind_restore(bound);
    bound.def(nb::init<uint64_t, int64_t>(), nb::kw_only(), "seed"_a, "memory_limit"_a)
        .def_prop_ro("objective", [](const S& s) { return s.solver.objective(); })
        .def_prop_ro("estimated_bound", [](const S& s) { return s.solver.estimated_bound(); })
        // Classes, random numbers, and by problem: |X_N|^2, <X_N, X_P>, |X_P|^2; examples averaged, whether that is
        // over.
        .def_prop_rw(
            "state",
            [](const S& s) {
                const larank::HullerState state = s.solver.state();
                return std::make_tuple(state.classes, state.random, state.products, state.begun);
            },
            [](S& s, const std::tuple<int32_t, uint64_t, Products, Begun>& state) {
                const auto& [classes, random, products, begun] = state;
                const std::size_t problems = std::size_t(std::max(2, classes));
                if (classes < s.solver.classes() || products.size() != problems || begun.size() != problems)
                    throw std::invalid_argument("the state must have the classes of the session and all its problems");
                if (!std::all_of(products.begin(), products.end(), are_finite<Products::value_type>))
                    throw std::invalid_argument("the products of the state must be finite");
                s.solver.set_state({classes, random, products, begun});
            });
}

}  // namespace

void bind_huller(nb::module_& m) {
    using larank::HullerCounters;
    bind_struct<HullerCounters>(m, "HullerCounters", "process", &HullerCounters::process, "reprocess",
                                &HullerCounters::reprocess, "insertions", &HullerCounters::insertions, "removals",
                                &HullerCounters::removals);
    bind_huller_of<float>(m, "Huller32");
    bind_huller_of<double>(m, "Huller64");
}
