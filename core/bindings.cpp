// The Python face of the core. Every array argument is taken as it is (`noconvert`): a wrong dtype is an error, never
// a silent copy. Training and evaluation release the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <stdexcept>

#include "kernelmachine.hpp"
#include "larank.hpp"
#include "linearmachine.hpp"
#include "sdm.hpp"
#include "sparseproducts.hpp"
#include "svmlight.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Table = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::ndarray<nb::numpy, T>(kept->data(), shape, owner);
}

// A session of either precision behind one Python class; it keeps the arrays it looks at alive.
class SdmSession {
  public:
    virtual ~SdmSession() = default;
    virtual bool advance(int64_t work) = 0;
    virtual larank::Objectives evaluate() = 0;
    virtual const larank::Objectives& estimate() const = 0;
    virtual const larank::SdmCounters& counters() const = 0;
    virtual bool estimate_is_at_full_cost() const = 0;
    virtual nb::object take_weights() = 0;
    virtual nb::tuple coefficients() const = 0;
    virtual void start_from(Vector<double> values, Vector<int32_t> classes, Vector<int64_t> starts) = 0;
};

template <class T>
class SdmSessionOf final : public SdmSession {
  public:
    SdmSessionOf(const larank::Matrix<T>& X, std::vector<nb::object> arrays, Vector<int32_t> labels,
                 Vector<double> costs, const larank::SdmOptions& options)
        : arrays_(std::move(arrays)), solver_(X, checked(labels, costs, X.rows, options), costs.data(), options) {}
    bool advance(int64_t work) override {
        check_open();
        return solver_.advance(work);
    }
    larank::Objectives evaluate() override {
        check_open();
        return solver_.evaluate();
    }
    const larank::Objectives& estimate() const override { return solver_.estimate(); }
    const larank::SdmCounters& counters() const override { return solver_.counters(); }
    bool estimate_is_at_full_cost() const override { return solver_.estimate_is_at_full_cost(); }

    nb::object take_weights() override {
        check_open();
        ended_ = true;
        auto* kept = new larank::AlignedArray<T>(solver_.take_model());
        nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<larank::AlignedArray<T>*>(p); });
        return nb::cast(nb::ndarray<nb::numpy, T>(
            kept->data(), {std::size_t(solver_.matrix().weight_rows()), std::size_t(solver_.options().classes)},
            owner));
    }

    nb::tuple coefficients() const override {
        const auto& lists = solver_.coefficients();
        std::vector<int64_t> starts{0};
        std::vector<int32_t> classes;
        std::vector<double> values;
        for (int64_t i = 0; i < lists.examples(); ++i) {
            for (auto e = lists.begin(i); e != lists.end(i); ++e) {
                classes.push_back(e->label);
                values.push_back(double(e->value));
            }
            starts.push_back(int64_t(classes.size()));
        }
        const std::size_t count = classes.size(), ends = starts.size();
        return nb::make_tuple(to_numpy(std::move(values), {count}), to_numpy(std::move(classes), {count}),
                              to_numpy(std::move(starts), {ends}));
    }

    void start_from(Vector<double> values, Vector<int32_t> classes, Vector<int64_t> starts) override {
        for (int64_t i = 0; i + 1 < int64_t(starts.shape(0)); ++i) {
            const int64_t from = starts.data()[i];
            solver_.seed(i, classes.data() + from, values.data() + from, starts.data()[i + 1] - from);
        }
        solver_.start_from_seeds();
    }

  private:
    static const int32_t* checked(Vector<int32_t> labels, Vector<double> costs, int64_t rows,
                                  const larank::SdmOptions& options) {
        if (int64_t(labels.shape(0)) != rows || int64_t(costs.shape(0)) != rows)
            throw std::invalid_argument("labels and costs must have one entry per row of X");
        for (int64_t i = 0; i < rows; ++i)
            if (labels.data()[i] < 0 || labels.data()[i] >= options.classes)
                throw std::invalid_argument("labels must count from 0 to the number of classes less one");
        return labels.data();
    }
    void check_open() const {
        if (ended_) throw std::logic_error("the session ended when its weights were taken");
    }

    std::vector<nb::object> arrays_;
    larank::Sdm<T> solver_;
    bool ended_ = false;
};

