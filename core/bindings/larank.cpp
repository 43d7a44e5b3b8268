// LaRank on kernels and on linear features.
#include "bindings/arrays.hpp"
#include "bindings/sessions.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "kernel/activeset.hpp"
#include "kernel/kernelmachine.hpp"
#include "kernel/larank.hpp"
#include "kernel/linearmachine.hpp"

namespace {

// LaRank on either machine; it keeps the arrays of the block it works on alive.
template <class Machine>
class LaRankSession {
  public:
    template <class... Arguments>
    explicit LaRankSession(const larank::LaRankOptions& options, Arguments... arguments)
        : steps(options.tau, arguments...), solver(options, steps), active_set(steps) {}
    LaRankSession(const LaRankSession&) = delete;

    void feed(Vector<int64_t> ids, Vector<int32_t> labels, Vector<double> costs, Vector<double> diagonal,
              std::vector<nb::object> arrays, int64_t examples) {
        for (const std::size_t length : {ids.shape(0), labels.shape(0), costs.shape(0), diagonal.shape(0)})
            if (int64_t(length) != examples) throw std::invalid_argument("the block's arrays differ in length");
        for (int64_t i = 0; i < examples; ++i)
            if (labels.data()[i] < 0) throw std::invalid_argument("labels must not be negative");
        arrays_ = std::move(arrays);
        for (const nb::object& array : {nb::cast(ids), nb::cast(labels), nb::cast(costs), nb::cast(diagonal)})
            arrays_.push_back(array);
        examples_ = examples;
        solver.feed({examples, ids.data(), labels.data(), costs.data(), diagonal.data()});
    }

    void begin_another_epoch() {
        steps.forget_loss();
        machine().begin_another_epoch();
    }

    void admit(int64_t count) {
        if (count > examples_) throw std::invalid_argument("the block has fewer examples than that");
        active_set.admit(count);
    }

    bool run(int64_t end) {
        if (end > examples_) throw std::invalid_argument("the block has fewer examples than that");
        return solver.run(end);
    }

    Machine& machine() { return steps.machine(); }
    const Machine& machine() const { return steps.machine(); }

    larank::Steps<Machine> steps;
    larank::LaRank<Machine> solver;
    larank::ActiveSet<Machine> active_set;

