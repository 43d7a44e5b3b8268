// The module that only test builds have: what tests look at inside sessions, and hot units on one example.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "ambiguous/pairwise.hpp"
#include "bindings/choices.hpp"
#include "bindings/concepts.hpp"
#include "bindings/larank.hpp"
#include "bindings/session.hpp"
#include "kernel/gram.hpp"
#include "kernel/huller.hpp"
#include "kernel/lasvm.hpp"
#include "kernel/mcsvm.hpp"
#include "kernel/perceptron.hpp"
#include "kernel/tracking.hpp"
#include "memory/rowcache.hpp"
#include "simd/units.hpp"

namespace {

using Doubles = nb::ndarray<nb::numpy, double>;

template <class S>
void bind_table_hooks(nb::module_& m) {
    // The id in each slot, -1 where it is free.
    m.def("slot_ids", [](const S& s) {
        const larank::SupportTable& table = s.solver.table();
        std::vector<int64_t> ids;
        for (int32_t slot = 0; slot < table.slots(); ++slot) ids.push_back(table.contains(slot) ? table[slot].id : -1);
        return to_numpy(std::move(ids));
    });
    m.def("support_vectors", [](const S& s) { return s.solver.table().vectors(); });
}

// [problem][slot] coefficients and gradients of LaSVM's members, NaN for those who are none.
template <class T>
std::pair<Doubles, Doubles> members(const Session<larank::LaSVM<T>>& s) {
    const std::size_t slots = std::size_t(s.solver.table().slots()), problems = s.solver.problems().size();
    std::vector<double> alpha(problems * slots, std::numeric_limits<double>::quiet_NaN()), g(alpha);
    for (std::size_t p = 0; p < problems; ++p) {
        const larank::PotentialSupport& set = s.solver.problems()[p];
        for (int64_t n = 0; n < set.members.size(); ++n) {
            if (!set.members.is_member(n)) continue;
            const std::size_t at = p * slots + std::size_t(set.slot_of[std::size_t(n)]);
            alpha[at] = set.members.alpha(n), g[at] = set.members.g(n);
        }
    }
    return {to_numpy(std::move(alpha), {problems, slots}), to_numpy(std::move(g), {problems, slots})};
}

// A row per tracked example in the order of arrival, a column per problem.
template <class T, class Value>
Doubles tracked(const larank::Tracker<T>& solver, Value value) {
    std::vector<double> values;
    for (int32_t i = 0; i < int32_t(solver.examples()); ++i)
        for (int32_t p = solver.first_problem(); p < solver.problems(); ++p) values.push_back(value(p, std::size_t(i)));
    return to_numpy(std::move(values), {std::size_t(solver.examples()), std::size_t(solver.columns())});
}

template <class T>
void bind_tracking_hooks(nb::module_& m) {
    using S = Session<larank::Tracker<T>>;
    m.def("alpha", [](const S& s) {
        return tracked(s.solver, [&](int32_t p, std::size_t i) { return s.solver.problem(p).alpha[i]; });
    });
    m.def("averaged", [](const S& s) {
        return tracked(s.solver, [&](int32_t p, std::size_t i) { return s.solver.averaged(p, int32_t(i)); });
    });
    m.def("scores", [](const S& s) {
        return tracked(s.solver, [&](int32_t p, std::size_t i) { return s.solver.problem(p).scores[i]; });
    });
    // By problem: the sum of all increases of the dual, and of those by PROCESS.
    m.def("increases", [](const S& s) {
        std::vector<double> values;
        for (int32_t p = s.solver.first_problem(); p < s.solver.problems(); ++p)
            values.insert(values.end(), {s.solver.problem(p).dual, s.solver.problem(p).process_increase});
        return to_numpy(std::move(values), {std::size_t(s.solver.columns()), 2});
    });
}

template <class T>
void bind_mcsvm_hooks(nb::module_& m) {
    using S = larank::Mcsvm<T>;
    m.def("scores", [](const S& s) {
        std::vector<double> scores;
        for (int64_t i = 0; i < s.examples(); ++i)
            for (int64_t r = 0; r < s.classes(); ++r) scores.push_back(s.score(i, r));
        return to_numpy(std::move(scores), {std::size_t(s.examples()), std::size_t(s.classes())});
    });
    m.def("violations", [](const S& s) {
        std::vector<double> psi;
        for (int64_t i = 0; i < s.examples(); ++i) psi.push_back(s.violation(i));
        return to_numpy(std::move(psi));
    });
    m.def("accuracy", [](const S& s) { return s.accuracy(); });
    m.def("cached_rows", [](const S& s) { return s.cached_rows(); });
}

// Whether two classes share one column.
template <class T, class Rule>
void bind_perceptron_hooks(nb::module_& m) {
    bind_table_hooks<Session<larank::Perceptron<T, Rule>>>(m);
    m.def("is_single", [](const Session<larank::Perceptron<T, Rule>>& s) { return s.solver.is_single(); });
}

template <class T>
void bind_session_hooks(nb::module_& m) {
    bind_table_hooks<KernelLaRank<T>>(m);
    bind_table_hooks<LinearLaRank<T>>(m);
    bind_table_hooks<Session<larank::LaSVM<T>>>(m);
    bind_table_hooks<Session<larank::Huller<T>>>(m);
    bind_table_hooks<Session<larank::Tracker<T>>>(m);
    bind_perceptron_hooks<T, larank::PerceptronRule>(m);
    bind_perceptron_hooks<T, larank::PassiveAggressiveRule>(m);
    // Whether the sets E(y, i) are kept, or gathered from the rows.
    m.def("keeps_sets", [](const KernelLaRank<T>& s) { return s.solver.machine().keeps_sets(); });
    m.def("members", &members<T>);
    bind_tracking_hooks<T>(m);
    bind_mcsvm_hooks<T>(m);
}

// x times W at the columns of x.
std::vector<double> row_scores(Vector<double> x, Vector<int32_t> columns, Table<double> W) {
    const int64_t classes = int64_t(W.shape(1)), lanes = larank::padded<double>(classes);
    larank::AlignedArray<double> weights(int64_t(W.shape(0)) * lanes), out(lanes);
    for (int64_t j = 0; j < int64_t(W.shape(0)); ++j)
        std::copy(W.data() + j * classes, W.data() + (j + 1) * classes, weights.data() + j * lanes);
    const larank::Row<double> row{x.data(), columns.data(), nullptr, int64_t(x.shape(0)), 0, 0};
    larank::units<double>().scores(row, weights.data(), lanes, true, out.data());
    return {out.data(), out.data() + classes};
}

// One row QP: its violation, its losses at the costs C and C_rest, and the changes of the coefficients.
std::tuple<double, double, double, std::vector<double>> solve_row(const std::string& formulation, Vector<double> scores,
                                                                  Vector<double> coefficients, int64_t label, double A,
                                                                  double C, double C_rest) {
    const int64_t classes = int64_t(scores.shape(0)), lanes = larank::padded<double>(classes);
    larank::AlignedArray<double> s(lanes), a(lanes), work(lanes), change(lanes);
    std::copy(scores.data(), scores.data() + classes, s.data());
    std::copy(coefficients.data(), coefficients.data() + classes, a.data());
    const auto step = larank::units<double>().solve_row[int(named<larank::Formulation>(formulation))](
        {s.data(), a.data(), classes, lanes, label, A, C, 0.0, C_rest}, work.data(), change.data());
    std::vector<double> moved(std::size_t(classes), 0.0);
    if (step.moved) std::copy(change.data(), change.data() + classes, moved.begin());
    return {step.violation, step.loss, step.rest_loss, moved};
}

// The set of all labels with weight, among all classes.
larank::CandidateSet set_with(larank::CandidateSets& sets, Vector<double> weights) {
    std::vector<int32_t> labels;
    std::vector<double> shares;
    for (std::size_t c = 0; c < weights.shape(0); ++c)
        if (weights.data()[c] > 0) labels.push_back(int32_t(c)), shares.push_back(weights.data()[c]);
    return sets[sets.number_of(labels.data(), shares.data(), int64_t(labels.size()), int64_t(weights.shape(0)))];
}

// The loss, Delta(c) and the coefficients psi of line 2 of algorithm 23.
auto pairwise_ascent(Vector<double> scores, Vector<double> weights) {
    larank::CandidateSets sets;
    std::vector<double> psi(scores.shape(0));
    const larank::Ascent at = larank::PairwiseLoss().ascend(set_with(sets, weights), scores.data(), psi.data());
    return std::tuple{at.loss, at.delta, psi};
}

// The best coefficients of an example.
auto pairwise_solution(Vector<double> scores, Vector<double> weights, double kappa, double cost) {
    larank::CandidateSets sets;
    std::vector<double> beta(scores.shape(0));
    larank::PairwiseLoss().solve(set_with(sets, weights), scores.data(), kappa, cost, beta.data());
    return beta;
}

// A row of a cache, if it is kept.
std::optional<std::vector<double>> copied(const double* row, int64_t columns) {
    return row ? std::optional(std::vector<double>(row, row + columns)) : std::nullopt;
}

void bind_rows(nb::module_& m) {
    using Cache = larank::RowCache<double>;
    nb::class_<Cache>(m, "RowCache")
        .def(nb::init<int64_t, int64_t, int64_t>(), "examples"_a, "bytes"_a, "in_use"_a)
        .def("has", &Cache::has)
        .def("find", [](Cache& rows, int64_t id, int64_t columns) { return copied(rows.find(id), columns); })
        .def("insert", [](Cache& cache, int64_t example, Vector<double> row) { cache.insert(example, row.data()); })
        .def("forget", &Cache::forget)
        .def("narrow", &Cache::narrow)
        .def_prop_ro("rows", &Cache::rows)
        .def_prop_ro("bytes", &Cache::bytes);
    using Gram = larank::Gram<double>;
    nb::class_<Gram>(m, "Gram")
        .def(nb::init<int64_t>(), "spared"_a)
        .def("add",
             [](Gram& rows, int64_t member, Vector<double> values) {
                 const double* const first = values.data();
                 std::copy(first, first + values.shape(0), rows.add(member, int64_t(values.shape(0))));
             })
        .def("find", [](Gram& rows, int64_t id, int64_t columns) { return copied(rows.find(id, columns), columns); })
        .def("stay_within", &Gram::stay_within, "most"_a, "kept"_a)
        .def_prop_ro("resident", &Gram::resident)
        .def_prop_ro("bytes", &Gram::bytes);
}

}  // namespace

NB_MODULE(_core_hooks, m) {
    nb::module_::import_("larank._core");  // it has the types of the sessions
    larank::set_simd_level(larank::simd_levels().back());
    m.def("set_simd_level", &larank::set_simd_level, "level"_a);  // of the units of this module
    bind_session_hooks<float>(m);
    bind_session_hooks<double>(m);
    bind_chain_hooks(m);
    bind_rows(m);
    concepts::bind_labeler<double>(m, "ConceptLabelerInDouble");
    m.def("pairwise_ascent", &pairwise_ascent, "scores"_a.noconvert(), "weights"_a.noconvert());
    m.def("pairwise_solution", &pairwise_solution, "scores"_a.noconvert(), "weights"_a.noconvert(), "kappa"_a,
          "cost"_a);
    m.def("row_scores", &row_scores, "x"_a.noconvert(), "columns"_a.noconvert(), "W"_a.noconvert());
    m.def("solve_row", &solve_row, "formulation"_a, "scores"_a.noconvert(), "coefficients"_a.noconvert(), "label"_a,
          "A"_a, "C"_a, "C_rest"_a);
}
