// NumPy arrays in and out, and the parts of the Python face. Every array argument is taken as it is (`noconvert`): a
// wrong dtype is an error, never a silent copy. Training and evaluation release the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "data/matrix.hpp"

namespace nb = nanobind;
using namespace nb::literals;

void bind_support(nb::module_& m);
void bind_sdm(nb::module_& m);
void bind_sdmpart(nb::module_& m);
void bind_sgd(nb::module_& m);
void bind_primal(nb::module_& m);
void bind_larank(nb::module_& m);
void bind_lasvm(nb::module_& m);
void bind_mcsvm(nb::module_& m);
void bind_perceptrons(nb::module_& m);
void bind_ambiguous(nb::module_& m);
void bind_ospas(nb::module_& m);
void bind_concepts(nb::module_& m);
void bind_huller(nb::module_& m);
void bind_tracking(nb::module_& m);
void bind_kernel_maps(nb::module_& m);
void bind_lattice(nb::module_& m);
void bind_svmlight(nb::module_& m);
void bind_chains(nb::module_& m);
void bind_chain_hooks(nb::module_& m);
void bind_tokens(nb::module_& m);
void bind_names(nb::module_& m);
void bind_features(nb::module_& m);
void bind_structured(nb::module_& m);

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Table = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
constexpr const char* dtype_name() {
    return std::is_same_v<T, float> ? "float32" : "float64";
}

// A struct with read-only fields, whose names and members are given in turn.
template <class Struct>
void add_fields(nb::class_<Struct>&) {}
template <class Struct, class Member, class... Rest>
void add_fields(nb::class_<Struct>& bound, const char* field, Member member, Rest... rest) {
    bound.def_ro(field, member);
    add_fields(bound, rest...);
}
template <class Struct, class... Fields>
void bind_struct(nb::module_& m, const char* name, Fields... fields) {
    nb::class_<Struct> bound(m, name);
    add_fields(bound, fields...);
}

template <class T>
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::ndarray<nb::numpy, T>(kept->data(), shape, owner);
}

template <class T>
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T>&& values) {
    const std::size_t count = values.size();
    return to_numpy(std::move(values), {count});
}

// Whether all numbers of an array or a vector are finite.
template <class Array>
bool are_finite(const Array& values) {
    return std::all_of(values.data(), values.data() + values.size(), [](double value) { return std::isfinite(value); });
}

template <class T>
std::vector<T> copied(Vector<T> values) {
    return {values.data(), values.data() + values.shape(0)};
}

template <class T>
larank::Matrix<T> matrix_of(Table<T> X) {
    larank::Matrix<T> view;
    view.rows = int64_t(X.shape(0));
    view.columns = int64_t(X.shape(1));
    view.values = X.data();
    return view;
}

template <class T, class Index>
larank::Matrix<T> matrix_of(Vector<T> values, Vector<Index> columns, Vector<int64_t> starts, int64_t features) {
    larank::Matrix<T> view;
    view.rows = int64_t(starts.shape(0)) - 1;
    view.columns = features;
    view.values = values.data();
    view.starts = starts.data();
    if constexpr (sizeof(Index) == 4)
        view.columns32 = columns.data();
    else
        view.columns64 = columns.data();
    return view;
}
