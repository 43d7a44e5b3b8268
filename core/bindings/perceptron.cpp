// Kernel perceptrons.
#include "bindings/arrays.hpp"
#include "bindings/sessions.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "kernel/perceptron.hpp"

namespace {

// A perceptron that keeps the arrays of the block it works on alive.
template <class T, class Rule>
class PerceptronSession {
  public:
    PerceptronSession(const Rule& rule, std::optional<int64_t> budget, int64_t memory_limit)
        : solver(rule, budget.value_or(Solver::no_budget), memory_limit) {}
    PerceptronSession(const PerceptronSession&) = delete;

    void feed(KernelBlock<T> kernel, Table<T> within, Vector<int64_t> ids, Vector<int32_t> labels, Vector<double> costs,
              Vector<double> diagonal) {
        const auto [block, examples] = fed_.keep(kernel, within, ids, labels, costs, diagonal);
        for (int64_t i = 0; i < examples.count; ++i) check_label(examples.labels[i]);
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

    void restore(std::optional<Vector<T>> row, int64_t id, int32_t label, double cost, double diagonal,
                 Vector<int32_t> columns, Vector<double> beta, Vector<double> early) {
        if (row.has_value() != solver.has_budget() || (row && int64_t(row->shape(0)) != solver.table().slots() + 1))
            throw std::invalid_argument(
                "row must hold the values with the slots before it and its own, or be None "
                "where there is no budget");
        check_label(label);
        for (std::size_t n = 0; n < columns.shape(0); ++n) check_column(columns.data()[n]);
        solver.restore(row ? row->data() : nullptr, id, label, cost, diagonal, columns.data(), beta.data(),
                       early.data(), int64_t(beta.shape(0)));
    }

    // Slot by slot: slots, ids, labels, costs, k(x, x), and as CSR rows coefficients, their `early` sums and columns.
    nb::tuple table() const {
        const larank::SupportTable& table = solver.table();
        std::vector<int64_t> ids, starts{0};
        std::vector<int32_t> slots, labels, columns;
        std::vector<double> costs, diagonal, beta, early;
        for (int32_t slot = 0; slot < table.slots(); ++slot) {
            if (!table.contains(slot)) continue;
            const larank::Pattern& p = table[slot];
            slots.push_back(slot), ids.push_back(p.id), labels.push_back(p.label);
            costs.push_back(p.cost), diagonal.push_back(p.diagonal);
            for (const larank::SupportVector& v : p.vectors)
                beta.push_back(v.beta), early.push_back(solver.early(v)), columns.push_back(v.label);
            starts.push_back(int64_t(beta.size()));
        }
        const std::size_t patterns = ids.size(), vectors = beta.size();
        return nb::make_tuple(to_numpy(std::move(slots), {patterns}), to_numpy(std::move(ids), {patterns}),
                              to_numpy(std::move(labels), {patterns}), to_numpy(std::move(costs), {patterns}),
                              to_numpy(std::move(diagonal), {patterns}), to_numpy(std::move(beta), {vectors}),
                              to_numpy(std::move(early), {vectors}), to_numpy(std::move(columns), {vectors}),
                              to_numpy(std::move(starts), {patterns + 1}));
    }

    using Solver = larank::Perceptron<T, Rule>;
    Solver solver;

  private:
    void check_label(int32_t label) const {
        if (label < 0) throw std::invalid_argument("labels must not be negative");
        if (solver.is_single() && label > 1)
            throw std::invalid_argument("labels must be 0 or 1 while there is one column of coefficients");
    }
    void check_column(int32_t column) const {
        if (column < 0 || (solver.is_single() && column > 0))
            throw std::invalid_argument("columns must be 0 while there is one column of coefficients");
    }

    FedBlock<T> fed_;
};

using State = std::tuple<int64_t, int64_t, int64_t, int64_t>;

template <class T, class Rule>
nb::class_<PerceptronSession<T, Rule>> bind_session(nb::module_& m, const char* name) {
    using Session = PerceptronSession<T, Rule>;
    return nb::class_<Session>(m, name)
        .def("feed", &Session::feed, "kernel"_a.noconvert(), "within"_a.noconvert(), "ids"_a.noconvert(),
             "labels"_a.noconvert(), "costs"_a.noconvert(), "diagonal"_a.noconvert())
        .def("run", &Session::run, "end"_a, nb::call_guard<nb::gil_scoped_release>())
        .def("finish", [](Session&) { return true; })
        .def("begin_another_epoch", [](Session&) {})
        .def_prop_ro("needed", [](const Session& s) { return s.solver.needed(); })
        .def("provide", &Session::provide, "slots"_a, "rows"_a.noconvert())
        .def("restore", &Session::restore, "row"_a.noconvert().none(), "id"_a, "label"_a, "cost"_a, "diagonal"_a,
             "columns"_a.noconvert(), "beta"_a.noconvert(), "early"_a.noconvert())
        .def(
            "set_foreign_bytes", [](Session& s, int64_t bytes) { s.solver.set_foreign_bytes(bytes); }, "bytes"_a)
        .def("split_column", [](Session& s) { s.solver.split_column(); })
        .def_prop_ro("has_budget", [](const Session& s) { return s.solver.has_budget(); })
        .def_prop_ro("is_single", [](const Session& s) { return s.solver.is_single(); })
        .def_prop_ro("columns", [](const Session& s) { return s.solver.column_count(); })
        .def_prop_ro("slots", [](const Session& s) { return s.solver.table().slots(); })
        .def_prop_ro("support_patterns", [](const Session& s) { return s.solver.table().size(); })
        .def_prop_ro("bytes", [](const Session& s) { return s.solver.bytes(); })
        .def_prop_ro("resident_rows", [](const Session& s) { return s.solver.resident_rows(); })
        // Visits, mistakes, updates, removals.
        .def_prop_rw(
            "counters",
            [](const Session& s) {
                const larank::PerceptronCounters& c = s.solver.counters();
                return State(c.visits, c.mistakes, c.updates, c.removals);
            },
            [](Session& s, const State& c) {
                s.solver.set_counters({std::get<0>(c), std::get<1>(c), std::get<2>(c), std::get<3>(c)});
            })
        .def("slot_ids", [](const Session& s) { return slot_ids(s.solver.table()); })
        .def("newborn", [](const Session& s) { return newborn_arrays(s.solver.table()); })
        .def("table", &Session::table);
}

template <class T>
void bind_perceptron(nb::module_& m, const char* name) {
    using Session = PerceptronSession<T, larank::PerceptronRule>;
    bind_session<T, larank::PerceptronRule>(m, name).def(
        "__init__",
        [](Session* self, double margin, std::optional<int64_t> budget, int64_t memory_limit) {
            new (self) Session({margin}, budget, memory_limit);
        },
        nb::kw_only(), "margin"_a, "budget"_a.none(), "memory_limit"_a);
}

template <class T>
void bind_passive_aggressive(nb::module_& m, const char* name) {
    using Session = PerceptronSession<T, larank::PassiveAggressiveRule>;
    bind_session<T, larank::PassiveAggressiveRule>(m, name).def(
        "__init__", [](Session* self, int64_t memory_limit) { new (self) Session({}, std::nullopt, memory_limit); },
        nb::kw_only(), "memory_limit"_a);
}

}  // namespace

void bind_perceptrons(nb::module_& m) {
    bind_perceptron<float>(m, "KernelPerceptron32");
    bind_perceptron<double>(m, "KernelPerceptron64");
    bind_passive_aggressive<float>(m, "KernelPassiveAggressive32");
    bind_passive_aggressive<double>(m, "KernelPassiveAggressive64");
}
