// Stochastic gradient descent.
#include "bindings/arrays.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "bindings/choices.hpp"
#include "linear/asgd.hpp"
#include "linear/olbfgs.hpp"
#include "linear/sgd.hpp"

enum class SgdAlgorithm { sgdqn, svmsgd2, sgd, olbfgs, asgd };

template <>
struct Choices<SgdAlgorithm> {
    static constexpr const char* argument = "algorithm";
    static constexpr std::array names{std::pair{"sgdqn", SgdAlgorithm::sgdqn},
                                      std::pair{"svmsgd2", SgdAlgorithm::svmsgd2}, std::pair{"sgd", SgdAlgorithm::sgd},
                                      std::pair{"olbfgs", SgdAlgorithm::olbfgs}, std::pair{"asgd", SgdAlgorithm::asgd}};
};

namespace {

template <class T>
std::unique_ptr<larank::SgdStep<T>> step_of(SgdAlgorithm algorithm, const larank::SgdOptions& options) {
    switch (algorithm) {
        case SgdAlgorithm::sgdqn: return std::make_unique<larank::QuasiNewtonStep<T>>(options);
        case SgdAlgorithm::olbfgs: return std::make_unique<larank::OnlineLbfgsStep<T>>(options);
        case SgdAlgorithm::asgd: return std::make_unique<larank::AveragedStep<T>>(options);
        default: return std::make_unique<larank::FirstOrderStep<T>>(options);
    }
}

// A solver that keeps the arrays it looks at alive.
template <class T>
struct SgdSession {
    larank::Sgd<T> solver;
    nb::object X, labels, costs, rest_costs;

    SgdSession(const larank::SgdOptions& options, std::unique_ptr<larank::SgdStep<T>> step)
        : solver(options, std::move(step)) {}

