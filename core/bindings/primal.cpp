// The losses of the primal multiclass SVM.
#include "bindings/arrays.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "bindings/choices.hpp"
#include "linear/primal.hpp"

template <>
struct Choices<larank::Aggregation> {
    static constexpr const char* argument = "aggregation";
    static constexpr std::array names{std::pair{"sum", larank::Aggregation::sum},
                                      std::pair{"interpolation", larank::Aggregation::interpolation},
                                      std::pair{"smoothed-maximum", larank::Aggregation::smoothed_maximum}};
};

namespace {

template <class T>
using Output = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// The losses, with the arrays they look at.
template <class T>
struct PrimalSession {
    nb::object X, labels, costs, offsets;
    larank::PrimalLosses<T> losses;

    void check(int64_t number, int64_t count) const {
        if (number < 0 || number >= count) throw std::invalid_argument("there is no such stripe or example");
    }
    template <class Array>
    void check(const Array& table) const {
        if (int64_t(table.shape(0)) != losses.weight_rows() || int64_t(table.shape(1)) != losses.lanes())
            throw std::invalid_argument("a table must be one of the session's tables");
    }
};

template <class T>
PrimalSession<T>* make_session(const larank::Matrix<T>& view, nb::object X, Vector<int32_t> labels,
                               Vector<double> costs, std::optional<Table<T>> offsets,
                               const larank::PrimalOptions& options) {
    if (int64_t(labels.shape(0)) != view.rows || int64_t(costs.shape(0)) != view.rows)
        throw std::invalid_argument("labels and costs must have one entry per row of X");
    for (int64_t i = 0; i < view.rows; ++i)
        if (labels.data()[i] < 0 || labels.data()[i] >= options.classes)
            throw std::invalid_argument("labels must count from 0 to the number of classes less one");
    if (offsets && (int64_t(offsets->shape(0)) != view.rows || int64_t(offsets->shape(1)) != options.classes))
        throw std::invalid_argument("offsets must have a row per row of X and a column per class");
    return new PrimalSession<T>{
        std::move(X), nb::cast(labels), nb::cast(costs), nb::cast(offsets),
        larank::PrimalLosses<T>(view, labels.data(), costs.data(), offsets ? offsets->data() : nullptr, options)};
}

larank::PrimalOptions options_of(const std::string& loss, const std::string& aggregation, double softmax_gamma,
                                 double smoothing, int64_t classes, bool intercept) {
    if (classes < 2 || !(softmax_gamma >= 0) || !(smoothing > 0))
        throw std::invalid_argument("no primal loss has these options");
    return {named<larank::Loss>(loss),
            named<larank::Aggregation>(aggregation),
            softmax_gamma,
            smoothing,
            classes,
            intercept};
}

template <class T>
void bind_dense(nb::module_& m) {
    m.def(
        "primal_session",
        [](Table<T> X, Vector<int32_t> labels, Vector<double> costs, std::optional<Table<T>> offsets,
           const std::string& loss, const std::string& aggregation, double softmax_gamma, double smoothing,
           int64_t classes, bool intercept) {
            return make_session<T>(matrix_of(X), nb::cast(X), labels, costs, offsets,
                                   options_of(loss, aggregation, softmax_gamma, smoothing, classes, intercept));
        },
        "X"_a.noconvert(), "labels"_a.noconvert(), "costs"_a.noconvert(), nb::kw_only(),
        "offsets"_a.noconvert() = nb::none(), "loss"_a, "aggregation"_a, "softmax_gamma"_a, "smoothing"_a, "classes"_a,
        "intercept"_a);
}

template <class T, class Index>
void bind_csr(nb::module_& m) {
    m.def(
        "primal_session",
        [](Vector<T> values, Vector<Index> columns, Vector<int64_t> starts, int64_t features, Vector<int32_t> labels,
           Vector<double> costs, const std::string& loss, const std::string& aggregation, double softmax_gamma,
           double smoothing, int64_t classes, bool intercept) {
            return make_session<T>(matrix_of(values, columns, starts, features),
                                   nb::make_tuple(values, columns, starts), labels, costs, std::nullopt,
                                   options_of(loss, aggregation, softmax_gamma, smoothing, classes, intercept));
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "starts"_a.noconvert(), "features"_a, "labels"_a.noconvert(),
        "costs"_a.noconvert(), nb::kw_only(), "loss"_a, "aggregation"_a, "softmax_gamma"_a, "smoothing"_a, "classes"_a,
        "intercept"_a);
}

// A dense matrix that is mostly zeros as values, columns and starts of CSR rows; None if it is not.
template <class T>
nb::object listed(Table<T> X) {
    std::optional<larank::ListedRows<T>> found;
    {
        nb::gil_scoped_release released;
        found = larank::listed(matrix_of(X));
    }
    if (!found) return nb::none();
    return nb::make_tuple(to_numpy(std::move(found->values)), to_numpy(std::move(found->columns)),
                          to_numpy(std::move(found->starts)));
}

template <class T>
nb::ndarray<nb::numpy, T> zeros(int64_t rows, int64_t lanes) {
    auto* kept = new larank::AlignedArray<T>(rows * lanes);
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<larank::AlignedArray<T>*>(p); });
    return nb::ndarray<nb::numpy, T>(kept->data(), {std::size_t(rows), std::size_t(lanes)}, owner);
}

