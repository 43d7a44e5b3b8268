// One contract for the compiled sessions of all kernel solvers: fed blocks, run, finished, and read as one support
// table.
//
// What a solver must have, and what each of it means, is what `bind_session` calls. A call that may need kernel values
// which the session does not keep is handed their source, a Python object with `rows(slots)` and
// `between(slots, others)`. It is asked before a step begins, and what it raises passes through.
#pragma once

#include <nanobind/stl/pair.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "blocks/source.hpp"
#include "kernel/patternrows.hpp"
#include "kernel/support.hpp"

template <class T>
using KernelBlock = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A Python object that computes kernel values. It is made and ends with the GIL, and is asked without.
template <class T>
class PythonSource final : public larank::KernelSource<T> {
  public:
    explicit PythonSource(nb::handle source) : source_(source) {}

    larank::SourceRows<T> rows(const std::vector<int32_t>& slots, int64_t columns) override {
        const nb::gil_scoped_acquire gil;
        return checked(source_.attr("rows")(copied(slots)), slots.size(), std::size_t(columns));
    }
    larank::SourceRows<T> between(const std::vector<int32_t>& slots, const std::vector<int32_t>& others) override {
        const nb::gil_scoped_acquire gil;
        return checked(source_.attr("between")(copied(slots), copied(others)), slots.size(), others.size());
    }

  private:
    static auto copied(const std::vector<int32_t>& slots) {
        return to_numpy(std::vector<int32_t>(slots), {slots.size()});
    }

    larank::SourceRows<T> checked(nb::object answer, std::size_t rows, std::size_t columns) {
        if (!nb::try_cast(answer, values_, false))
            throw std::invalid_argument(std::string("the source must answer with a C-contiguous array of ") +
                                        dtype_name<T>());
        if (values_.shape(0) != rows || values_.shape(1) < columns)
            throw std::invalid_argument("the source must answer with " + std::to_string(rows) + " rows and " +
                                        std::to_string(columns) + " columns, got " + std::to_string(values_.shape(0)) +
                                        " and " + std::to_string(values_.shape(1)));
        return {values_.data(), int64_t(values_.shape(1))};
    }

    nb::handle source_;
    Table<T> values_;  // the last answer
};

// What a block says of its examples: checked, and kept alive with the block's own arrays until the next one. Only when
// the solver has taken the block are there examples to work on.
class FedExamples {
  public:
    larank::Examples keep(Vector<int64_t> ids, Vector<int32_t> labels, Vector<double> costs, Vector<double> diagonal,
                          int64_t count, std::vector<nb::object> arrays) {
        for (const std::size_t length : {ids.shape(0), labels.shape(0), costs.shape(0), diagonal.shape(0)})
            if (int64_t(length) != count) throw std::invalid_argument("the block's arrays differ in length");
        if (std::any_of(labels.data(), labels.data() + count, [](int32_t label) { return label < 0; }))
            throw std::invalid_argument("labels must not be negative");
        arrays_ = std::move(arrays);
        for (const nb::object& array : {nb::cast(ids), nb::cast(labels), nb::cast(costs), nb::cast(diagonal)})
            arrays_.push_back(array);
        count_ = 0;
        return {count, ids.data(), labels.data(), costs.data(), diagonal.data()};
    }
    void accept(const larank::Examples& taken) { count_ = taken.count; }
    void check(int64_t end) const {
        if (end > count_) throw std::invalid_argument("the block has fewer examples than that");
    }

  private:
    std::vector<nb::object> arrays_;
    int64_t count_ = 0;
};

