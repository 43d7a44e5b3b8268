// The active set on a matrix of all kernel values.
#include "kernel/sharedset.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/choices.hpp"

namespace {

template <class T>
struct SharedSession {
    larank::SharedSet<T> solver;
    std::vector<nb::object> arrays;  // that the solver reads

    int64_t examples() const { return solver.problem().examples; }
    int64_t classes() const { return solver.problem().classes; }
};

template <class T>
void shared_session(SharedSession<T>* self, Table<T> matrix, Vector<int32_t> labels, Table<double> delta,
                    int64_t memory_limit) {
    const int64_t examples = int64_t(labels.shape(0)), classes = int64_t(delta.shape(0));
    if (int64_t(matrix.shape(0)) != examples || int64_t(matrix.shape(1)) != examples)
        throw std::invalid_argument("matrix must have a row and a column per label");
    if (classes < 2 || int64_t(delta.shape(1)) != classes)
        throw std::invalid_argument("delta must be square, with two classes or more");
    for (int64_t i = 0; i < examples; ++i)
        if (labels.data()[i] < 0 || labels.data()[i] >= classes)
            throw std::invalid_argument("labels must count from 0 to the number of classes less one");
    const larank::SharedProblem<T> problem{matrix.data(), examples, classes, labels.data(), delta.data()};
    new (self) SharedSession<T>{larank::SharedSet<T>(problem, memory_limit),
                                {nb::cast(matrix), nb::cast(labels), nb::cast(delta)}};
}

template <class T>
void check_ids(const SharedSession<T>& s, Vector<int64_t> ids) {
    for (std::size_t n = 0; n < ids.shape(0); ++n)
        if (ids.data()[n] < 0 || ids.data()[n] >= s.examples())
            throw std::invalid_argument("ids must be numbers of examples");
}

template <class T, class Scores>
void check_scores(const SharedSession<T>& s, const Scores& scores) {
    if (int64_t(scores.shape(0)) != s.examples() || int64_t(scores.shape(1)) != s.classes())
        throw std::invalid_argument("scores must have a row per example and a column per class");
}

using Scores = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
void bind_shared_set(nb::module_& m, const char* name) {
    using S = SharedSession<T>;
    nb::class_<S>(m, name)
        .def("__init__", &shared_session<T>, "matrix"_a.noconvert(), "labels"_a.noconvert(), "delta"_a.noconvert(),
             "memory_limit"_a)
        .def(
            "set_costs",
            [](S& s, Vector<double> costs) {
                if (int64_t(costs.shape(0)) != s.examples())
                    throw std::invalid_argument("costs must have an entry for every example");
                s.solver.set_costs(costs.data());
            },
            "costs"_a.noconvert())
        .def(
            "set_tau", [](S& s, double tau) { s.solver.set_tau(tau); }, "tau"_a)
        .def(
            "set_formulation",
            [](S& s, const std::string& formulation) {
                s.solver.set_formulation(named<larank::Formulation>(formulation));
            },
            "formulation"_a)
        .def(
            "process",
            [](S& s, Vector<int64_t> ids) {
                check_ids(s, ids);
                const nb::gil_scoped_release release;
                s.solver.process(ids.data(), int64_t(ids.shape(0)));
            },
            "ids"_a.noconvert())
        .def(
            "converge", [](S& s, int64_t visits) { return s.solver.converge(visits); }, "visits"_a,
            nb::call_guard<nb::gil_scoped_release>())
        .def(
            "begin_look", [](S& s) { return s.solver.begin_look(); }, nb::call_guard<nb::gil_scoped_release>())
        .def(
            "look",
            [](S& s, int64_t first, int64_t last, Scores scores) {
                check_scores(s, scores);
                if (first < 0 || first > last || last > s.examples())
                    throw std::invalid_argument("first and last must be numbers of examples");
                const nb::gil_scoped_release release;
                s.solver.look(first, last, scores.data());
            },
            "first"_a, "last"_a, "scores"_a.noconvert())
        .def(
            "judge",
            [](S& s, Table<double> scores, double low, double high, double precision) {
                check_scores(s, scores);
                const nb::gil_scoped_release release;
                return s.solver.judge(scores.data(), low, high, precision);
            },
            "scores"_a.noconvert(), "low"_a, "high"_a, "precision"_a)
        .def(
            "extend",
            [](S& s, Table<double> scores) {
                check_scores(s, scores);
                const nb::gil_scoped_release release;
                s.solver.extend(scores.data());
            },
            "scores"_a.noconvert())
        .def("prune", [](S& s) { s.solver.prune(); })
        .def(
            "set_coefficients",
            [](S& s, Vector<int64_t> ids, Table<double> values) {
                check_ids(s, ids);
                if (values.shape(0) != ids.shape(0) || int64_t(values.shape(1)) != s.classes())
                    throw std::invalid_argument("values must have a row per id and a column per class");
                const nb::gil_scoped_release release;
                s.solver.set_coefficients(ids.data(), int64_t(ids.shape(0)), values.data());
            },
            "ids"_a.noconvert(), "values"_a.noconvert())
        .def("table", [](const S& s) { return s.solver.support(); })
        .def_prop_ro("columns", &S::classes)
        .def_prop_ro("has_bounded", [](const S& s) { return s.solver.has_bounded(); })
        .def_prop_ro("counters", [](const S& s) { return s.solver.counters(); })
        .def_prop_ro("support_patterns", [](const S& s) { return s.solver.support_patterns(); })
        .def_prop_ro("support_vectors", [](const S& s) { return s.solver.support_vectors(); })
        .def_prop_ro("moves", [](const S& s) { return s.solver.moves(); })
        .def_prop_ro("bytes", [](const S& s) { return s.solver.bytes(); });
}

}  // namespace

void bind_shared_sets(nb::module_& m) {
    using larank::SharedObjectives;
    bind_struct<SharedObjectives>(m, "SharedObjectives", "primal", &SharedObjectives::primal, "linear",
                                  &SharedObjectives::linear, "half_squared_norm", &SharedObjectives::half_squared_norm,
                                  "scale", &SharedObjectives::scale, "outside", &SharedObjectives::outside,
                                  "of_members", &SharedObjectives::of_members);
    bind_shared_set<float>(m, "SharedSet32");
    bind_shared_set<double>(m, "SharedSet64");
}
