// Compiled once per instruction set: LARANK_UNIT names it, the build gives the flags that go with it.
#include <type_traits>

#include "blocks/kernelmap.hpp"
#include "blocks/lattice.hpp"
#include "blocks/widepanels.hpp"
#include "chain/maxplus.hpp"
#include "kernel/gradient.hpp"
#include "kernel/kernelrow.hpp"
#include "linear/columns.hpp"
#include "linear/denserows.hpp"
#include "linear/gradientrows.hpp"
#include "linear/rowqp.hpp"
#include "linear/rows.hpp"

#define LARANK_JOIN(a, b) a##b
#define LARANK_UNITS_OF(unit) LARANK_JOIN(units_of_, unit)

namespace larank {

template <class T>
void LARANK_UNITS_OF(LARANK_UNIT)(Units<T>& units) {
    units.scores = scores<T, T>;
    units.scores_in_double = scores<double, T>;
    units.add_row = add_row<T>;
    units.scores_of = scores_of<T>;
    units.add_row_of = add_row_of<T>;
    units.dense_scores = dense_scores<T>;
    units.dense_add = dense_add<T>;
    units.add_columns = add_columns<T>;
    units.sum_columns = sum_columns<T>;
    units.dot_one = dot_one<T>;
    units.dot_one_in_double = dot_one_in_double<T>;
    units.add_one = add_one<T>;
    units.add_one_scaled = add_one_scaled<T>;
    units.add_row_scaled = add_row_scaled<T>;
    units.add_one_twice = add_one_twice<T>;
    units.add_row_twice = add_row_twice<T>;
    units.add_row_in_double = add_row_in_double<T>;
    units.shrink = shrink<T>;
    units.shrink_scaled = shrink_scaled<T>;
    units.shrink_twice = shrink_twice<T>;
    units.rescale = rescale<T>;
    units.solve_row[int(Formulation::crammer_singer)] = solve_row<CrammerSinger, T>;
    units.solve_row[int(Formulation::weston_watkins)] = solve_row<WestonWatkins, T>;
    units.solve_row[int(Formulation::one_vs_rest)] = solve_row<OneVsRest, T>;
    units.add_row_values = add_row_values<T>;
    units.add_row_in_type = add_row_in_type<T>;
    units.add_row_values_at = add_row_values_at<T>;
    units.sum_rows = sum_rows<T>;
    units.dot_row_at = dot_row_at<T>;
    units.find_extremes = find_extremes;
    units.move_gradient = move_gradient<T>;
    units.move_gradient_at = move_gradient_at<T>;
    units.best_partner = best_partner<T>;
    units.dot_row = dot_row<T>;
    units.max_plus = max_plus<T>;
    units.map_products[int(ProductKernel::rbf)] = map_tile<Rbf, T>;
    units.map_products[int(ProductKernel::polynomial)] = map_tile<Polynomial, T>;
    units.map_products[int(ProductKernel::sigmoid)] = map_tile<Sigmoid, T>;
    units.is_within = is_within<T>;
    units.lattice_products[int(LatticeNumber::byte)] = lattice_products<uint8_t, T>;
    units.lattice_products[int(LatticeNumber::half_word)] = lattice_products<int16_t, T>;
    units.lattice_numbers[int(LatticeNumber::byte)] = lattice_numbers<uint8_t, T>;
    units.lattice_numbers[int(LatticeNumber::half_word)] = lattice_numbers<int16_t, T>;
    units.lattice_sums[int(LatticeNumber::byte)] = lattice_sums<uint8_t>;
    units.lattice_sums[int(LatticeNumber::half_word)] = lattice_sums<int16_t>;
#ifdef __AVX512F__
    units.wide_products = wide_products<T>;
#else
    units.wide_products = nullptr;
#endif
    units.compare_rows[int(RowKernel::laplacian)] = compare_rows_and_decay<AbsoluteDifference, T>;
    units.compare_rows[int(RowKernel::chi_squared)] = compare_rows_and_decay<ChiSquared, T>;
    units.compare_rows[int(RowKernel::intersection)] = intersection<T>;
}

template void LARANK_UNITS_OF(LARANK_UNIT)(Units<float>&);
template void LARANK_UNITS_OF(LARANK_UNIT)(Units<double>&);

}  // namespace larank