larank::Formulation formulation_named(const std::string& name) {
    if (name == "crammer-singer") return larank::Formulation::crammer_singer;
    if (name == "weston-watkins") return larank::Formulation::weston_watkins;
    if (name == "one-vs-rest") return larank::Formulation::one_vs_rest;
    throw std::invalid_argument("unknown formulation '" + name + "'");
}

larank::SdmOptions sdm_options(const std::string& formulation, int64_t classes, double epsilon, bool shrinking,
                               bool cooling, uint64_t seed) {
    return {formulation_named(formulation), classes, epsilon, shrinking, cooling, seed};
}

// The two hot units on one example, for tests: x times W at the columns of x, and one row QP.
std::vector<double> row_scores(Vector<double> x, Vector<int32_t> columns, Table<double> W) {
    const int64_t classes = int64_t(W.shape(1)), lanes = larank::padded<double>(classes);
    larank::AlignedArray<double> weights(int64_t(W.shape(0)) * lanes), out(lanes);
    for (int64_t j = 0; j < int64_t(W.shape(0)); ++j)
        std::copy(W.data() + j * classes, W.data() + (j + 1) * classes, weights.data() + j * lanes);
    const larank::Row<double> row{x.data(), columns.data(), nullptr, int64_t(x.shape(0)), 0, 0};
    larank::units<double>().scores(row, weights.data(), lanes, true, out.data());
    return {out.data(), out.data() + classes};
}

std::tuple<double, double, std::vector<double>> solve_row(const std::string& formulation, Vector<double> scores,
                                                          Vector<double> coefficients, int64_t label, double A,
                                                          double C) {
    const int64_t classes = int64_t(scores.shape(0)), lanes = larank::padded<double>(classes);
    larank::AlignedArray<double> s(lanes), a(lanes), work(lanes), change(lanes);
    std::copy(scores.data(), scores.data() + classes, s.data());
    std::copy(coefficients.data(), coefficients.data() + classes, a.data());
    const auto step = larank::units<double>().solve_row[int(formulation_named(formulation))](
        {s.data(), a.data(), classes, lanes, label, A, C, 0.0}, work.data(), change.data());
    std::vector<double> moved(std::size_t(classes), 0.0);
    if (step.moved) std::copy(change.data(), change.data() + classes, moved.begin());
    return {step.violation, step.loss, moved};
}

template <class T>
larank::Matrix<T> matrix_of(Table<T> X) {
    larank::Matrix<T> view;
    view.rows = int64_t(X.shape(0));
    view.columns = int64_t(X.shape(1));
    view.values = X.data();
    return view;
}

template <class T, class Index>
larank::Matrix<T> matrix_of(Vector<T> values, Vector<Index> columns, Vector<int64_t> starts, int64_t features) {
    larank::Matrix<T> view;
    view.rows = int64_t(starts.shape(0)) - 1;
    view.columns = features;
    view.values = values.data();
    view.starts = starts.data();
    if constexpr (sizeof(Index) == 4)
        view.columns32 = columns.data();
    else
        view.columns64 = columns.data();
    return view;
}

template <class T>
void bind_sdm_dense(nb::module_& m) {
    m.def(
        "sdm_session",
        [](Table<T> X, Vector<int32_t> labels, Vector<double> costs, double intercept, const std::string& formulation,
           int64_t classes, double epsilon, bool shrinking, bool cooling, uint64_t seed) -> SdmSession* {
            larank::Matrix<T> view = matrix_of(X);
            view.intercept = T(intercept);
            return new SdmSessionOf<T>(view, {nb::cast(X)}, labels, costs,
                                       sdm_options(formulation, classes, epsilon, shrinking, cooling, seed));
        },
        "X"_a.noconvert(), "labels"_a.noconvert(), "costs"_a.noconvert(), nb::kw_only(), "intercept"_a, "formulation"_a,
        "classes"_a, "epsilon"_a, "shrinking"_a, "cooling"_a, "seed"_a);
}

