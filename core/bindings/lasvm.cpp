// LaSVM on blocks of kernel values.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "bindings/arrays.hpp"
#include "bindings/sessions.hpp"
#include "kernel/lasvm.hpp"

namespace {

template <class T>
class LaSVMSession {
  public:
    LaSVMSession(const larank::LaSVMOptions& options, int64_t memory_limit) : solver(options, memory_limit) {}
    LaSVMSession(const LaSVMSession&) = delete;

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

    larank::LaSVM<T> solver;

  private:
    FedBlock<T> fed_;
};

// Coefficient of a problem's member as the model has it: finished where finishing has begun.
template <class T>
struct ModelView {
    explicit ModelView(larank::LaSVM<T>& solver) {
        const std::size_t slots = std::size_t(solver.rows().table().slots()), problems = solver.problems().size();
        alpha.assign(problems * slots, 0.0);
        for (std::size_t p = 0; p < problems; ++p) {
            const larank::PotentialSupport& s = solver.problems()[p];
            if (larank::Smo<T>* const smo = solver.finished(p)) {
                const larank::Members& members = smo->members();
                for (std::size_t n = 0; n < smo->slots().size(); ++n)
                    alpha[p * slots + std::size_t(smo->slots()[n])] = members.alpha(int64_t(n));
                const larank::Extremes at = smo->extremes();
                bias.push_back(at.at_largest >= 0 && at.at_smallest >= 0 ? (at.largest + at.smallest) / 2 : s.bias());
                delta.push_back(at.largest - at.smallest);
            } else {
                for (int64_t place = 0; place < s.members.size(); ++place)
                    if (s.members.is_member(place))
                        alpha[p * slots + std::size_t(s.slot_of[std::size_t(place)])] = s.members.alpha(place);
                bias.push_back(s.bias());
                delta.push_back(s.delta());
            }
        }
    }