// A table is sound by itself; here it must be one of this session.
template <class Solver>
void check_restored(const Solver& solver, const larank::SupportArrays& saved) {
    using T = typename Solver::Value;
    const auto is_finite = [](double value) { return std::isfinite(T(value)); };
    if (solver.table().slots() != 0) throw std::invalid_argument("only an empty session can take over a table");
    for (const int32_t label : saved.labels)
        if (!solver.knows(label))
            throw std::invalid_argument("labels must be those of the session, got " + std::to_string(label));
    if (!std::all_of(saved.diagonal.begin(), saved.diagonal.end(), is_finite) ||
        !std::all_of(saved.coefficients.begin(), saved.coefficients.end(), is_finite))
        throw std::invalid_argument("diagonal and coefficients must be finite in the precision of the session");
    for (std::size_t e = 0; e < saved.columns.size(); ++e)
        if (!solver.accepts(saved.columns[e], saved.coefficients[e]))
            throw std::invalid_argument("coefficients must be such as the session can have, got " +
                                        std::to_string(saved.coefficients[e]) + " in column " +
                                        std::to_string(saved.columns[e]));
}

template <class Solver>
struct Session {
    using T = typename Solver::Value;

    template <class... Arguments>
    explicit Session(Arguments&&... arguments) : solver(std::forward<Arguments>(arguments)...) {}
    Session(const Session&) = delete;
    Session(Session&&) = delete;

    void feed(KernelBlock<T> kernel, Table<T> within, Vector<int64_t> ids, Vector<int32_t> labels, Vector<double> costs,
              Vector<double> diagonal) {
        const int64_t count = int64_t(kernel.shape(0));
        if (int64_t(within.shape(0)) != count || int64_t(within.shape(1)) != count)
            throw std::invalid_argument("within must have one row and column per row of kernel");
        const larank::Examples examples =
            fed.keep(ids, labels, costs, diagonal, count, {nb::cast(kernel), nb::cast(within)});
        const nb::gil_scoped_release release;
        solver.feed(larank::Block<T>{count, int64_t(kernel.shape(1)), kernel.data(), within.data()}, examples);
        fed.accept(examples);
    }

    // Lets the solver work, without the GIL and with a source of kernel values.
    template <class Work>
    auto work(nb::handle source, Work with_solver) {
        PythonSource<T> asked(source);
        const typename larank::PatternRows<T>::Loan loan(solver.rows(), asked);
        const nb::gil_scoped_release release;
        return with_solver(solver);
    }
    void run(int64_t end, nb::handle source) {
        fed.check(end);
        work(source, [end](Solver& s) { s.run(end); });
    }
    void finish(nb::handle source) {
        work(source, [](Solver& s) { s.finish(); });
    }

    // The patterns of a saved model take the slots 0, 1, ...
    void restore(const larank::SupportArrays& saved, nb::handle source) {
        constexpr int64_t at_once = 256;
        check_restored(solver, saved);
        PythonSource<T> asked(source);
        for (int64_t first = 0; first < saved.size(); first += at_once) {
            std::vector<int32_t> slots(std::size_t(std::min(at_once, saved.size() - first)));
            std::iota(slots.begin(), slots.end(), int32_t(first));
            larank::SourceRows<T> kernel{nullptr, 0};
            if (solver.rows().are_kept()) kernel = asked.rows(slots, first + int64_t(slots.size()));
            for (std::size_t n = 0; n < slots.size(); ++n) solver.restore(kernel[n], saved, std::size_t(first) + n);
        }
    }

    Solver solver;
    FedExamples fed;
};

// The slots and ids of the patterns that were born from the block at hand.
inline auto newborn_arrays(const larank::SupportTable& table) {
    std::vector<int32_t> slots = table.newborn();
    std::vector<int64_t> ids;
    for (const int32_t slot : slots) ids.push_back(table[slot].id);
    return std::pair{to_numpy(std::move(slots)), to_numpy(std::move(ids))};
}

// The slots in use, in increasing order, and the ids of their patterns.
inline auto present_arrays(const larank::SupportTable& table) {
    std::vector<int32_t> slots = table.present();
    std::sort(slots.begin(), slots.end());
    std::vector<int64_t> ids;
    for (const int32_t slot : slots) ids.push_back(table[slot].id);
    return std::pair{to_numpy(std::move(slots)), to_numpy(std::move(ids))};
}

