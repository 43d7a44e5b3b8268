// The Huller.
#include "bindings/arrays.hpp"
#include "bindings/sessions.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <tuple>

#include "kernel/huller.hpp"

namespace {

using Products = std::vector<std::array<double, 3>>;
using Begun = std::vector<std::array<int64_t, 3>>;

template <class T>
class HullerSession {
  public:
    HullerSession(uint64_t seed, int64_t memory_limit) : solver(seed, memory_limit) {}
    HullerSession(const HullerSession&) = delete;

    void feed(KernelBlock<T> kernel, Table<T> within, Vector<int64_t> ids, Vector<int32_t> labels, Vector<double> costs,
              Vector<double> diagonal) {
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

    void restore(Vector<T> row, int64_t id, int32_t label, double cost, double diagonal, Vector<int32_t> problems,
                 Vector<double> alpha) {
        if (int64_t(row.shape(0)) != solver.table().slots() + 1)
            throw std::invalid_argument("row must hold the values with the slots before it and its own");
        if (problems.shape(0) != alpha.shape(0)) throw std::invalid_argument("alpha must be one per problem named");
        for (std::size_t n = 0; n < alpha.shape(0); ++n)
            if (problems.data()[n] < solver.first_problem() || problems.data()[n] >= solver.problems() ||
                !(alpha.data()[n] > 0))
                throw std::invalid_argument("problems must be those of the state, alpha above zero");
        solver.restore(row.data(), id, label, cost, diagonal, problems.data(), alpha.data(), int64_t(alpha.shape(0)));
    }

    larank::Huller<T> solver;

  private:
    FedBlock<T> fed_;
};

// The patterns slot by slot, free slots left out, and their coefficients alpha as CSR rows, a column per problem.
template <class T>
nb::tuple table_of(const larank::Huller<T>& solver) {
    const larank::SupportTable& table = solver.table();
    std::vector<int64_t> ids, starts{0};
    std::vector<int32_t> slots, labels, problems;
    std::vector<double> costs, diagonal, alpha;
    for (int32_t slot = 0; slot < table.slots(); ++slot) {
        if (!table.contains(slot)) continue;
        const larank::Pattern& pattern = table[slot];
        slots.push_back(slot), ids.push_back(pattern.id), labels.push_back(pattern.label);
        costs.push_back(pattern.cost), diagonal.push_back(pattern.diagonal);
        for (const larank::SupportVector& vector : pattern.vectors) {
            const std::size_t side = std::size_t(solver.side_of(vector.label, pattern.label));
            problems.push_back(vector.label);
            alpha.push_back(solver.problem(vector.label).sides[side].alpha(vector.place));
        }
        starts.push_back(int64_t(alpha.size()));
    }
    const std::size_t patterns = ids.size(), vectors = alpha.size();
    return nb::make_tuple(to_numpy(std::move(slots), {patterns}), to_numpy(std::move(ids), {patterns}),
                          to_numpy(std::move(labels), {patterns}), to_numpy(std::move(costs), {patterns}),
                          to_numpy(std::move(diagonal), {patterns}), to_numpy(std::move(alpha), {vectors}),
                          to_numpy(std::move(problems), {vectors}), to_numpy(std::move(starts), {patterns + 1}));
}

template <class T>
void bind_huller_session(nb::module_& m, const char* name) {
    using Session = HullerSession<T>;
    nb::class_<Session>(m, name)
        .def(
            "__init__",
            [](Session* self, uint64_t seed, int64_t memory_limit) { new (self) Session(seed, memory_limit); },
            nb::kw_only(), "seed"_a, "memory_limit"_a)
        .def("feed", &Session::feed, "kernel"_a.noconvert(), "within"_a.noconvert(), "ids"_a.noconvert(),
             "labels"_a.noconvert(), "costs"_a.noconvert(), "diagonal"_a.noconvert())
        .def("run", &Session::run, "end"_a, nb::call_guard<nb::gil_scoped_release>())
        .def("finish", [](const Session&) { return true; })
        .def("begin_another_epoch", [](Session& s) { s.solver.begin_another_epoch(); })
        .def_prop_ro("needed", [](const Session& s) { return s.solver.needed(); })
        .def("provide", &Session::provide, "slots"_a, "rows"_a.noconvert())
        .def("restore", &Session::restore, "row"_a.noconvert(), "id"_a, "label"_a, "cost"_a, "diagonal"_a,
             "problems"_a.noconvert(), "alpha"_a.noconvert())
        .def(
            "set_foreign_bytes", [](Session& s, int64_t bytes) { s.solver.set_foreign_bytes(bytes); }, "bytes"_a)
        .def_prop_ro("classes", [](const Session& s) { return s.solver.classes(); })
        .def_prop_ro("slots", [](const Session& s) { return s.solver.table().slots(); })
        .def_prop_ro("support_patterns", [](const Session& s) { return s.solver.table().size(); })
        .def_prop_ro("support_vectors", [](const Session& s) { return s.solver.table().vectors(); })
        .def_prop_ro("resident_rows", [](Session& s) { return s.solver.rows().resident(); })
        .def_prop_ro("bytes", [](const Session& s) { return s.solver.bytes(); })
        .def_prop_ro("objective", [](const Session& s) { return s.solver.objective(); })
        .def_prop_ro("estimated_bound", [](const Session& s) { return s.solver.estimated_bound(); })
        .def_prop_ro("counters", [](const Session& s) { return s.solver.counters(); })
        // Classes, random numbers, and by problem: |X_N|^2, <X_N, X_P>, |X_P|^2; examples averaged, whether that is
        // over.
        .def_prop_rw(
            "state",
            [](const Session& s) {
                const larank::HullerState state = s.solver.state();
                return std::make_tuple(state.classes, state.random, state.products, state.begun);
            },
            [](Session& s, const std::tuple<int32_t, uint64_t, Products, Begun>& state) {
                const auto& [classes, random, products, begun] = state;
                const std::size_t problems = std::size_t(std::max(2, classes));
                if (products.size() != problems || begun.size() != problems)
                    throw std::invalid_argument("the state must have an entry for every problem");
                s.solver.set_state({classes, random, products, begun});
            })
        .def("slot_ids", [](const Session& s) { return slot_ids(s.solver.table()); })
        .def("newborn", [](const Session& s) { return newborn_arrays(s.solver.table()); })
        .def("table", [](const Session& s) { return table_of(s.solver); });
}

}  // namespace

void bind_huller(nb::module_& m) {
    nb::class_<larank::HullerCounters>(m, "HullerCounters")
        .def_ro("process", &larank::HullerCounters::process)
        .def_ro("reprocess", &larank::HullerCounters::reprocess)
        .def_ro("insertions", &larank::HullerCounters::insertions)
        .def_ro("removals", &larank::HullerCounters::removals);
    bind_huller_session<float>(m, "Huller32");
    bind_huller_session<double>(m, "Huller64");
}