    std::vector<double> alpha;  // [problem][slot]
    std::vector<double> bias, delta;
};

// The patterns with a coefficient slot by slot: slots, ids, labels, costs, coefficients [pattern][problem], and the
// bias and the uncertainty delta of each problem.
template <class T>
nb::tuple model_arrays(larank::LaSVM<T>& solver) {
    const ModelView<T> model(solver);
    const auto& table = solver.rows().table();
    const std::size_t slots = std::size_t(table.slots()), problems = solver.problems().size();
    std::vector<int32_t> used, labels;
    std::vector<int64_t> ids;
    std::vector<double> costs, alpha;
    for (std::size_t slot = 0; slot < slots; ++slot) {
        bool is_support = false;
        for (std::size_t p = 0; p < problems; ++p) is_support |= model.alpha[p * slots + slot] != 0;
        if (!is_support) continue;
        const larank::Pattern& pattern = table[int32_t(slot)];
        used.push_back(int32_t(slot)), ids.push_back(pattern.id), labels.push_back(pattern.label);
        costs.push_back(pattern.cost);
        for (std::size_t p = 0; p < problems; ++p) alpha.push_back(model.alpha[p * slots + slot]);
    }
    const std::size_t count = used.size();
    return nb::make_tuple(
        to_numpy(std::move(used), {count}), to_numpy(std::move(ids), {count}), to_numpy(std::move(labels), {count}),
        to_numpy(std::move(costs), {count}), to_numpy(std::move(alpha), {count, problems}),
        to_numpy(std::vector<double>(model.bias), {problems}), to_numpy(std::vector<double>(model.delta), {problems}));
}

template <class T>
void bind_session(nb::module_& m, const char* name) {
    using Session = LaSVMSession<T>;
    nb::class_<Session>(m, name)
        .def(
            "__init__",
            [](Session* self, double tau, double delta_max, int64_t memory_limit) {
                new (self) Session({tau, delta_max}, memory_limit);
            },
            nb::kw_only(), "tau"_a, "delta_max"_a, "memory_limit"_a)
        .def("feed", &Session::feed, "kernel"_a.noconvert(), "within"_a.noconvert(), "ids"_a.noconvert(),
             "labels"_a.noconvert(), "costs"_a.noconvert(), "diagonal"_a.noconvert())
        .def("run", &Session::run, "end"_a, nb::call_guard<nb::gil_scoped_release>())
        .def(
            "finish",
            [](Session& s) { return s.solver.finish(std::numeric_limits<int64_t>::max()) == larank::Progress::done; },
            nb::call_guard<nb::gil_scoped_release>())
        .def(
            "finish_some", [](Session& s, int64_t steps) { return s.solver.finish(steps) == larank::Progress::done; },
            "steps"_a, nb::call_guard<nb::gil_scoped_release>())
        // Members whose gradients must be brought up to date before finishing goes on, and the patterns whose
        // coefficients have changed.
        .def("stale",
             [](Session& s) {
                 const larank::Smo<T>* const smo = s.solver.finishing();
                 std::vector<int32_t> stale, changed;
                 if (smo) stale = smo->stale(), changed = smo->changed();
                 const std::size_t rows = stale.size(), columns = changed.size();
                 return nb::make_tuple(to_numpy(std::move(stale), {rows}), to_numpy(std::move(changed), {columns}));
             })
        .def(
            "bring_back",
            [](Session& s, int64_t first, Table<T> kernel) {
                larank::Smo<T>* const smo = s.solver.finishing();
                const int64_t count = int64_t(kernel.shape(0));
                if (!smo || first < 0 || first + count > int64_t(smo->stale().size()) ||
                    kernel.shape(1) != smo->changed().size())
                    throw std::invalid_argument(
                        "kernel must have a row for each stale member from the first on and a "
                        "column for each changed pattern");
                smo->bring_back(first, count, kernel.data());
            },
            "first"_a, "kernel"_a.noconvert())
        .def("take_over_finish", [](Session& s) { s.solver.take_over_finish(); })
        .def("go_on", [](Session& s) { s.solver.go_on(); })
        .def(
            "decide",
            [](Session& s, Table<T> kernel) {
                const std::size_t rows = kernel.shape(0), problems = s.solver.problems().size();
                if (int64_t(kernel.shape(1)) < s.solver.rows().table().slots())
                    throw std::invalid_argument("kernel must have a column for every slot");
                std::vector<double> f(rows * problems);
                for (std::size_t n = 0; n < rows; ++n)
                    s.solver.decide(kernel.data() + n * kernel.shape(1), f.data() + n * problems);
                return to_numpy(std::move(f), {rows, problems});
            },
            "kernel"_a.noconvert())
        // The distance to the decision boundary within which an example of either class makes a violating pair.
        .def_prop_ro("reach",
                     [](const Session& s) {
                         double delta = 0;
                         for (const auto& problem : s.solver.problems())
                             if (problem.delta() < std::numeric_limits<double>::infinity())
                                 delta = std::max(delta, problem.delta());
                         return 1 + delta / 2;
                     })
        .def_prop_ro("needed", [](const Session& s) { return s.solver.needed(); })
        .def(
            "provide",
            [](Session& s, const std::vector<int32_t>& slots, Table<T> rows) {
                if (rows.shape(0) != slots.size() || int64_t(rows.shape(1)) != s.solver.rows().table().slots())
                    throw std::invalid_argument("rows must have one row per slot asked for and one column per slot");
                for (std::size_t n = 0; n < slots.size(); ++n)
                    s.solver.provide(slots[n], rows.data() + n * rows.shape(1));
            },
            "slots"_a, "rows"_a.noconvert())
        .def(
            "restore",
            [](Session& s, Vector<T> row, int64_t id, int32_t label, double cost, double diagonal,
               Vector<double> alpha) {
                if (int64_t(row.shape(0)) != s.solver.rows().table().slots() + 1)
                    throw std::invalid_argument("row must hold the values with the slots before it and its own");
                if (alpha.shape(0) != s.solver.problems().size())
                    throw std::invalid_argument("alpha must have a coefficient for every problem");
                s.solver.restore(row.data(), id, label, cost, diagonal, alpha.data());
            },
            "row"_a.noconvert(), "id"_a, "label"_a, "cost"_a, "diagonal"_a, "alpha"_a.noconvert())
        .def("add_class", [](Session& s) { s.solver.add_class(); })
        .def("begin_another_epoch", [](Session& s) { s.solver.forget_loss(); })
        .def(
            "set_foreign_bytes", [](Session& s, int64_t bytes) { s.solver.set_foreign_bytes(bytes); }, "bytes"_a)
        .def_prop_ro("classes", [](const Session& s) { return s.solver.classes(); })
        .def_prop_ro("slots", [](const Session& s) { return s.solver.rows().table().slots(); })
        .def_prop_ro("support_patterns", [](const Session& s) { return s.solver.rows().table().size(); })
        .def_prop_ro("resident_rows", [](const Session& s) { return s.solver.rows().resident(); })
        .def_prop_ro("bytes", [](const Session& s) { return s.solver.rows().bytes() + s.solver.bytes_beside_rows(); })
        .def_prop_ro("dual",
                     [](const Session& s) {
                         double dual = 0;
                         for (std::size_t p = 0; p < s.solver.problems().size(); ++p) {
                             const larank::Smo<T>* const smo = s.solver.finished(p);
                             dual += s.solver.problems()[p].dual + (smo ? smo->gain() : 0.0);
                         }
                         return dual;
                     })
        .def_prop_ro("half_squared_norm",
                     [](const Session& s) {
                         double half = 0;
                         for (std::size_t p = 0; p < s.solver.problems().size(); ++p) {
                             const larank::PotentialSupport& problem = s.solver.problems()[p];
                             const larank::Smo<T>* const smo = s.solver.finished(p);
                             half += problem.linear - problem.dual;
                             if (smo) half += smo->linear_change() - smo->gain();
                         }
                         return half;
                     })
        .def_prop_ro("loss",
                     [](const Session& s) {
                         double loss = 0;
                         for (const auto& problem : s.solver.problems()) loss += problem.loss;
                         return loss;
                     })
        .def_prop_ro("counters",
                     [](const Session& s) {
                         const larank::LaSVMCounters& c = s.solver.counters();
                         return std::make_tuple(c.process, c.reprocess, c.steps, c.finishing_steps);
                     })
        // For tests: [problem][slot] coefficients and gradients of the members, NaN for those who are none.
        .def("members",
             [](const Session& s) {
                 const std::size_t slots = std::size_t(s.solver.rows().table().slots());
                 const std::size_t problems = s.solver.problems().size();
                 std::vector<double> alpha(problems * slots, std::numeric_limits<double>::quiet_NaN()), g(alpha);
                 for (std::size_t p = 0; p < problems; ++p) {
                     const larank::PotentialSupport& set = s.solver.problems()[p];
                     for (int64_t place = 0; place < set.members.size(); ++place) {
                         if (!set.members.is_member(place)) continue;
                         const std::size_t at = p * slots + std::size_t(set.slot_of[std::size_t(place)]);
                         alpha[at] = set.members.alpha(place), g[at] = set.members.g(place);
                     }
                 }
                 return nb::make_tuple(to_numpy(std::move(alpha), {problems, slots}),
                                       to_numpy(std::move(g), {problems, slots}));
             })
        .def("slot_ids", [](const Session& s) { return slot_ids(s.solver.rows().table()); })
        .def("newborn", [](const Session& s) { return newborn_arrays(s.solver.rows().table()); })
        .def("model", [](Session& s) { return model_arrays(s.solver); });
}

}  // namespace

void bind_lasvm(nb::module_& m) {
    bind_session<float>(m, "LaSVM32");
    bind_session<double>(m, "LaSVM64");
}