// What sessions of kernels and of linear features have in common.
template <class S>
nb::class_<S> bind_any_session(nb::module_& m, const char* name) {
    nb::class_<S> bound(m, name);
    bound.attr("dtype") = nb::str(dtype_name<typename S::T>());
    bound.def("begin_another_epoch", [](S& s) { s.solver.begin_another_epoch(); })
        .def("newborn", [](const S& s) { return newborn_arrays(s.solver.table()); })
        .def("table", [](S& s) { return s.solver.support(); })
        .def_prop_ro("columns", [](const S& s) { return s.solver.columns(); })
        .def_prop_ro("classes", [](const S& s) { return s.solver.classes(); })
        .def_prop_ro("slots", [](const S& s) { return s.solver.table().slots(); })
        .def_prop_ro("support_patterns", [](const S& s) { return s.solver.support_patterns(); })
        .def_prop_ro("bytes", [](const S& s) { return s.solver.bytes(); })
        .def_prop_ro("counters", [](const S& s) { return s.solver.counters(); })
        // The state of the stream as bytes, and back. What was read has no kernel values and no examples yet.
        .def("snapshot",
             [](S& s) {
                 larank::SnapshotWriter writer;
                 writer(s.solver);
                 return to_numpy(writer.take());
             })
        .def(
            "read_snapshot",
            [](S& s, Vector<uint8_t> bytes) {
                if (s.solver.table().slots() != 0)
                    throw std::invalid_argument("only an empty session can read a snapshot");
                larank::SnapshotReader reader(bytes.data(), bytes.shape(0));
                reader(s.solver);
                reader.end();
            },
            "bytes"_a.noconvert())
        .def("present", [](const S& s) { return present_arrays(s.solver.table()); });
    return bound;
}

template <class Solver>
nb::class_<Session<Solver>> bind_session(nb::module_& m, const char* name) {
    using S = Session<Solver>;
    nb::class_<S> bound = bind_any_session<S>(m, name);
    bound
        .def("feed", &S::feed, "kernel"_a.noconvert(), "within"_a.noconvert(), "ids"_a.noconvert(),
             "labels"_a.noconvert(), "costs"_a.noconvert(), "diagonal"_a.noconvert())
        .def("run", &S::run, "end"_a, "source"_a.none())
        .def("finish", &S::finish, "source"_a.none())
        // After a snapshot was read, and the source knows the patterns.
        .def(
            "bring_all_rows",
            [](S& s, nb::handle source) { s.work(source, [](Solver& solver) { solver.bring_all_rows(); }); },
            "source"_a)
        .def(
            "set_foreign_bytes", [](S& s, int64_t bytes) { s.solver.set_foreign_bytes(bytes); }, "bytes"_a)
        .def_prop_ro("resident_rows", [](const S& s) { return s.solver.rows().resident(); });
    return bound;
}

// For solvers that can take over a saved model.
template <class S>
void bind_restore(nb::class_<S>& bound) {
    bound.def("restore", &S::restore, "table"_a, "source"_a.none());
}

// The objectives as a solver of the dual keeps them on its way.
template <class S>
void bind_objectives(nb::class_<S>& bound) {
    bound.def_prop_ro("dual", [](const S& s) { return s.solver.dual(); })
        .def_prop_ro("half_squared_norm", [](const S& s) { return s.solver.half_squared_norm(); })
        .def_prop_ro("loss", [](const S& s) { return s.solver.loss(); });
}

// Decisions on examples known by their kernel values with the slots, one column each.
template <class S, class Decide>
void bind_decide(nb::class_<S>& bound, Decide decide) {
    bound.def(
        "decide",
        [decide](const S& s, Table<typename S::T> kernel) {
            const std::size_t rows = kernel.shape(0), columns = std::size_t(s.solver.columns());
            if (int64_t(kernel.shape(1)) < s.solver.table().slots())
                throw std::invalid_argument("kernel must have a column for every slot");
            std::vector<double> decisions(rows * columns);
            for (std::size_t n = 0; n < rows; ++n)
                decide(s.solver, kernel.data() + n * kernel.shape(1), decisions.data() + n * columns);
            return to_numpy(std::move(decisions), {rows, columns});
        },
        "kernel"_a.noconvert());
}