template <class T, class Index>
void bind_sdm_csr(nb::module_& m) {
    m.def(
        "sdm_session",
        [](Vector<T> values, Vector<Index> columns, Vector<int64_t> starts, int64_t features, Vector<int32_t> labels,
           Vector<double> costs, double intercept, const std::string& formulation, int64_t classes, double epsilon,
           bool shrinking, bool cooling, uint64_t seed) -> SdmSession* {
            larank::Matrix<T> view = matrix_of(values, columns, starts, features);
            view.intercept = T(intercept);
            return new SdmSessionOf<T>(view, {nb::cast(values), nb::cast(columns), nb::cast(starts)}, labels, costs,
                                       sdm_options(formulation, classes, epsilon, shrinking, cooling, seed));
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "starts"_a.noconvert(), "features"_a, "labels"_a.noconvert(),
        "costs"_a.noconvert(), nb::kw_only(), "intercept"_a, "formulation"_a, "classes"_a, "epsilon"_a, "shrinking"_a,
        "cooling"_a, "seed"_a);
}

// LaRank on either machine; it keeps the arrays of the block it works on alive.
template <class Machine>
class LaRankSession {
  public:
    template <class... Arguments>
    explicit LaRankSession(const larank::LaRankOptions& options, Arguments... arguments)
        : solver(options, arguments...) {}

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

    bool run(int64_t end) {
        if (end > examples_) throw std::invalid_argument("the block has fewer examples than that");
        return solver.run(end);
    }

    larank::LaRank<Machine> solver;

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
        if (!table.contains(slot)) continue;
        const larank::Pattern& p = table[slot];
        slots.push_back(slot), ids.push_back(p.id), labels.push_back(p.label);
        costs.push_back(p.cost), diagonal.push_back(p.diagonal);
        for (const larank::SupportVector& v : p.vectors) classes.push_back(v.label), beta.push_back(v.beta);
        starts.push_back(int64_t(beta.size()));
    }
    const std::size_t patterns = ids.size(), vectors = beta.size();
    return nb::make_tuple(to_numpy(std::move(slots), {patterns}), to_numpy(std::move(ids), {patterns}),
                          to_numpy(std::move(labels), {patterns}), to_numpy(std::move(costs), {patterns}),
                          to_numpy(std::move(diagonal), {patterns}), to_numpy(std::move(beta), {vectors}),
                          to_numpy(std::move(classes), {vectors}), to_numpy(std::move(starts), {patterns + 1}));
}

// The id in each slot, -1 where it is free.
nb::ndarray<nb::numpy, int64_t> slot_ids(const larank::SupportTable& table) {
    std::vector<int64_t> ids;
    for (int32_t slot = 0; slot < table.slots(); ++slot) ids.push_back(table.contains(slot) ? table[slot].id : -1);
    const std::size_t count = ids.size();
    return to_numpy(std::move(ids), {count});
}

