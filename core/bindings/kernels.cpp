// Maps from inner products to kernel values, kernels of two rows, products of rows, and sums of kernel values.
#include <algorithm>
#include <string>
#include <vector>

#include "bindings/arrays.hpp"

#include "blocks/denseproducts.hpp"
#include "blocks/distances.hpp"
#include "blocks/sparseproducts.hpp"
#include "simd/units.hpp"

namespace {

// A table, or a piece of one: rows may lie apart, the values of a row may not.
template <class T>
using Strided = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

template <class T>
larank::Tile<T> tile_of(Strided<T> table) {
    if (table.shape(1) > 1 && table.stride(1) != 1)
        throw std::invalid_argument("the values of a row of the tile must lie side by side");
    return {table.data(), int64_t(table.shape(0)), int64_t(table.shape(1)), table.stride(0)};
}

template <class T>
void map_products(larank::ProductKernel kernel, Strided<T> tile, const larank::MapArguments<T>& with) {
    const larank::Tile<T> view = tile_of(tile);
    nb::gil_scoped_release release;
    larank::units<T>().map_products[int(kernel)](view, with);
}

// What rows of X become with rows of Z.
template <class T>
larank::Tile<T> tile_of_products(Table<T> X, Table<T> Z, Strided<T> out) {
    const larank::Tile<T> view = tile_of(out);
    if (X.shape(1) != Z.shape(1) || int64_t(X.shape(0)) != view.rows || int64_t(Z.shape(0)) != view.columns)
        throw std::invalid_argument(
            "X and Z must have the same features, and out one row per row of X and one column "
            "per row of Z");
    return view;
}

template <class T>
void wide_products(Table<T> X, Table<T> Z, Strided<T> out) {
    const larank::Tile<T> view = tile_of_products(X, Z, out);
    const auto multiply = larank::units<T>().wide_products;
    if (!multiply)
        throw std::invalid_argument("wide products need AVX-512, got the SIMD level '" + larank::simd_level() + "'");
    nb::gil_scoped_release release;
    const int64_t features = int64_t(X.shape(1));
    larank::AlignedArray<T> panel(std::max<int64_t>(1, features) * larank::panel_columns<T>);
    multiply(X.data(), Z.data(), features, panel.data(), view);
}

template <class T, larank::RowKernel kernel>
void compare_rows(Table<T> X, Table<T> Z, double gamma, Strided<T> out) {
    const larank::Tile<T> view = tile_of_products(X, Z, out);
    nb::gil_scoped_release release;
    larank::units<T>().compare_rows[int(kernel)](X.data(), Z.data(), int64_t(X.shape(1)), T(gamma), view);
}

template <class T>
larank::CsrRows<T> csr_rows(Vector<T> values, Vector<int32_t> columns, Vector<int64_t> starts, int64_t features) {
    const int64_t rows = int64_t(starts.shape(0)) - 1;
    const int64_t stored = int64_t(values.shape(0));
    bool ordered = rows >= 0 && int64_t(columns.shape(0)) == stored && starts.data()[0] >= 0;
    for (int64_t i = 0; ordered && i < rows; ++i) ordered = starts.data()[i] <= starts.data()[i + 1];
    if (!ordered || starts.data()[rows] > stored)
        throw std::invalid_argument("starts must ascend from 0 to the number of values at most");
    for (int64_t e = starts.data()[0]; e < starts.data()[rows]; ++e)
        if (columns.data()[e] < 0 || columns.data()[e] >= features)
            throw std::invalid_argument("columns must count from 0 to the number of features less one");
    return {values.data(), columns.data(), starts.data(), rows};
}

template <class T>
void bind_kernel_maps_of(nb::module_& m) {
    using larank::ProductKernel;
    using larank::RowKernel;
    m.def(
        "map_rbf",
        [](Strided<T> tile, Vector<T> row_norms, Vector<T> column_norms, double gamma) {
            if (row_norms.shape(0) != tile.shape(0) || column_norms.shape(0) != tile.shape(1))
                throw std::invalid_argument(
                    "row_norms and column_norms must have one entry per row and column of tile");
            const larank::MapArguments<T> with{row_norms.data(), column_norms.data(), T(gamma), 0, 0};
            const larank::Tile<T> view = tile_of(tile);
            std::vector<int64_t> cancelled;
            {
                nb::gil_scoped_release release;
                cancelled = larank::cancelled_distances(view, with);
            }
            map_products<T>(ProductKernel::rbf, tile, with);
            return to_numpy(std::move(cancelled));
        },
        "tile"_a.noconvert(), "row_norms"_a.noconvert(), "column_norms"_a.noconvert(), "gamma"_a,
        "Returns the positions of values to be computed again from `squared_distances`.");
    m.def(
        "squared_distances",
        [](Table<T> X, Table<T> Z, Vector<int64_t> rows, Vector<int64_t> others,
           nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu> out) {
            const size_t pairs = rows.shape(0);
            if (X.shape(1) != Z.shape(1) || others.shape(0) != pairs || out.shape(0) != pairs)
                throw std::invalid_argument("X and Z must have the same features, and rows, others and out one length");
            for (size_t n = 0; n < pairs; ++n)
                if (rows.data()[n] < 0 || size_t(rows.data()[n]) >= X.shape(0) || others.data()[n] < 0 ||
                    size_t(others.data()[n]) >= Z.shape(0))
                    throw std::invalid_argument("rows and others must be rows of X and Z");
            nb::gil_scoped_release release;
            larank::squared_distances(X.data(), Z.data(), int64_t(X.shape(1)), rows.data(), others.data(),
                                      int64_t(pairs), out.data());
        },
        "X"_a.noconvert(), "Z"_a.noconvert(), "rows"_a.noconvert(), "others"_a.noconvert(), "out"_a.noconvert());
    m.def(
        "map_polynomial",
        [](Strided<T> tile, double gamma, double coef0, int64_t degree) {
            map_products<T>(ProductKernel::polynomial, tile, {nullptr, nullptr, T(gamma), T(coef0), degree});
        },
        "tile"_a.noconvert(), "gamma"_a, "coef0"_a, "degree"_a);
    m.def(
        "map_sigmoid",
        [](Strided<T> tile, double gamma, double coef0) {
            map_products<T>(ProductKernel::sigmoid, tile, {nullptr, nullptr, T(gamma), T(coef0), 0});
        },
        "tile"_a.noconvert(), "gamma"_a, "coef0"_a);
    m.def(
        "is_within",
        [](Strided<T> tile, double bound) {
            const larank::Tile<T> view = tile_of(tile);
            nb::gil_scoped_release release;
            return larank::units<T>().is_within(view, T(bound));
        },
        "tile"_a.noconvert(), "bound"_a);
    const auto bind_rows = [&m](const char* name, auto* function) {
        m.def(name, function, "X"_a.noconvert(), "Z"_a.noconvert(), "gamma"_a, "out"_a.noconvert());
    };
    bind_rows("compare_laplacian", &compare_rows<T, RowKernel::laplacian>);
    bind_rows("compare_chi_squared", &compare_rows<T, RowKernel::chi_squared>);
    bind_rows("compare_intersection", &compare_rows<T, RowKernel::intersection>);
    m.def(
        "dense_products",
        [](Table<T> X, Table<T> Z, Strided<T> out) {
            const larank::Tile<T> view = tile_of_products(X, Z, out);
            nb::gil_scoped_release release;
            larank::dense_products(X.data(), Z.data(), int64_t(X.shape(1)), view);
        },
        "X"_a.noconvert(), "Z"_a.noconvert(), "out"_a.noconvert());
    m.def("wide_products", &wide_products<T>, "X"_a.noconvert(), "Z"_a.noconvert(), "out"_a.noconvert());
    m.def(
        "sparse_products",
        [](Vector<T> x_values, Vector<int32_t> x_columns, Vector<int64_t> x_starts, Vector<T> z_values,
           Vector<int32_t> z_columns, Vector<int64_t> z_starts, int64_t features, Strided<T> out) {
            const larank::CsrRows<T> left = csr_rows(x_values, x_columns, x_starts, features);
            const larank::CsrRows<T> right = csr_rows(z_values, z_columns, z_starts, features);
            const larank::Tile<T> view = tile_of(out);
            if (left.rows != view.rows || right.rows != view.columns)
                throw std::invalid_argument("out must have one row per row of x and one column per row of z");
            nb::gil_scoped_release release;
            larank::sparse_products(left, right, features, view);
        },
        "x_values"_a.noconvert(), "x_columns"_a.noconvert(), "x_starts"_a.noconvert(), "z_values"_a.noconvert(),
        "z_columns"_a.noconvert(), "z_starts"_a.noconvert(), "features"_a, "out"_a.noconvert());
}

}  // namespace

void bind_kernel_maps(nb::module_& m) {
    bind_kernel_maps_of<float>(m);
    bind_kernel_maps_of<double>(m);
    m.def("has_wide_products", [] { return larank::units<float>().wide_products != nullptr; });
}
