// The tracking algorithms.
#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>

#include "bindings/choices.hpp"
#include "bindings/session.hpp"
#include "kernel/tracking.hpp"

template <>
struct Choices<larank::Tracking> {
    static constexpr const char* argument = "algorithm";
    static constexpr std::array names{std::pair{"simple", larank::Tracking::simple},
                                      std::pair{"process-reprocess", larank::Tracking::process_reprocess}};
};

namespace {

template <class T>
void bind_tracking_of(nb::module_& m, const char* name) {
    using S = Session<larank::Tracker<T>>;
    bind_session<larank::Tracker<T>>(m, name)
        .def(
            "__init__",
            [](S* self, const std::string& algorithm, int64_t n_steps, uint64_t seed, int64_t memory_limit) {
                if (n_steps < 1) throw std::invalid_argument("n_steps must be at least one");
                new (self) S(named<larank::Tracking>(algorithm), n_steps, seed, memory_limit);
            },
            nb::kw_only(), "algorithm"_a, "n_steps"_a, "seed"_a, "memory_limit"_a)
        .def_prop_ro("sum_of_costs", [](const S& s) { return s.solver.sum_of_costs(); })
        .def_prop_ro("largest_diagonal", [](const S& s) { return s.solver.largest_diagonal(); })
        // By problem: primal, dual, E Delta and the sum of all Delta at the coefficients as they are.
        .def("objectives", [](const S& s) {
            std::vector<double> values;
            for (int32_t p = s.solver.first_problem(); p < s.solver.problems(); ++p) {
                const larank::TrackingObjectives at = s.solver.objectives(p);
                values.insert(values.end(), {at.primal, at.dual, at.expected_increase, at.increases});
            }
            return to_numpy(std::move(values), {std::size_t(s.solver.columns()), 4});
        });
}

}  // namespace

void bind_tracking(nb::module_& m) {
    using larank::TrackingCounters;
    bind_struct<TrackingCounters>(m, "TrackingCounters", "process", &TrackingCounters::process, "reprocess",
                                  &TrackingCounters::reprocess, "steps", &TrackingCounters::steps);
    bind_tracking_of<float>(m, "Tracking32");
    bind_tracking_of<double>(m, "Tracking64");
}
