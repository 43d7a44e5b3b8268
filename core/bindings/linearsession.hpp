// The sessions of solvers on linear features: fed the examples themselves, they keep weights and no kernel values.
#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <tuple>

#include "bindings/session.hpp"

template <class Solver>
struct LinearSession {
    using T = typename Solver::Value;

    template <class... Arguments>
    explicit LinearSession(Arguments&&... arguments) : solver(std::forward<Arguments>(arguments)...) {}
    LinearSession(const LinearSession&) = delete;
    LinearSession(LinearSession&&) = delete;

    Solver solver;
    FedExamples fed;
};

template <class S>
void feed_linear(S& s, const larank::Matrix<typename S::T>& X, std::vector<nb::object> arrays, Vector<int64_t> ids,
                 Vector<int32_t> labels, Vector<double> costs, Vector<double> diagonal) {
    if (X.columns != s.solver.machine().features()) throw std::invalid_argument("the number of features has changed");
    const larank::Examples examples = s.fed.keep(ids, labels, costs, diagonal, X.rows, std::move(arrays));
    s.solver.feed(X, examples);
    s.fed.accept(examples);
}

// The patterns in these slots of a linear machine: values, columns (None if dense) and where each begins.
template <class S>
auto patterns_of(const S& s, Vector<int32_t> slots) {
    using T = typename S::T;
    const auto& machine = s.solver.machine();
    std::vector<larank::Row<T>> rows;
    std::vector<int64_t> columns, starts{0};
    bool is_dense = true;
    for (std::size_t n = 0; n < slots.shape(0); ++n) {
        const int32_t slot = slots.data()[n];
        if (slot < 0 || slot >= s.solver.table().slots())
            throw std::invalid_argument("slots must be those of patterns");
        const larank::Row<T> x = rows.emplace_back(machine.row(slot));
        is_dense = is_dense && x.count == machine.features() && !x.columns32 && !x.columns64;
        starts.push_back(starts.back() + x.count);
    }
    std::vector<T> values;
    values.reserve(std::size_t(starts.back()));
    for (const larank::Row<T>& x : rows) {
        values.insert(values.end(), x.values, x.values + x.count);
        if (is_dense) continue;
        for (int64_t j = 0; j < x.count; ++j)
            columns.push_back(x.columns32 ? int64_t{x.columns32[j]} : x.columns64 ? x.columns64[j] : j);
    }
    std::optional<nb::ndarray<nb::numpy, int64_t>> named_columns;
    if (!is_dense) named_columns = to_numpy(std::move(columns));
    return std::tuple{to_numpy(std::move(values)), named_columns, to_numpy(std::move(starts))};
}

// A row per class; the last column is that of the constant feature, where there is one.
template <class Machine>
auto weights_of(const Machine& machine, const larank::AlignedArray<typename Machine::Value>& by_feature) {
    using T = typename Machine::Value;
    const int64_t classes = machine.classes(), lanes = machine.lanes(), rows = machine.weight_rows();
    std::vector<T> W(std::size_t(classes * rows));
    for (int64_t j = 0; j < rows; ++j)
        for (int64_t y = 0; y < classes; ++y) W[std::size_t(y * rows + j)] = by_feature.data()[j * lanes + y];
    return to_numpy(std::move(W), {std::size_t(classes), std::size_t(rows)});
}

template <class Index, class S>
void bind_linear_csr(nb::class_<S>& bound) {
    using T = typename S::T;
    bound.def(
        "feed",
        [](S& s, Vector<T> values, Vector<Index> columns, Vector<int64_t> starts, int64_t features, Vector<int64_t> ids,
           Vector<int32_t> labels, Vector<double> costs, Vector<double> diagonal) {
            feed_linear(s, matrix_of(values, columns, starts, features),
                        {nb::cast(values), nb::cast(columns), nb::cast(starts)}, ids, labels, costs, diagonal);
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "starts"_a.noconvert(), "features"_a, "ids"_a.noconvert(),
        "labels"_a.noconvert(), "costs"_a.noconvert(), "diagonal"_a.noconvert());
}

template <class S>
nb::class_<S> bind_linear_session(nb::module_& m, const char* name) {
    using T = typename S::T;
    nb::class_<S> bound = bind_any_session<S>(m, name);
    bound
        .def(
            "feed",
            [](S& s, Table<T> X, Vector<int64_t> ids, Vector<int32_t> labels, Vector<double> costs,
               Vector<double> diagonal) { feed_linear(s, matrix_of(X), {nb::cast(X)}, ids, labels, costs, diagonal); },
            "X"_a.noconvert(), "ids"_a.noconvert(), "labels"_a.noconvert(), "costs"_a.noconvert(),
            "diagonal"_a.noconvert())
        .def(
            "run",
            [](S& s, int64_t end) {
                s.fed.check(end);
                const nb::gil_scoped_release release;
                s.solver.run(end);
            },
            "end"_a)
        .def(
            "finish", [](S& s) { s.solver.finish(); }, nb::call_guard<nb::gil_scoped_release>())
        // The patterns of a saved model are the rows of the block that was fed.
        .def(
            "restore",
            [](S& s, const larank::SupportArrays& saved) {
                check_restored(s.solver, saved);
                s.fed.check(saved.size());
                for (int64_t n = 0; n < saved.size(); ++n)
                    s.solver.restore(s.solver.machine().block_row(n), saved, std::size_t(n));
            },
            "table"_a)
        // After a snapshot was read, the patterns in these slots are the rows of the block that was fed.
        .def(
            "take_patterns",
            [](S& s, Vector<int32_t> slots) {
                s.fed.check(int64_t(slots.shape(0)));
                for (int64_t n = 0; n < int64_t(slots.shape(0)); ++n) {
                    const int32_t slot = slots.data()[n];
                    if (slot < 0 || slot >= s.solver.table().slots() || !s.solver.table().contains(slot))
                        throw std::invalid_argument("slots must be those of patterns");
                    s.solver.machine().put_row(slot, s.solver.machine().block_row(n));
                }
            },
            "slots"_a.noconvert())
        .def_prop_ro("features", [](const S& s) { return s.solver.machine().features(); })
        // The value of the constant feature, 0 where there is none.
        .def_prop_ro("intercept", [](const S& s) { return double(s.solver.machine().intercept()); })
        .def("patterns", &patterns_of<S>, "slots"_a.noconvert())
        .def("weights", [](const S& s) { return weights_of(s.solver.machine(), s.solver.machine().weights()); });
    bind_linear_csr<int32_t>(bound);
    bind_linear_csr<int64_t>(bound);
    return bound;
}