template <class Machine>
nb::class_<LaRankSession<Machine>> bind_larank_session(nb::module_& m, const char* name) {
    using Session = LaRankSession<Machine>;
    nb::class_<Session> bound(m, name);
    bound.def("run", &Session::run, "end"_a, nb::call_guard<nb::gil_scoped_release>())
        .def("begin_epoch", [](Session& s) { s.solver.begin_epoch(); })
        .def(
            "set_tau", [](Session& s, double tau) { s.solver.set_tau(tau); }, "tau"_a)
        .def(
            "set_margins",
            [](Session& s, Table<double> margins) {
                if (margins.shape(0) != margins.shape(1)) throw std::invalid_argument("margins must be square");
                s.solver.set_margins({margins.data(), margins.data() + margins.size()}, int64_t(margins.shape(0)));
            },
            "margins"_a.noconvert())
        .def("add_class", [](Session& s) { s.solver.machine().add_class(); })
        .def_prop_ro("classes", [](const Session& s) { return s.solver.machine().classes(); })
        .def_prop_ro("slots", [](const Session& s) { return s.solver.machine().table().slots(); })
        .def_prop_ro("support_patterns", [](const Session& s) { return s.solver.machine().table().size(); })
        .def_prop_ro("support_vectors", [](const Session& s) { return s.solver.machine().table().vectors(); })
        .def_prop_ro("bytes", [](const Session& s) { return s.solver.machine().bytes(); })
        .def_prop_ro("dual", [](const Session& s) { return s.solver.dual(); })
        .def_prop_ro("half_squared_norm", [](const Session& s) { return s.solver.half_squared_norm(); })
        .def_prop_ro("loss", [](const Session& s) { return s.solver.loss(); })
        .def_prop_ro("counters", [](const Session& s) { return s.solver.counters(); })
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
        .def("slot_ids", [](const Session& s) { return slot_ids(s.solver.machine().table()); })
        .def("table", [](const Session& s) { return table_arrays(s.solver.machine().table()); });
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
                s.solver.machine().feed({examples, int64_t(kernel.shape(1)), kernel.data(), within.data()});
                s.feed(ids, labels, costs, diagonal, {nb::cast(kernel), nb::cast(within)}, examples);
            },
            "kernel"_a.noconvert(), "within"_a.noconvert(), "ids"_a.noconvert(), "labels"_a.noconvert(),
            "costs"_a.noconvert(), "diagonal"_a.noconvert())
        .def_prop_ro("needed", [](const Session& s) { return s.solver.needed(); })
        .def(
            "provide",
            [](Session& s, const std::vector<int32_t>& slots, Table<T> rows) {
                auto& machine = s.solver.machine();
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
                if (int64_t(row.shape(0)) != s.solver.machine().table().slots() + 1)
                    throw std::invalid_argument("row must hold the values with the slots before it and its own");
                s.solver.restore(row.data(), id, label, cost, diagonal, classes.data(), beta.data(),
                                 int64_t(beta.shape(0)));
            },
            "row"_a.noconvert(), "id"_a, "label"_a, "cost"_a, "diagonal"_a, "classes"_a.noconvert(),
            "beta"_a.noconvert())
        .def(
            "set_foreign_bytes", [](Session& s, int64_t bytes) { s.solver.machine().set_foreign_bytes(bytes); },
            "bytes"_a)
        .def_prop_ro("keeps_sets", [](const Session& s) { return s.solver.machine().keeps_sets(); })
        .def_prop_ro("resident_rows", [](const Session& s) { return s.solver.machine().resident_rows(); });
}

template <class T>
void feed_linear(LaRankSession<larank::LinearMachine<T>>& s, const larank::Matrix<T>& X, std::vector<nb::object> arrays,
                 Vector<int64_t> ids, Vector<int32_t> labels, Vector<double> costs, Vector<double> diagonal) {
    if (X.columns != s.solver.machine().features()) throw std::invalid_argument("the number of features has changed");
    s.solver.machine().feed(X);
    s.feed(ids, labels, costs, diagonal, std::move(arrays), X.rows);
}

