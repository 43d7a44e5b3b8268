// Rows on a lattice: which values they have, their numbers, and products of these.
#include <nanobind/stl/string.h>

#include "bindings/arrays.hpp"
#include "bindings/choices.hpp"

#include "blocks/latticetable.hpp"
#include "simd/units.hpp"

namespace {

using larank::LatticeNumber;

template <class T>
using Output = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Strided = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

int64_t words_of(const Rows& rows) {
    const int64_t words = int64_t(rows.shape(1)) - larank::lattice_terms;
    if (words < 0) throw std::invalid_argument("a row of the lattice must have room for its two terms");
    return words;
}

template <class T>
larank::LatticeTable<T> lattice_table(Output<T> table, int32_t lowest, double low, double step) {
    const int64_t size = int64_t(table.shape(0));
    if (size < 1 || size > 65536) throw std::invalid_argument("table must have 1 to 65536 values");
    if (!(step > 0) || !std::isfinite(1 / step)) throw std::invalid_argument("step must be > 0 and not too small");
    return {table.data(), int32_t(size), lowest, T(low), T(1 / step)};
}

template <class T>
bool lattice_numbers(Table<T> X, const std::string& number, Output<T> table, int32_t lowest, double low, double step,
                     Rows out) {
    const larank::LatticeTable<T> lattice = lattice_table<T>(table, lowest, low, step);
    const LatticeNumber kind = named<LatticeNumber>(number);
    const int64_t rows = int64_t(X.shape(0)), features = int64_t(X.shape(1));
    const bool is_byte = kind == LatticeNumber::byte;
    const int64_t words = is_byte ? larank::lattice_words<uint8_t>(features) : larank::lattice_words<int16_t>(features);
    if (int64_t(out.shape(0)) != rows || words_of(out) != words)
        throw std::invalid_argument("out must have a row per row of X, of " + std::to_string(words) + " + 2 words");
    if (is_byte ? lowest != 0 || lattice.size > 256 : lowest < -32768 || lowest + lattice.size > 32768)
        throw std::invalid_argument("table and lowest must be such that all numbers can be stored");
    nb::gil_scoped_release release;
    return larank::units<T>().lattice_numbers[int(kind)](X.data(), rows, features, lattice, out.data());
}

void lattice_sums(Rows rows, const std::string& number, Output<int64_t> sums, Output<int64_t> squares) {
    const int64_t words = words_of(rows), count = int64_t(rows.shape(0));
    if (int64_t(sums.shape(0)) != count || int64_t(squares.shape(0)) != count)
        throw std::invalid_argument("sums and squares must have one entry per row");
    const LatticeNumber kind = named<LatticeNumber>(number);
    nb::gil_scoped_release release;
    larank::units<float>().lattice_sums[int(kind)](rows.data(), count, words, sums.data(), squares.data());
}

template <class T>
void lattice_products(Rows X, Rows Z, const std::string& number, int32_t factor, double scale, Strided<T> out) {
    const int64_t words = words_of(X);
    if (words_of(Z) != words || X.shape(0) != out.shape(0) || Z.shape(0) != out.shape(1))
        throw std::invalid_argument(
            "X and Z must have the same features, and out one row per row of X and one column per row of Z");
    if (out.shape(1) > 1 && out.stride(1) != 1)
        throw std::invalid_argument("the values of a row of out must lie side by side");
    const LatticeNumber kind = named<LatticeNumber>(number);
    const larank::Tile<T> tile{out.data(), int64_t(out.shape(0)), int64_t(out.shape(1)), out.stride(0)};
    nb::gil_scoped_release release;
    larank::units<T>().lattice_products[int(kind)](X.data(), Z.data(), words, factor, T(scale), tile);
}

template <class T>
void bind_lattice_of(nb::module_& m) {
    m.def(
        "fill_lattice",
        [](Table<T> X, Output<T> table, double low, double step) {
            const larank::LatticeTable<T> lattice = lattice_table<T>(table, 0, low, step);
            nb::gil_scoped_release release;
            return larank::fill_lattice(X.data(), int64_t(X.shape(0)) * int64_t(X.shape(1)), lattice);
        },
        "X"_a.noconvert(), "table"_a.noconvert(), "low"_a, "step"_a);
    m.def("lattice_numbers", &lattice_numbers<T>, "X"_a.noconvert(), "number"_a, "table"_a.noconvert(), "lowest"_a,
          "low"_a, "step"_a, "out"_a.noconvert());
    m.def("lattice_products", &lattice_products<T>, "X"_a.noconvert(), "Z"_a.noconvert(), "number"_a, "factor"_a,
          "scale"_a, "out"_a.noconvert());
}

}  // namespace

void bind_lattice(nb::module_& m) {
    bind_lattice_of<float>(m);
    bind_lattice_of<double>(m);
    m.def("lattice_sums", &lattice_sums, "rows"_a.noconvert(), "number"_a, "sums"_a.noconvert(),
          "squares"_a.noconvert());
    m.def("has_integer_products", &larank::has_integer_products);
}