    template <class Value>
    void feed(const larank::Matrix<Value>& view, nb::object arrays, Vector<int32_t> y, Vector<double> c,
              Vector<double> rest, bool shuffled) {
        const larank::SgdOptions& options = solver.options();
        const int64_t classes = std::max<int64_t>(2, options.functions);
        if (view.columns != options.features) throw std::invalid_argument("X must have the features of the session");
        if (view.rows >= int64_t{1} << 31) throw std::invalid_argument("X must have fewer than 2**31 rows");
        if (int64_t(y.shape(0)) != view.rows || int64_t(c.shape(0)) != view.rows || int64_t(rest.shape(0)) != view.rows)
            throw std::invalid_argument("labels and costs must have one entry per row of X");
        for (int64_t i = 0; i < view.rows; ++i)
            if (y.data()[i] < 0 || y.data()[i] >= classes)
                throw std::invalid_argument("labels must count from 0 to the number of classes less one");
        solver.feed(view, y.data(), c.data(), rest.data(), shuffled);
        X = std::move(arrays);  // those before may go now
        labels = nb::cast(y);
        costs = nb::cast(c);
        rest_costs = nb::cast(rest);
    }
};

// [row][function] without padding.
template <class T>
nb::ndarray<nb::numpy, T> to_table(const larank::FunctionWeights<T>& W) {
    std::vector<T> values(std::size_t(W.rows() * W.functions()));
    for (int64_t j = 0; j < W.rows(); ++j)
        std::copy_n(W.data() + j * W.lanes(), W.functions(), values.data() + j * W.functions());
    return to_numpy(std::move(values), {std::size_t(W.rows()), std::size_t(W.functions())});
}

template <class T>
std::map<std::string, nb::object> state_of(SgdSession<T>& s) {
    std::map<std::string, nb::object> state;
    for (const auto& [name, table] : s.solver.step().tables()) state[name] = nb::cast(to_table(*table));
    for (const auto& [name, numbers] : s.solver.step().numbers())
        state[name] = nb::cast(to_numpy(std::vector<double>(*numbers)));
    state["born"] = nb::cast(to_numpy(std::vector<double>(s.solver.born())));
    const larank::SgdCounters& counters = s.solver.counters();
    state["counts"] = nb::cast(to_numpy(std::vector<double>{
        s.solver.time(), double(counters.visits), double(counters.steps), double(counters.errors), counters.loss}));
    state["random"] = nb::cast(to_numpy(std::vector<uint64_t>{s.solver.random_state()}));
    return state;
}

template <class T, class Value>
void take(const std::map<std::string, nb::object>& state, const char* name, Value* to, std::size_t count) {
    const auto found = state.find(name);
    if (found == state.end()) throw std::invalid_argument(std::string("the state lacks ") + name);
    nb::ndarray<const Value, nb::c_contig, nb::device::cpu> values;
    if (!nb::try_cast(found->second, values, false))
        throw std::invalid_argument(std::string("the state has no array of the right type: ") + name);
    if (values.size() != count) throw std::invalid_argument(std::string("the state has the wrong size: ") + name);
    if (!are_finite(values)) throw std::invalid_argument(std::string("the state is not finite: ") + name);
    std::copy(values.data(), values.data() + count, to);
}

template <class T>
void restore(SgdSession<T>& s, const std::map<std::string, nb::object>& state) {
    auto& solver = s.solver;
    for (const auto& [name, table] : solver.step().tables()) {
        std::vector<T> values(std::size_t(table->rows() * table->functions()));
        take<T>(state, name, values.data(), values.size());
        for (int64_t j = 0, at = 0; j < table->rows(); ++j)
            for (int64_t m = 0; m < table->functions(); ++m, ++at) table->at(j, m) = values[std::size_t(at)];
    }
    for (const auto& [name, numbers] : solver.step().numbers()) take<T>(state, name, numbers->data(), numbers->size());
    take<T>(state, "born", solver.born().data(), solver.born().size());
    double counts[5];
    take<T>(state, "counts", counts, 5);
    if (!std::all_of(counts, counts + 4, [](double count) { return count >= 0 && count < 9e15; }))
        throw std::invalid_argument("the state must have counts of visits, steps and errors");
    solver.time() = counts[0];
    solver.counters() = {int64_t(counts[1]), int64_t(counts[2]), int64_t(counts[3]), counts[4]};
    uint64_t random;
    take<T>(state, "random", &random, 1);
    solver.set_random_state(random);
    solver.step().restored();
}

template <class T, class Value>
void bind_dense_feed(nb::class_<SgdSession<T>>& bound) {
    bound.def(
        "feed",
        [](SgdSession<T>& s, Table<Value> X, Vector<int32_t> labels, Vector<double> costs, Vector<double> rest_costs,
           bool shuffled) { s.feed(matrix_of(X), nb::cast(X), labels, costs, rest_costs, shuffled); },
        "X"_a.noconvert(), "labels"_a.noconvert(), "costs"_a.noconvert(), "rest_costs"_a.noconvert(), nb::kw_only(),
        "shuffled"_a);
}

template <class T, class Value, class Index>
void bind_csr_feed(nb::class_<SgdSession<T>>& bound) {
    bound.def(
        "feed",
        [](SgdSession<T>& s, Vector<Value> values, Vector<Index> columns, Vector<int64_t> starts, int64_t features,
           Vector<int32_t> labels, Vector<double> costs, Vector<double> rest_costs, bool shuffled) {
            s.feed(matrix_of(values, columns, starts, features), nb::make_tuple(values, columns, starts), labels, costs,
                   rest_costs, shuffled);
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "starts"_a.noconvert(), "features"_a, "labels"_a.noconvert(),
        "costs"_a.noconvert(), "rest_costs"_a.noconvert(), nb::kw_only(), "shuffled"_a);
}

template <class T>
void bind_sgd_of(nb::module_& m, const char* name) {
    using S = SgdSession<T>;
    nb::class_<S> bound(m, name);
    bound
        .def(
            "__init__",
            [](S* self, const std::string& algorithm, const std::string& loss, bool joint, int64_t functions,
               int64_t features, bool intercept, double lambda, double t0, int64_t skip, uint64_t seed) {
                const auto chosen = named<SgdAlgorithm>(algorithm);
                const larank::SgdOptions options{
                    named<larank::Loss>(loss), joint, functions, features, intercept, lambda, t0, skip, seed};
                if (!(lambda > 0) || !(t0 > 0) || skip < 1 || functions < 1 || features < 0 || (joint && functions < 2))
                    throw std::invalid_argument("no gradient descent has these options");
                new (self) S(options, step_of<T>(chosen, options));
            },
            nb::kw_only(), "algorithm"_a, "loss"_a, "joint"_a, "functions"_a, "features"_a, "intercept"_a, "lambda_"_a,
            "t0"_a, "skip"_a, "seed"_a)
        .def(
            "run", [](S& s, int64_t work) { return s.solver.run(work); }, "work"_a,
            nb::call_guard<nb::gil_scoped_release>())
        .def(
            "begin_evaluation", [](S& s, bool with_dual) { s.solver.begin_evaluation(with_dual); }, nb::kw_only(),
            "with_dual"_a)
        .def(
            "evaluate", [](S& s, int64_t first, int64_t last) { s.solver.evaluate(first, last); }, "first"_a, "last"_a,
            nb::call_guard<nb::gil_scoped_release>())
        .def(
            "evaluate_shrunk", [](S& s, int64_t first, int64_t last) { s.solver.evaluate_shrunk(first, last); },
            "first"_a, "last"_a, nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("loss_at_zero", [](S& s) { return s.solver.loss_at_zero(); })
        .def("shrunk_losses", [](S& s) { return s.solver.shrunk_losses(); })
        .def("begin_bound", [](S& s) { s.solver.begin_bound(); })
        .def("bound", [](S& s) { return s.solver.bound(); })
        .def("objectives", [](S& s) { return s.solver.objectives(); })
        .def("weights", [](S& s) { return to_table(s.solver.step().model()); })
        .def_prop_ro("squared_norm", [](S& s) { return s.solver.step().model().squared_norm(); })
        .def("state", &state_of<T>)
        .def("restore", &restore<T>, "state"_a)
        .def_prop_ro("counters", [](const S& s) { return s.solver.counters(); });
    bind_dense_feed<T, double>(bound);
    bind_csr_feed<T, double, int32_t>(bound);
    bind_csr_feed<T, double, int64_t>(bound);
    if constexpr (std::is_same_v<T, float>) {
        bind_dense_feed<T, float>(bound);
        bind_csr_feed<T, float, int32_t>(bound);
        bind_csr_feed<T, float, int64_t>(bound);
    }
}

}  // namespace

void bind_sgd(nb::module_& m) {
    using larank::SgdCounters;
    bind_struct<SgdCounters>(m, "SgdCounters", "visits", &SgdCounters::visits, "steps", &SgdCounters::steps, "errors",
                             &SgdCounters::errors, "loss", &SgdCounters::loss);
    bind_sgd_of<float>(m, "SgdSession32");
    bind_sgd_of<double>(m, "SgdSession64");
}
