// Parts of the rows of a linear multiclass SVM, trained in rounds with others.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/sdmrows.hpp"
#include "linear/sdmpart.hpp"

namespace {

template <class T>
using Weights = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Total = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A part with the arrays it looks at, and W of its last round.
template <class T>
struct PartSession {
    PartSession(const larank::Matrix<T>& X, std::vector<nb::object> kept, Vector<int32_t> labels, Vector<double> costs,
                Vector<double> rest_costs, const larank::SdmOptions& options)
        : arrays(std::move(kept)),
          part(X, checked_labels(labels, costs, rest_costs, X.rows, options), costs.data(), rest_costs.data(),
               options) {}

    template <class Array>
    void check(const Array& W) const {
        if (int64_t(W.shape(0)) * part.lanes() != part.weight_values() || int64_t(W.shape(1)) != part.lanes())
            throw std::invalid_argument("W must have a row per weight and a column per lane");
    }

    std::vector<nb::object> arrays;
    larank::SdmPart<T> part;
};

// D of all parts, added up in rows `first` to `last` - 1 of `total`; <W, D> and |D|^2 over these rows.
template <class T>
std::pair<double, double> sum_changes(const std::vector<const PartSession<T>*>& sessions, Weights<T> W, Total<T> total,
                                      int64_t first, int64_t last) {
    for (const auto* session : sessions) session->check(W), session->check(total);
    if (first < 0 || last < first || last > int64_t(W.shape(0))) throw std::invalid_argument("rows are out of range");
    const nb::gil_scoped_release release;
    const int64_t lanes = int64_t(W.shape(1)), block = std::max<int64_t>(1, 4096 / lanes);  // stays in the first cache
    const T* const w = W.data();
    T* const d = total.data();
    constexpr int64_t side = larank::lane_count<T>;
    double products[std::size_t(side)] = {}, squares[std::size_t(side)] = {};
    for (int64_t from = first; from < last; from += block) {
        const int64_t to = std::min(from + block, last);
        std::fill(d + from * lanes, d + to * lanes, T(0));
        for (const auto* session : sessions) session->part.add_change(w, from, to, d);
        for (int64_t j = from * lanes; j < to * lanes; j += side)
            for (int64_t c = 0; c < side; ++c) {
                products[c] += double(w[j + c]) * double(d[j + c]);
                squares[c] += double(d[j + c]) * double(d[j + c]);
            }
    }
    return {std::accumulate(products, products + side, 0.0), std::accumulate(squares, squares + side, 0.0)};
}

template <class T, class... Data, class... Names>
void bind_part_on(nb::module_& m, larank::Matrix<T> (*view_of)(Data...), Names... names) {
    m.def(
        "sdm_part",
        [view_of](Data... data, Vector<int32_t> labels, Vector<double> costs, Vector<double> rest_costs,
                  double intercept, const std::string& formulation, int64_t classes, bool shrinking) {
            larank::Matrix<T> view = view_of(data...);
            view.intercept = T(intercept);
            return new PartSession<T>(view, {nb::cast(data)...}, labels, costs, rest_costs,
                                      sdm_options(formulation, classes, 0.0, shrinking, false, 0));
        },
        names..., "labels"_a.noconvert(), "costs"_a.noconvert(), "rest_costs"_a.noconvert(), nb::kw_only(),
        "intercept"_a, "formulation"_a, "classes"_a, "shrinking"_a);
}

template <class T>
void bind_part(nb::module_& m, const char* name) {
    using S = PartSession<T>;
    nb::class_<S>(m, name)
        .def_prop_ro("lanes", [](const S& s) { return s.part.lanes(); })
        .def_prop_ro("weight_rows", [](const S& s) { return s.part.matrix().weight_rows(); })
        .def_prop_ro("rows_that_act", [](const S& s) { return s.part.rows_that_act(); })
        .def_prop_ro("loop_size", [](const S& s) { return s.part.loop_size(); })
        .def_prop_ro("stored", [](const S& s) { return s.part.stored(); })
        .def_prop_ro("total_way", [](const S& s) { return s.part.total_way(); })
        .def_prop_ro("constant_loss", [](const S& s) { return s.part.constant_loss(); })
        .def_prop_ro("loss_at_zero", [](const S& s) { return s.part.loss_at_zero(); })
        .def_prop_ro("loop", [](const S& s) { return s.part.loop(); })
        .def_prop_ro("counters", [](const S& s) { return s.part.counters(); })
        .def(
            "begin_phase",
            [](S& s, uint64_t seed, double epsilon, double cooling, double least, double momentum) {
                const nb::gil_scoped_release release;
                s.part.begin_phase(seed, epsilon, cooling, least, momentum);
            },
            "seed"_a, "epsilon"_a, "cooling"_a, "least"_a, "momentum"_a)
        .def(
            "scale_costs", [](S& s, double share) { s.part.scale_costs(T(share)); }, "share"_a)
        .def(
            "visit",
            [](S& s, Weights<T> W, double sigma, int64_t visits) {
                s.check(W);
                const nb::gil_scoped_release release;
                return s.part.visit(W.data(), sigma, visits);
            },
            "W"_a.noconvert(), "sigma"_a, "visits"_a)
        .def(
            "take", [](S& s, double step) { s.part.take(step); }, "step"_a, nb::call_guard<nb::gil_scoped_release>())
        .def(
            "add_weights",
            [](const S& s, Total<double> W) {
                s.check(W);
                const nb::gil_scoped_release release;
                s.part.add_weights(W.data());
            },
            "W"_a.noconvert())
        .def(
            "terms",
            [](S& s, Weights<T> W) {
                s.check(W);
                const nb::gil_scoped_release release;
                return s.part.terms(W.data());
            },
            "W"_a.noconvert())
        .def(
            "shrunk_losses",
            [](const S& s, Weights<T> W) {
                s.check(W);
                const nb::gil_scoped_release release;
                return s.part.shrunk_losses(W.data());
            },
            "W"_a.noconvert())
        .def("coefficients",
             [](const S& s) {
                 const auto& lists = s.part.coefficients();
                 return coefficient_arrays(lists.examples(), [&](int64_t i) { return lists.of(i); });
             })
        .def(
            "start_from",
            [](S& s, Vector<double> values, Vector<int32_t> classes, Vector<int64_t> starts) {
                seed_rows(s.part, values, classes, starts);
            },
            "values"_a.noconvert(), "classes"_a.noconvert(), "starts"_a.noconvert());
    m.def("sum_changes", &sum_changes<T>, "parts"_a, "W"_a.noconvert(), "total"_a.noconvert(), "first"_a, "last"_a);
    bind_part_on<T>(m, +[](Table<T> X) { return matrix_of(X); }, "X"_a.noconvert());
}

template <class T, class Index>
void bind_part_csr(nb::module_& m) {
    bind_part_on<T>(
        m,
        +[](Vector<T> values, Vector<Index> columns, Vector<int64_t> starts, int64_t features) {
            return matrix_of(values, columns, starts, features);
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "starts"_a.noconvert(), "features"_a);
}

}  // namespace

void bind_sdmpart(nb::module_& m) {
    using larank::PartLoop, larank::PartRound, larank::PartTerms;
    bind_struct<PartRound>(m, "PartRound", "visits", &PartRound::visits, "gain_change", &PartRound::gain_change,
                           "full_loop_is_over", &PartRound::full_loop_is_over, "is_idle", &PartRound::is_idle);
    bind_struct<PartLoop>(m, "PartLoop", "losses", &PartLoop::losses, "violations", &PartLoop::violations, "violation",
                          &PartLoop::violation);
    bind_struct<PartTerms>(m, "PartTerms", "losses", &PartTerms::losses, "gain", &PartTerms::gain, "violation",
                           &PartTerms::violation);
    bind_part<float>(m, "SdmPart32");
    bind_part<double>(m, "SdmPart64");
    bind_part_csr<float, int32_t>(m);
    bind_part_csr<float, int64_t>(m);
    bind_part_csr<double, int32_t>(m);
    bind_part_csr<double, int64_t>(m);
}
