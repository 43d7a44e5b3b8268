// The Sequential Dual Method.
#include "bindings/arrays.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <tuple>

#include "bindings/choices.hpp"
#include "linear/sdm.hpp"

namespace {

// Values, classes and where those of each example begin.
using CoefficientArrays =
    std::tuple<nb::ndarray<nb::numpy, double>, nb::ndarray<nb::numpy, int32_t>, nb::ndarray<nb::numpy, int64_t>>;

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
    virtual CoefficientArrays coefficients() const = 0;
    virtual std::vector<uint8_t> snapshot() = 0;
    virtual void read_snapshot(Vector<uint8_t> bytes) = 0;
    virtual void start_from(Vector<double> values, Vector<int32_t> classes, Vector<int64_t> starts) = 0;
};

template <class T>
class SdmSessionOf final : public SdmSession {
  public:
    SdmSessionOf(const larank::Matrix<T>& X, std::vector<nb::object> arrays, Vector<int32_t> labels,
                 Vector<double> costs, Vector<double> rest_costs, const larank::SdmOptions& options)
        : arrays_(std::move(arrays)),
          solver_(X, checked(labels, costs, rest_costs, X.rows, options), costs.data(), rest_costs.data(), options) {}
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

    CoefficientArrays coefficients() const override {
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
        return {to_numpy(std::move(values)), to_numpy(std::move(classes)), to_numpy(std::move(starts))};
    }

    std::vector<uint8_t> snapshot() override {
        check_open();
        larank::SnapshotWriter writer;
        writer(solver_);
        return writer.take();
    }
    void read_snapshot(Vector<uint8_t> bytes) override {
        check_open();
        larank::SnapshotReader reader(bytes.data(), bytes.shape(0));
        reader(solver_);
        reader.end();
    }

    void start_from(Vector<double> values, Vector<int32_t> classes, Vector<int64_t> starts) override {
        const int64_t rows = solver_.coefficients().examples();
        const int64_t* const first = starts.data();
        if (int64_t(starts.shape(0)) != rows + 1 || classes.shape(0) != values.shape(0) || first[0] != 0 ||
            first[rows] != int64_t(values.shape(0)) || !std::is_sorted(first, first + rows + 1))
            throw std::invalid_argument(
                "starts must ascend from 0 to the number of values, one per example and one more");
        if (std::any_of(classes.data(), classes.data() + classes.shape(0),
                        [&](int32_t label) { return label < 0 || label >= solver_.options().classes; }))
            throw std::invalid_argument("classes must count from 0 to the number of classes less one");
        for (int64_t i = 0; i < rows; ++i) {
            const int64_t from = first[i];
            solver_.seed(i, classes.data() + from, values.data() + from, starts.data()[i + 1] - from);
        }
        solver_.start_from_seeds();
    }

  private:
    static const int32_t* checked(Vector<int32_t> labels, Vector<double> costs, Vector<double> rest_costs, int64_t rows,
                                  const larank::SdmOptions& options) {
        if (int64_t(labels.shape(0)) != rows || int64_t(costs.shape(0)) != rows || int64_t(rest_costs.shape(0)) != rows)
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

larank::SdmOptions sdm_options(const std::string& formulation, int64_t classes, double epsilon, bool shrinking,
                               bool cooling, uint64_t seed) {
    return {named<larank::Formulation>(formulation), classes, epsilon, shrinking, cooling, seed};
}

template <class T>
void bind_sdm_dense(nb::module_& m) {
    m.def(
        "sdm_session",
        [](Table<T> X, Vector<int32_t> labels, Vector<double> costs, Vector<double> rest_costs, double intercept,
           const std::string& formulation, int64_t classes, double epsilon, bool shrinking, bool cooling,
           uint64_t seed) -> SdmSession* {
            larank::Matrix<T> view = matrix_of(X);
            view.intercept = T(intercept);
            return new SdmSessionOf<T>(view, {nb::cast(X)}, labels, costs, rest_costs,
                                       sdm_options(formulation, classes, epsilon, shrinking, cooling, seed));
        },
        "X"_a.noconvert(), "labels"_a.noconvert(), "costs"_a.noconvert(), "rest_costs"_a.noconvert(), nb::kw_only(),
        "intercept"_a, "formulation"_a, "classes"_a, "epsilon"_a, "shrinking"_a, "cooling"_a, "seed"_a);
}

template <class T, class Index>
void bind_sdm_csr(nb::module_& m) {
    m.def(
        "sdm_session",
        [](Vector<T> values, Vector<Index> columns, Vector<int64_t> starts, int64_t features, Vector<int32_t> labels,
           Vector<double> costs, Vector<double> rest_costs, double intercept, const std::string& formulation,
           int64_t classes, double epsilon, bool shrinking, bool cooling, uint64_t seed) -> SdmSession* {
            larank::Matrix<T> view = matrix_of(values, columns, starts, features);
            view.intercept = T(intercept);
            return new SdmSessionOf<T>(view, {nb::cast(values), nb::cast(columns), nb::cast(starts)}, labels, costs,
                                       rest_costs,
                                       sdm_options(formulation, classes, epsilon, shrinking, cooling, seed));
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "starts"_a.noconvert(), "features"_a, "labels"_a.noconvert(),
        "costs"_a.noconvert(), "rest_costs"_a.noconvert(), nb::kw_only(), "intercept"_a, "formulation"_a, "classes"_a,
        "epsilon"_a, "shrinking"_a, "cooling"_a, "seed"_a);
}

}  // namespace

void bind_sdm(nb::module_& m) {
    using larank::Objectives, larank::SdmCounters;
    bind_struct<Objectives>(m, "Objectives", "primal", &Objectives::primal, "dual", &Objectives::dual, "violation",
                            &Objectives::violation);
    bind_struct<SdmCounters>(m, "SdmCounters", "visits", &SdmCounters::visits, "steps", &SdmCounters::steps,
                             "full_loops", &SdmCounters::full_loops, "shrunk_loops", &SdmCounters::shrunk_loops,
                             "moves", &SdmCounters::moves);
    nb::class_<SdmSession>(m, "SdmSession")
        .def("advance", &SdmSession::advance, "work"_a, nb::call_guard<nb::gil_scoped_release>())
        .def("evaluate", &SdmSession::evaluate, nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("estimate", [](const SdmSession& s) { return s.estimate(); })
        .def_prop_ro("counters", [](const SdmSession& s) { return s.counters(); })
        .def_prop_ro("estimate_is_at_full_cost", &SdmSession::estimate_is_at_full_cost)
        .def("take_weights", &SdmSession::take_weights, nb::sig("def take_weights(self) -> numpy.typing.NDArray"))
        .def("coefficients", &SdmSession::coefficients)
        .def("snapshot", [](SdmSession& s) { return to_numpy(s.snapshot()); })
        .def("read_snapshot", &SdmSession::read_snapshot, "bytes"_a.noconvert())
        .def("start_from", &SdmSession::start_from, "values"_a.noconvert(), "classes"_a.noconvert(),
             "starts"_a.noconvert());
    bind_sdm_dense<float>(m);
    bind_sdm_dense<double>(m);
    bind_sdm_csr<float, int32_t>(m);
    bind_sdm_csr<float, int64_t>(m);
    bind_sdm_csr<double, int32_t>(m);
    bind_sdm_csr<double, int64_t>(m);
}
