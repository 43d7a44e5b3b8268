// The Sequential Dual Method.
#include "bindings/arrays.hpp"

#include <nanobind/stl/string.h>

#include "bindings/sdmrows.hpp"
#include "linear/sdm.hpp"

namespace {

// A session of either precision behind one Python class; it keeps the arrays it looks at alive. What is deleted through
// it is aligned as it is.
class alignas(larank::cache_lines) SdmSession {
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
          solver_(X, checked_labels(labels, costs, rest_costs, X.rows, options), costs.data(), rest_costs.data(),
                  options) {}
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

    // The coefficients of which the certificate computes the dual objective.
    CoefficientArrays coefficients() const override {
        std::vector<typename larank::Sdm<T>::ExactEntry> list;
        return coefficient_arrays(solver_.coefficients().examples(), [&](int64_t i) -> const auto& {
            solver_.make_feasible(i, list);
            return list;
        });
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
        seed_rows(solver_, values, classes, starts);
        solver_.start_from_seeds();
    }

  private:
    void check_open() const {
        if (ended_) throw std::logic_error("the session ended when its weights were taken");
    }

    static_assert(alignof(larank::Sdm<T>) <= alignof(SdmSession));
    std::vector<nb::object> arrays_;
    larank::Sdm<T> solver_;
    bool ended_ = false;
};

template <class T>
void bind_sdm_dense(nb::module_& m) {
    m.def(
        "sdm_session",
        [](Table<T> X, Vector<int32_t> labels, Vector<double> costs, Vector<double> rest_costs, double intercept,
           const std::string& formulation, int64_t classes, double epsilon, bool shrinking, bool cooling, uint64_t seed,
           int64_t threads) -> SdmSession* {
            larank::Matrix<T> view = matrix_of(X);
            view.intercept = T(intercept);
            return new SdmSessionOf<T>(view, {nb::cast(X)}, labels, costs, rest_costs,
                                       sdm_options(formulation, classes, epsilon, shrinking, cooling, seed, threads));
        },
        "X"_a.noconvert(), "labels"_a.noconvert(), "costs"_a.noconvert(), "rest_costs"_a.noconvert(), nb::kw_only(),
        "intercept"_a, "formulation"_a, "classes"_a, "epsilon"_a, "shrinking"_a, "cooling"_a, "seed"_a,
        "threads"_a = 1);
}

template <class T, class Index>
void bind_sdm_csr(nb::module_& m) {
    m.def(
        "sdm_session",
        [](Vector<T> values, Vector<Index> columns, Vector<int64_t> starts, int64_t features, Vector<int32_t> labels,
           Vector<double> costs, Vector<double> rest_costs, double intercept, const std::string& formulation,
           int64_t classes, double epsilon, bool shrinking, bool cooling, uint64_t seed,
           int64_t threads) -> SdmSession* {
            larank::Matrix<T> view = matrix_of(values, columns, starts, features);
            view.intercept = T(intercept);
            return new SdmSessionOf<T>(view, {nb::cast(values), nb::cast(columns), nb::cast(starts)}, labels, costs,
                                       rest_costs,
                                       sdm_options(formulation, classes, epsilon, shrinking, cooling, seed, threads));
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "starts"_a.noconvert(), "features"_a, "labels"_a.noconvert(),
        "costs"_a.noconvert(), "rest_costs"_a.noconvert(), nb::kw_only(), "intercept"_a, "formulation"_a, "classes"_a,
        "epsilon"_a, "shrinking"_a, "cooling"_a, "seed"_a, "threads"_a = 1);
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