  private:
    std::vector<nb::object> arrays_;
    int64_t examples_ = 0;
};

larank::LaRankOptions larank_options(bool adaptive, int64_t n_reprocess, std::array<bool, 3> operations, double tau,
                                     uint64_t seed) {
    return {{adaptive, n_reprocess, operations}, tau, seed};
}

// The patterns of a table slot by slot, free slots left out: ids, labels, costs, and their coefficients as CSR rows.
nb::tuple table_arrays(const larank::SupportTable& table) {
    std::vector<int64_t> ids, starts{0};
    std::vector<int32_t> slots, labels, classes;
    std::vector<double> costs, diagonal, beta;
    for (int32_t slot = 0; slot < table.slots(); ++slot) {
        if (!table.contains(slot) || !table[slot].is_support()) continue;
        const larank::Pattern& p = table[slot];
        slots.push_back(slot), ids.push_back(p.id), labels.push_back(p.label);
        costs.push_back(p.cost), diagonal.push_back(p.diagonal);
        for (const larank::SupportVector& v : p.vectors)
            if (v.beta != 0) classes.push_back(v.label), beta.push_back(v.beta);
        starts.push_back(int64_t(beta.size()));
    }
    const std::size_t patterns = ids.size(), vectors = beta.size();
    return nb::make_tuple(to_numpy(std::move(slots), {patterns}), to_numpy(std::move(ids), {patterns}),
                          to_numpy(std::move(labels), {patterns}), to_numpy(std::move(costs), {patterns}),
                          to_numpy(std::move(diagonal), {patterns}), to_numpy(std::move(beta), {vectors}),
                          to_numpy(std::move(classes), {vectors}), to_numpy(std::move(starts), {patterns + 1}));
}

template <class Machine>
nb::class_<LaRankSession<Machine>> bind_larank_session(nb::module_& m, const char* name) {
    using Session = LaRankSession<Machine>;
    nb::class_<Session> bound(m, name);
    bound.def("run", &Session::run, "end"_a, nb::call_guard<nb::gil_scoped_release>())
        .def(
            "finish", [](Session& s) { return s.solver.finish(); }, nb::call_guard<nb::gil_scoped_release>())
        .def("admit", &Session::admit, "count"_a, nb::call_guard<nb::gil_scoped_release>())
        .def(
            "converge", [](Session& s, int64_t visits) { return int(s.active_set.converge(visits)); }, "visits"_a,
            nb::call_guard<nb::gil_scoped_release>())
        .def("begin_widening",
             [](Session& s, std::vector<int32_t> slots) { s.active_set.begin_widening(std::move(slots)); })
        .def("widen", [](Session& s) { return int(s.active_set.widen()); })
        .def("prune", [](Session& s) { s.active_set.prune(); })
        .def("pair_with_label", [](Session& s) { s.steps.set_formulation(larank::Formulation::weston_watkins); })
        .def(
            "set_costs",
            [](Session& s, Vector<double> costs) {
                const auto& table = s.machine().table();
                for (const int32_t slot : table.present())
                    if (table[slot].id < 0 || table[slot].id >= int64_t(costs.shape(0)))
                        throw std::invalid_argument("costs must have an entry for every example");
                s.machine().table().set_costs(costs.data());
            },
            "costs"_a.noconvert())
        .def_prop_ro("lacking", [](const Session& s) { return s.active_set.needed(); })
        .def("process_new_only", [](Session& s) { s.solver.process_new_only(); })
        .def("go_on", [](Session& s) { s.solver.go_on(); })
        .def("begin_another_epoch", [](Session& s) { s.begin_another_epoch(); })
        .def(
            "set_tau", [](Session& s, double tau) { s.steps.set_tau(tau); }, "tau"_a)
        .def(
            "set_margins",
            [](Session& s, Table<double> margins) {
                if (margins.shape(0) != margins.shape(1)) throw std::invalid_argument("margins must be square");
                s.steps.set_margins({margins.data(), margins.data() + margins.size()}, int64_t(margins.shape(0)));
            },
            "margins"_a.noconvert())
        .def("add_class", [](Session& s) { s.machine().add_class(); })
        .def_prop_ro("classes", [](const Session& s) { return s.machine().classes(); })
        .def_prop_ro("slots", [](const Session& s) { return s.machine().table().slots(); })
        .def_prop_ro("support_patterns", [](const Session& s) { return s.machine().table().size(); })
        .def_prop_ro("support_vectors", [](const Session& s) { return s.machine().table().vectors(); })
        .def_prop_ro("bytes", [](const Session& s) { return s.machine().bytes(); })
        .def_prop_ro("dual", [](const Session& s) { return s.steps.dual(); })
        .def_prop_ro("half_squared_norm", [](const Session& s) { return s.steps.half_squared_norm(); })
        .def_prop_ro("loss", [](const Session& s) { return s.steps.loss(); })
        .def_prop_ro("counters", [](const Session& s) { return s.steps.counters(); })
        .def_prop_rw(
            "state",
            [](const Session& s) {
                const larank::LaRankState state = s.solver.state();
                return std::make_tuple(state.dual, state.linear, state.loss, state.rates, state.random);
            },
            [](Session& s, std::tuple<double, double, double, std::array<double, 3>, uint64_t> state) {
                s.solver.set_state({std::get<0>(state), std::get<1>(state), std::get<2>(state), std::get<3>(state),
                                    std::get<4>(state)});
            })
        .def("slot_ids", [](const Session& s) { return slot_ids(s.machine().table()); })
        .def("newborn", [](const Session& s) { return newborn_arrays(s.machine().table()); })
        .def("table", [](const Session& s) { return table_arrays(s.machine().table()); });
    return bound;
}

template <class T>
void bind_kernel_larank(nb::module_& m, const char* name) {
    using Session = LaRankSession<larank::KernelMachine<T>>;
    using Kernel = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    bind_larank_session<larank::KernelMachine<T>>(m, name)
        .def(
            "__init__",
            [](Session* self, bool adaptive, int64_t n_reprocess, std::array<bool, 3> operations, double tau,
               uint64_t seed, int64_t memory_limit) {
                new (self) Session(larank_options(adaptive, n_reprocess, operations, tau, seed), memory_limit);
            },
            nb::kw_only(), "adaptive"_a, "n_reprocess"_a, "operations"_a, "tau"_a, "seed"_a, "memory_limit"_a)
        .def(
            "feed",
            [](Session& s, Kernel kernel, Table<T> within, Vector<int64_t> ids, Vector<int32_t> labels,
               Vector<double> costs, Vector<double> diagonal) {
                const int64_t examples = int64_t(kernel.shape(0));
                if (int64_t(within.shape(0)) != examples || int64_t(within.shape(1)) != examples)
                    throw std::invalid_argument("within must have one row and column per row of kernel");
                {
                    nb::gil_scoped_release release;
                    s.machine().feed({examples, int64_t(kernel.shape(1)), kernel.data(), within.data()});
                }
                s.feed(ids, labels, costs, diagonal, {nb::cast(kernel), nb::cast(within)}, examples);
            },
            "kernel"_a.noconvert(), "within"_a.noconvert(), "ids"_a.noconvert(), "labels"_a.noconvert(),
            "costs"_a.noconvert(), "diagonal"_a.noconvert())
        .def_prop_ro("needed", [](const Session& s) { return s.solver.needed(); })
        .def(
            "provide",
            [](Session& s, const std::vector<int32_t>& slots, Table<T> rows) {
                auto& machine = s.machine();
                if (rows.shape(0) != slots.size() || int64_t(rows.shape(1)) != machine.table().slots())
                    throw std::invalid_argument("rows must have one row per slot asked for and one column per slot");
                for (std::size_t n = 0; n < slots.size(); ++n)
                    machine.provide(slots[n], rows.data() + n * rows.shape(1));
            },
            "slots"_a, "rows"_a.noconvert())
        .def(
            "restore",
            [](Session& s, Vector<T> row, int64_t id, int32_t label, double cost, double diagonal,
               Vector<int32_t> classes, Vector<double> beta) {
                if (int64_t(row.shape(0)) != s.machine().table().slots() + 1)
                    throw std::invalid_argument("row must hold the values with the slots before it and its own");
                s.steps.restore(row.data(), id, label, cost, diagonal, classes.data(), beta.data(),
                                int64_t(beta.shape(0)));
            },
            "row"_a.noconvert(), "id"_a, "label"_a, "cost"_a, "diagonal"_a, "classes"_a.noconvert(),
            "beta"_a.noconvert())
        // Scores of all classes, row by row, and the slots whose rows of kernel values are not here.
        .def(
            "member_scores",
            [](Session& s, const std::vector<int32_t>& slots) {
                auto& machine = s.machine();
                const std::size_t classes = std::size_t(machine.classes()), count = slots.size();
                std::vector<double> scores(count * classes);
                std::vector<int32_t> lacking;
                {
                    nb::gil_scoped_release release;
                    for (std::size_t n = 0; n < count; ++n)
                        if (machine.has_row(slots[n]))
                            machine.scores_of_old(slots[n], scores.data() + n * classes);
                        else
                            lacking.push_back(int32_t(n));
                }
                return nb::make_tuple(to_numpy(std::move(scores), {count, classes}), lacking);
            },
            "slots"_a)
        // Scores of all classes for examples known by their kernel values with the slots.
        .def(
            "decide",
            [](Session& s, Table<T> kernel) {
                const auto& machine = s.machine();
                const std::size_t rows = kernel.shape(0), classes = std::size_t(machine.classes());
                if (int64_t(kernel.shape(1)) < machine.table().slots())
                    throw std::invalid_argument("kernel must have a column for every slot");
                std::vector<double> scores(rows * classes);
                for (std::size_t n = 0; n < rows; ++n)
                    machine.scores_of(kernel.data() + n * kernel.shape(1), scores.data() + n * classes);
                return to_numpy(std::move(scores), {rows, classes});
            },
            "kernel"_a.noconvert())
        // The margin below which an example of either of two classes is a violating one.
        .def_prop_ro("reach", [](const Session&) { return 1.0; })
        .def(
            "set_foreign_bytes", [](Session& s, int64_t bytes) { s.machine().set_foreign_bytes(bytes); }, "bytes"_a)
        .def_prop_ro("keeps_sets", [](const Session& s) { return s.machine().keeps_sets(); })
        .def_prop_ro("resident_rows", [](const Session& s) { return s.machine().resident_rows(); });
}

template <class T>
void feed_linear(LaRankSession<larank::LinearMachine<T>>& s, const larank::Matrix<T>& X, std::vector<nb::object> arrays,
                 Vector<int64_t> ids, Vector<int32_t> labels, Vector<double> costs, Vector<double> diagonal) {
    if (X.columns != s.machine().features()) throw std::invalid_argument("the number of features has changed");
    s.machine().feed(X);
    s.feed(ids, labels, costs, diagonal, std::move(arrays), X.rows);
}

// The patterns of a linear machine slot by slot: values, columns (None if dense) and where each begins.
template <class T>
nb::tuple patterns_of(const larank::LinearMachine<T>& machine) {
    std::vector<T> values;
    std::vector<int64_t> columns, starts{0};
    bool is_dense = true;
    for (int32_t slot = 0; slot < machine.table().slots(); ++slot) {
        if (!machine.table().contains(slot) || !machine.table()[slot].is_support()) continue;
        const larank::Row<T> x = machine.row(slot);
        is_dense = is_dense && x.count == machine.features() && !x.columns32 && !x.columns64;
        for (int64_t j = 0; j < x.count; ++j) {
            values.push_back(x.values[j]);
            columns.push_back(x.columns32 ? int64_t{x.columns32[j]} : x.columns64 ? x.columns64[j] : j);
        }
        starts.push_back(int64_t(values.size()));
    }
    const std::size_t count = values.size(), ends = starts.size();
    nb::object named = is_dense ? nb::none() : nb::cast(to_numpy(std::move(columns), {count}));
    return nb::make_tuple(to_numpy(std::move(values), {count}), named, to_numpy(std::move(starts), {ends}));
}

template <class T, class Index, class Class>
void bind_linear_csr(Class& bound) {
    using Session = LaRankSession<larank::LinearMachine<T>>;
    bound.def(
        "feed",
        [](Session& s, Vector<T> values, Vector<Index> columns, Vector<int64_t> starts, int64_t features,
           Vector<int64_t> ids, Vector<int32_t> labels, Vector<double> costs, Vector<double> diagonal) {
            feed_linear(s, matrix_of(values, columns, starts, features),
                        {nb::cast(values), nb::cast(columns), nb::cast(starts)}, ids, labels, costs, diagonal);
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "starts"_a.noconvert(), "features"_a, "ids"_a.noconvert(),
        "labels"_a.noconvert(), "costs"_a.noconvert(), "diagonal"_a.noconvert());
}

template <class T>
void bind_linear_larank(nb::module_& m, const char* name) {
    using Session = LaRankSession<larank::LinearMachine<T>>;
    auto bound = bind_larank_session<larank::LinearMachine<T>>(m, name);
    bound
        .def(
            "__init__",
            [](Session* self, bool adaptive, int64_t n_reprocess, std::array<bool, 3> operations, double tau,
               uint64_t seed, int64_t features) {
                new (self) Session(larank_options(adaptive, n_reprocess, operations, tau, seed), features);
            },
            nb::kw_only(), "adaptive"_a, "n_reprocess"_a, "operations"_a, "tau"_a, "seed"_a, "features"_a)
        .def(
            "feed",
            [](Session& s, Table<T> X, Vector<int64_t> ids, Vector<int32_t> labels, Vector<double> costs,
               Vector<double> diagonal) { feed_linear(s, matrix_of(X), {nb::cast(X)}, ids, labels, costs, diagonal); },
            "X"_a.noconvert(), "ids"_a.noconvert(), "labels"_a.noconvert(), "costs"_a.noconvert(),
            "diagonal"_a.noconvert())
        // A pattern of a saved model: a row of the block that was fed.
        .def(
            "restore",
            [](Session& s, int64_t row, int64_t id, int32_t label, double cost, double diagonal,
               Vector<int32_t> classes, Vector<double> beta) {
                s.steps.restore(s.machine().block_row(row), id, label, cost, diagonal, classes.data(), beta.data(),
                                int64_t(beta.shape(0)));
            },
            "row"_a, "id"_a, "label"_a, "cost"_a, "diagonal"_a, "classes"_a.noconvert(), "beta"_a.noconvert())
        .def_prop_ro("features", [](const Session& s) { return s.machine().features(); })
        .def("patterns", [](const Session& s) { return patterns_of(s.machine()); })
        .def("weights", [](const Session& s) {
            const auto& machine = s.machine();
            const int64_t classes = machine.classes(), lanes = machine.lanes(), features = machine.features();
            std::vector<T> W(std::size_t(classes * features));
            for (int64_t j = 0; j < features; ++j)
                for (int64_t y = 0; y < classes; ++y)
                    W[std::size_t(y * features + j)] = machine.weights().data()[j * lanes + y];
            return to_numpy(std::move(W), {std::size_t(classes), std::size_t(features)});
        });
    bind_linear_csr<T, int32_t>(bound);
    bind_linear_csr<T, int64_t>(bound);
}

nb::tuple excess_and_loss(Table<double> scores, Vector<int32_t> labels, Table<double> delta, Vector<int64_t> rows,
                          double scale, bool is_sum) {
    const int64_t examples = int64_t(scores.shape(0)), classes = int64_t(scores.shape(1));
    if (int64_t(labels.shape(0)) != examples) throw std::invalid_argument("labels must be one per row of scores");
    if (int64_t(delta.shape(0)) != classes || int64_t(delta.shape(1)) != classes)
        throw std::invalid_argument("delta must have one row and column per class");
    const auto formulation = is_sum ? larank::Formulation::weston_watkins : larank::Formulation::crammer_singer;
    const std::size_t count = rows.shape(0);
    std::vector<double> largest(count), losses(count);
    for (std::size_t n = 0; n < count; ++n) {
        const int64_t i = rows.data()[n];
        if (i < 0 || i >= examples || labels.data()[i] < 0 || labels.data()[i] >= classes)
            throw std::invalid_argument("rows and labels must be in range");
        const larank::Excess at =
            larank::excess_of(scores.data() + i * classes, classes, labels.data()[i], delta.data(), scale, formulation);
        largest[n] = at.largest, losses[n] = at.loss;
    }
    return nb::make_tuple(to_numpy(std::move(largest), {count}), to_numpy(std::move(losses), {count}));
}

}  // namespace

void bind_larank(nb::module_& m) {
    nb::class_<larank::StepCounters>(m, "StepCounters")
        .def_ro("operations", &larank::StepCounters::operations)
        .def_ro("steps", &larank::StepCounters::steps)
        .def_ro("argmax", &larank::StepCounters::argmax)
        .def_ro("selection_seconds", &larank::StepCounters::selection_seconds)
        .def_ro("step_seconds", &larank::StepCounters::step_seconds);
    // What was freed goes back to the system, where the heap can do that.
    m.def("trim_heap", [] {
#if defined(__GLIBC__)
        malloc_trim(0);
#endif
    });
    m.def("excess_and_loss", &excess_and_loss, "scores"_a.noconvert(), "labels"_a.noconvert(), "delta"_a.noconvert(),
          "rows"_a.noconvert(), "scale"_a, "is_sum"_a);
    bind_kernel_larank<float>(m, "KernelLaRank32");
    bind_kernel_larank<double>(m, "KernelLaRank64");
    bind_linear_larank<float>(m, "LinearLaRank32");
    bind_linear_larank<double>(m, "LinearLaRank64");
}