template <class T>
void bind_primal_of(nb::module_& m, const char* name) {
    using S = PrimalSession<T>;
    nb::class_<S>(m, name)
        .def(
            "evaluate",
            [](S& s, int64_t stripe, Table<T> V, Output<T> gradient) {
                s.check(stripe, s.losses.stripes()), s.check(V), s.check(gradient);
                nb::gil_scoped_release released;
                return s.losses.evaluate(stripe, V.data(), gradient.data());
            },
            "stripe"_a, "V"_a.noconvert(), "gradient"_a.noconvert())
        .def(
            "product",
            [](S& s, int64_t stripe, Table<T> D, Output<T> out) {
                s.check(stripe, s.losses.stripes()), s.check(D), s.check(out);
                nb::gil_scoped_release released;
                s.losses.product(stripe, D.data(), out.data());
            },
            "stripe"_a, "D"_a.noconvert(), "out"_a.noconvert())
        .def(
            "curvatures",
            [](S& s, Vector<int64_t> examples) {
                const int64_t k = s.losses.options().classes, count = int64_t(examples.shape(0));
                std::vector<double> found(std::size_t(count * k));
                for (int64_t i = 0; i < count; ++i) s.check(examples.data()[i], s.losses.rows());
                {
                    nb::gil_scoped_release released;
                    for (int64_t i = 0; i < count; ++i) s.losses.curvatures(examples.data()[i], found.data() + i * k);
                }
                return to_numpy(std::move(found), {std::size_t(count), std::size_t(k)});
            },
            "examples"_a.noconvert())
        .def("mean_curvatures",
             [](S& s) {
                 const int64_t k = s.losses.options().classes, count = s.losses.rows();
                 std::vector<double> means(std::size_t(count), 0.0), found(std::size_t(k), 0.0);
                 {
                     nb::gil_scoped_release released;
                     for (int64_t i = 0; i < count; ++i) {
                         s.losses.curvatures(i, found.data());
                         for (double each : found) means[std::size_t(i)] += each / double(k - 1);
                     }
                 }
                 return to_numpy(std::move(means));
             })
        .def_prop_ro("stripes", [](const S& s) { return s.losses.stripes(); })
        .def("table", [](S& s) { return zeros<T>(s.losses.weight_rows(), s.losses.lanes()); })
        .def("scores",
             [](S& s) {
                 const T* const found = s.losses.scores();
                 const int64_t k = s.losses.options().classes;
                 return to_numpy(std::vector<T>(found, found + s.losses.rows() * k),
                                 {std::size_t(s.losses.rows()), std::size_t(k)});
             })
        .def(
            "smooth", [](S& s, double softmax_gamma, double smoothing) { s.losses.smooth(softmax_gamma, smoothing); },
            "softmax_gamma"_a, "smoothing"_a);
    m.def("listed", &listed<T>, "X"_a.noconvert());
    bind_dense<T>(m);
    bind_csr<T, int32_t>(m);
    bind_csr<T, int64_t>(m);
}

}  // namespace

void bind_primal(nb::module_& m) {
    using larank::LossSums;
    bind_struct<LossSums>(m, "LossSums", "value", &LossSums::value, "largest", &LossSums::largest, "mean",
                          &LossSums::mean);
    bind_primal_of<float>(m, "PrimalSession32");
    bind_primal_of<double>(m, "PrimalSession64");
}