// The patterns of a linear machine slot by slot: values, columns (None if dense) and where each begins.
template <class T>
nb::tuple patterns_of(const larank::LinearMachine<T>& machine) {
    std::vector<T> values;
    std::vector<int64_t> columns, starts{0};
    bool is_dense = true;
    for (int32_t slot = 0; slot < machine.table().slots(); ++slot) {
        if (!machine.table().contains(slot)) continue;
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
                s.solver.restore(s.solver.machine().block_row(row), id, label, cost, diagonal, classes.data(),
                                 beta.data(), int64_t(beta.shape(0)));
            },
            "row"_a, "id"_a, "label"_a, "cost"_a, "diagonal"_a, "classes"_a.noconvert(), "beta"_a.noconvert())
        .def_prop_ro("features", [](const Session& s) { return s.solver.machine().features(); })
        .def("patterns", [](const Session& s) { return patterns_of(s.solver.machine()); })
        .def("weights", [](const Session& s) {
            const auto& machine = s.solver.machine();
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

// A table, or a piece of one: rows may lie apart, the values of a row may not.
template <class T>
using Strided = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

template <class T>
larank::Tile<T> tile_of(Strided<T> table) {
    if (table.shape(1) > 1 && table.stride(1) != 1)
        throw std::invalid_argument("the values of a row of the tile must lie side by side");
    return {table.data(), int64_t(table.shape(0)), int64_t(table.shape(1)), table.stride(0)};
}

template <class T>
void map_products(larank::ProductKernel kernel, Strided<T> tile, const larank::MapArguments<T>& with) {
    const larank::Tile<T> view = tile_of(tile);
    nb::gil_scoped_release release;
    larank::units<T>().map_products[int(kernel)](view, with);
}

template <class T, larank::RowKernel kernel>
void compare_rows(Table<T> X, Table<T> Z, double gamma, Strided<T> out) {
    const larank::Tile<T> view = tile_of(out);
    if (X.shape(1) != Z.shape(1) || int64_t(X.shape(0)) != view.rows || int64_t(Z.shape(0)) != view.columns)
        throw std::invalid_argument(
            "X and Z must have the same features, and out one row per row of X and one column "
            "per row of Z");
    nb::gil_scoped_release release;
    larank::units<T>().compare_rows[int(kernel)](X.data(), Z.data(), int64_t(X.shape(1)), T(gamma), view);
}

template <class T>
larank::CsrRows<T> csr_rows(Vector<T> values, Vector<int32_t> columns, Vector<int64_t> starts, int64_t features) {
    const int64_t rows = int64_t(starts.shape(0)) - 1;
    const int64_t stored = int64_t(values.shape(0));
    bool ordered = rows >= 0 && int64_t(columns.shape(0)) == stored && starts.data()[0] >= 0;
    for (int64_t i = 0; ordered && i < rows; ++i) ordered = starts.data()[i] <= starts.data()[i + 1];
    if (!ordered || starts.data()[rows] > stored)
        throw std::invalid_argument("starts must ascend from 0 to the number of values at most");
    for (int64_t e = starts.data()[0]; e < starts.data()[rows]; ++e)
        if (columns.data()[e] < 0 || columns.data()[e] >= features)
            throw std::invalid_argument("columns must count from 0 to the number of features less one");
    return {values.data(), columns.data(), starts.data(), rows};
}

template <class T>
void bind_kernel_maps(nb::module_& m) {
    using larank::ProductKernel;
    using larank::RowKernel;
    m.def(
        "map_rbf",
        [](Strided<T> tile, Vector<T> row_norms, Vector<T> column_norms, double gamma) {
            if (row_norms.shape(0) != tile.shape(0) || column_norms.shape(0) != tile.shape(1))
                throw std::invalid_argument(
                    "row_norms and column_norms must have one entry per row and column of tile");
            map_products<T>(ProductKernel::rbf, tile, {row_norms.data(), column_norms.data(), T(gamma), 0, 0});
        },
        "tile"_a.noconvert(), "row_norms"_a.noconvert(), "column_norms"_a.noconvert(), "gamma"_a);
    m.def(
        "map_polynomial",
        [](Strided<T> tile, double gamma, double coef0, int64_t degree) {
            map_products<T>(ProductKernel::polynomial, tile, {nullptr, nullptr, T(gamma), T(coef0), degree});
        },
        "tile"_a.noconvert(), "gamma"_a, "coef0"_a, "degree"_a);
    m.def(
        "map_sigmoid",
        [](Strided<T> tile, double gamma, double coef0) {
            map_products<T>(ProductKernel::sigmoid, tile, {nullptr, nullptr, T(gamma), T(coef0), 0});
        },
        "tile"_a.noconvert(), "gamma"_a, "coef0"_a);
    const auto bind_rows = [&m](const char* name, auto* function) {
        m.def(name, function, "X"_a.noconvert(), "Z"_a.noconvert(), "gamma"_a, "out"_a.noconvert());
    };
    bind_rows("compare_laplacian", &compare_rows<T, RowKernel::laplacian>);
    bind_rows("compare_chi_squared", &compare_rows<T, RowKernel::chi_squared>);
    bind_rows("compare_intersection", &compare_rows<T, RowKernel::intersection>);
    m.def(
        "sparse_products",
        [](Vector<T> x_values, Vector<int32_t> x_columns, Vector<int64_t> x_starts, Vector<T> z_values,
           Vector<int32_t> z_columns, Vector<int64_t> z_starts, int64_t features, Strided<T> out) {
            const larank::CsrRows<T> left = csr_rows(x_values, x_columns, x_starts, features);
            const larank::CsrRows<T> right = csr_rows(z_values, z_columns, z_starts, features);
            const larank::Tile<T> view = tile_of(out);
            if (left.rows != view.rows || right.rows != view.columns)
                throw std::invalid_argument("out must have one row per row of x and one column per row of z");
            nb::gil_scoped_release release;
            larank::sparse_products(left, right, features, view);
        },
        "x_values"_a.noconvert(), "x_columns"_a.noconvert(), "x_starts"_a.noconvert(), "z_values"_a.noconvert(),
        "z_columns"_a.noconvert(), "z_starts"_a.noconvert(), "features"_a, "out"_a.noconvert());
}

larank::IndexBase index_base_named(const std::string& name) {
    if (name == "zero") return larank::IndexBase::zero;
    if (name == "one") return larank::IndexBase::one;
    if (name == "detect") return larank::IndexBase::detect;
    throw std::invalid_argument("unknown index base '" + name + "'");
}

std::string_view view_of(const nb::bytes& text) { return {text.c_str(), text.size()}; }

template <class T>
nb::ndarray<nb::numpy, T> to_numpy(larank::Growing<T>& values) {
    const std::size_t size = values.size();
    T* block = values.release();
    return nb::ndarray<nb::numpy, T>(block, {size}, nb::capsule(block, [](void* p) noexcept { std::free(p); }));
}

template <class T>
void bind_svmlight_of(nb::module_& m, const char* reader_name) {
    using Reader = larank::SvmlightReader<T>;
    nb::class_<Reader>(m, reader_name)
        .def(
            "__init__",
            [](Reader* self, const std::string& base, int64_t features) {
                new (self) Reader(index_base_named(base), features);
            },
            nb::kw_only(), "base"_a, "features"_a)
        .def_prop_ro("lines", &Reader::lines)
        .def(
            "feed",
            [](Reader& self, const nb::bytes& text) {
                const std::string_view view = view_of(text);
                nb::gil_scoped_release release;
                self.feed(view);
            },
            "text"_a)
        .def("finish", [](Reader& self) {
            self.finish();
            const std::size_t starts = self.starts().size(), rows = self.row_lines().size();
            return nb::make_tuple(to_numpy(self.values()), to_numpy(self.indices()),
                                  to_numpy(std::move(self.starts()), {starts}), self.features(),
                                  nb::bytes(self.labels().data(), self.labels().size()),
                                  to_numpy(std::move(self.row_lines()), {rows}));
        });
    m.def(
        "svmlight_text",
        [](Vector<T> values, Vector<int32_t> indices, Vector<int64_t> starts, int64_t first, int64_t last,
           const nb::bytes& labels, int32_t base) {
            std::string text;
            {
                const std::string_view view = view_of(labels);
                nb::gil_scoped_release release;
                text = larank::svmlight_text(values.data(), indices.data(), starts.data(), first, last, view, base);
            }
            return nb::bytes(text.data(), text.size());
        },
        "values"_a.noconvert(), "indices"_a.noconvert(), "starts"_a.noconvert(), "first"_a, "last"_a, "labels"_a,
        "base"_a);
}

template <class T>
nb::object decimals(const nb::bytes& text) {
    std::vector<T> numbers;
    const std::string_view view = view_of(text);
    {
        nb::gil_scoped_release release;
        if (!larank::read_decimals(view, numbers)) numbers.clear();
    }
    const std::size_t count = numbers.size();
    if (count == 0 && !view.empty()) return nb::none();
    return nb::cast(to_numpy(std::move(numbers), {count}));
}

nb::object label_numbers(const nb::bytes& text) {
    larank::LabelNumbers labels;
    if (!labels.read(view_of(text))) return nb::none();
    const std::size_t integers = labels.integers.size(), reals = labels.reals.size();
    if (reals) return nb::cast(to_numpy(std::move(labels.reals), {reals}));
    return nb::cast(to_numpy(std::move(labels.integers), {integers}));
}

void bind_svmlight(nb::module_& m) {
    bind_svmlight_of<float>(m, "SvmlightReader32");
    bind_svmlight_of<double>(m, "SvmlightReader64");
    m.def("decimals32", &decimals<float>, "text"_a);
    m.def("decimals64", &decimals<double>, "text"_a);
    m.def("label_numbers", &label_numbers, "text"_a);
}

}  // namespace

NB_MODULE(_core, m) {
    const char* level = std::getenv("LARANK_SIMD");
    larank::set_simd_level(level && *level ? level : larank::simd_levels().back());
    m.def("simd_level", &larank::simd_level);
    m.def("simd_levels", &larank::simd_levels);
    m.def("set_simd_level", &larank::set_simd_level, "level"_a);

    nb::class_<larank::Objectives>(m, "Objectives")
        .def_ro("primal", &larank::Objectives::primal)
        .def_ro("dual", &larank::Objectives::dual)
        .def_ro("violation", &larank::Objectives::violation);
    nb::class_<larank::SdmCounters>(m, "SdmCounters")
        .def_ro("visits", &larank::SdmCounters::visits)
        .def_ro("steps", &larank::SdmCounters::steps)
        .def_ro("full_loops", &larank::SdmCounters::full_loops)
        .def_ro("shrunk_loops", &larank::SdmCounters::shrunk_loops);
    nb::class_<SdmSession>(m, "SdmSession")
        .def("advance", &SdmSession::advance, "work"_a, nb::call_guard<nb::gil_scoped_release>())
        .def("evaluate", &SdmSession::evaluate, nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("estimate", [](const SdmSession& s) { return s.estimate(); })
        .def_prop_ro("counters", [](const SdmSession& s) { return s.counters(); })
        .def_prop_ro("estimate_is_at_full_cost", &SdmSession::estimate_is_at_full_cost)
        .def("take_weights", &SdmSession::take_weights)
        .def("coefficients", &SdmSession::coefficients)
        .def("start_from", &SdmSession::start_from, "values"_a.noconvert(), "classes"_a.noconvert(),
             "starts"_a.noconvert());
    nb::class_<larank::LaRankCounters>(m, "LaRankCounters")
        .def_ro("operations", &larank::LaRankCounters::operations)
        .def_ro("steps", &larank::LaRankCounters::steps)
        .def_ro("argmax", &larank::LaRankCounters::argmax)
        .def_ro("selection_seconds", &larank::LaRankCounters::selection_seconds)
        .def_ro("step_seconds", &larank::LaRankCounters::step_seconds);
    bind_kernel_larank<float>(m, "KernelLaRank32");
    bind_kernel_larank<double>(m, "KernelLaRank64");
    bind_linear_larank<float>(m, "LinearLaRank32");
    bind_linear_larank<double>(m, "LinearLaRank64");
    m.def("row_scores", &row_scores, "x"_a.noconvert(), "columns"_a.noconvert(), "W"_a.noconvert());
    m.def("solve_row", &solve_row, "formulation"_a, "scores"_a.noconvert(), "coefficients"_a.noconvert(), "label"_a,
          "A"_a, "C"_a);
    bind_sdm_dense<float>(m);
    bind_sdm_dense<double>(m);
    bind_sdm_csr<float, int32_t>(m);
    bind_sdm_csr<float, int64_t>(m);
    bind_sdm_csr<double, int32_t>(m);
    bind_sdm_csr<double, int64_t>(m);
    bind_kernel_maps<float>(m);
    bind_kernel_maps<double>(m);
    bind_svmlight(m);
}
