// The tracking algorithms.
#include "bindings/arrays.hpp"
#include "bindings/sessions.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <tuple>

#include "kernel/tracking.hpp"

namespace {

larank::Tracking algorithm_named(const std::string& name) {
    if (name == "simple") return larank::Tracking::simple;
    if (name == "process-reprocess") return larank::Tracking::process_reprocess;
    throw std::invalid_argument("unknown algorithm '" + name + "'");
}

template <class T>
class TrackingSession {
  public:
    TrackingSession(larank::Tracking algorithm, int64_t n_steps, uint64_t seed, int64_t memory_limit)
        : solver(algorithm, n_steps, seed, memory_limit) {}
    TrackingSession(const TrackingSession&) = delete;

    void feed(KernelBlock<T> kernel, Table<T> within, Vector<int64_t> ids, Vector<int32_t> labels, Vector<double> costs,
              Vector<double> diagonal) {
        for (std::size_t i = 0; i < costs.shape(0); ++i)
            if (!(costs.data()[i] > 0)) throw std::invalid_argument("costs must be above zero");
        const auto [block, examples] = fed_.keep(kernel, within, ids, labels, costs, diagonal);
        nb::gil_scoped_release release;
        solver.feed(block, examples);
    }

    bool run(int64_t end) {
        fed_.check(end);
        return solver.run(end);
    }

    void provide(const std::vector<int32_t>& slots, Table<T> rows) {
        if (rows.shape(0) != slots.size() || int64_t(rows.shape(1)) != solver.table().slots())
            throw std::invalid_argument("rows must have one row per slot asked for and one column per slot");
        for (std::size_t n = 0; n < slots.size(); ++n) solver.provide(slots[n], rows.data() + n * rows.shape(1));
    }

    // A column per problem, a row per example in the order of arrival.
    template <class Value>
    nb::ndarray<nb::numpy, double> columns(Value value) const {
        const std::size_t examples = std::size_t(solver.examples());
        const std::size_t problems = std::size_t(solver.problems() - solver.first_problem());
        std::vector<double> values;
        values.reserve(examples * problems);
        for (int32_t i = 0; i < int32_t(examples); ++i)
            for (int32_t p = solver.first_problem(); p < solver.problems(); ++p) values.push_back(value(p, i));
        return to_numpy(std::move(values), {examples, problems});
    }

    larank::Tracker<T> solver;

  private:
    FedBlock<T> fed_;
};

template <class T>
void bind_tracking_session(nb::module_& m, const char* name) {
    using Session = TrackingSession<T>;
    nb::class_<Session>(m, name)
        .def(
            "__init__",
            [](Session* self, const std::string& algorithm, int64_t n_steps, uint64_t seed, int64_t memory_limit) {
                if (n_steps < 1) throw std::invalid_argument("n_steps must be at least one");
                new (self) Session(algorithm_named(algorithm), n_steps, seed, memory_limit);
            },
            nb::kw_only(), "algorithm"_a, "n_steps"_a, "seed"_a, "memory_limit"_a)
        .def("feed", &Session::feed, "kernel"_a.noconvert(), "within"_a.noconvert(), "ids"_a.noconvert(),
             "labels"_a.noconvert(), "costs"_a.noconvert(), "diagonal"_a.noconvert())
        .def("run", &Session::run, "end"_a, nb::call_guard<nb::gil_scoped_release>())
        .def("finish", [](const Session&) { return true; })
        .def("begin_another_epoch", [](const Session&) {})
        .def_prop_ro("needed", [](const Session& s) { return s.solver.needed(); })
        .def("provide", &Session::provide, "slots"_a, "rows"_a.noconvert())
        .def(
            "set_foreign_bytes", [](Session& s, int64_t bytes) { s.solver.set_foreign_bytes(bytes); }, "bytes"_a)
        .def_prop_ro("classes", [](const Session& s) { return s.solver.classes(); })
        .def_prop_ro("slots", [](const Session& s) { return s.solver.table().slots(); })
        .def_prop_ro("support_patterns", [](const Session& s) { return s.solver.support_patterns(); })
        .def_prop_ro("sum_of_costs", [](const Session& s) { return s.solver.sum_of_costs(); })
        .def_prop_ro("largest_diagonal", [](const Session& s) { return s.solver.largest_diagonal(); })
        .def("labels",
             [](const Session& s) {
                 std::vector<int32_t> labels;
                 for (int32_t i = 0; i < int32_t(s.solver.examples()); ++i) labels.push_back(s.solver.table()[i].label);
                 const std::size_t count = labels.size();
                 return to_numpy(std::move(labels), {count});
             })
        .def_prop_ro("resident_rows", [](Session& s) { return s.solver.rows().resident(); })
        .def_prop_ro("bytes", [](const Session& s) { return s.solver.bytes(); })
        .def_prop_ro("counters", [](const Session& s) { return s.solver.counters(); })
        .def("slot_ids", [](const Session& s) { return slot_ids(s.solver.table()); })
        .def("newborn", [](const Session& s) { return newborn_arrays(s.solver.table()); })
        .def("alpha",
             [](const Session& s) {
                 return s.columns([&](int32_t p, int32_t i) { return s.solver.problem(p).alpha[std::size_t(i)]; });
             })
        .def("averaged",
             [](const Session& s) { return s.columns([&](int32_t p, int32_t i) { return s.solver.averaged(p, i); }); })
        .def("scores",
             [](const Session& s) {
                 return s.columns([&](int32_t p, int32_t i) { return s.solver.problem(p).scores[std::size_t(i)]; });
             })
        // By problem: primal, dual, E Delta and the sum of all Delta at the coefficients as they are.
        .def("objectives",
             [](const Session& s) {
                 std::vector<double> values;
                 for (int32_t p = s.solver.first_problem(); p < s.solver.problems(); ++p) {
                     const larank::TrackingObjectives at = s.solver.objectives(p);
                     for (const double value : {at.primal, at.dual, at.expected_increase, at.increases})
                         values.push_back(value);
                 }
                 const std::size_t problems = values.size() / 4;
                 return to_numpy(std::move(values), {problems, 4});
             })
        // By problem: the sum of all increases of the dual, and of those by PROCESS.
        .def("increases", [](const Session& s) {
            std::vector<double> values;
            for (int32_t p = s.solver.first_problem(); p < s.solver.problems(); ++p)
                for (const double value : {s.solver.problem(p).dual, s.solver.problem(p).process_increase})
                    values.push_back(value);
            const std::size_t problems = values.size() / 2;
            return to_numpy(std::move(values), {problems, 2});
        });
}

}  // namespace

void bind_tracking(nb::module_& m) {
    nb::class_<larank::TrackingCounters>(m, "TrackingCounters")
        .def_ro("process", &larank::TrackingCounters::process)
        .def_ro("reprocess", &larank::TrackingCounters::reprocess)
        .def_ro("steps", &larank::TrackingCounters::steps);
    bind_tracking_session<float>(m, "Tracking32");
    bind_tracking_session<double>(m, "Tracking64");
}
