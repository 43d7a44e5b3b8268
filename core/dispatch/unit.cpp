// Compiled once per instruction set: LARANK_UNIT names it, the build gives the flags that go with it.
#include <type_traits>

#include "rowqp.hpp"
#include "rows.hpp"

#define LARANK_JOIN(a, b) a##b
#define LARANK_UNITS_OF(unit) LARANK_JOIN(units_of_, unit)

namespace larank {

template <class T>
void LARANK_UNITS_OF(LARANK_UNIT)(Units<T>& units) {
    units.add_scores_dense = [](const T* x, int64_t count, const T* W, int64_t lanes, T* out) {
        add_scores(x, EveryColumn{}, count, W, lanes, out);
    };
    units.add_scores_csr32 = add_scores<T, const int32_t*>;
    units.add_scores_csr64 = add_scores<T, const int64_t*>;
    units.add_row_dense = [](const T* x, int64_t count, const T* coefficients, int64_t lanes, T* W) {
        add_row(x, EveryColumn{}, count, coefficients, lanes, W);
    };
    units.add_row_csr32 = add_row<T, const int32_t*>;
    units.add_row_csr64 = add_row<T, const int64_t*>;
    units.solve_row[int(Formulation::crammer_singer)] = solve_row<CrammerSinger, T>;
    units.solve_row[int(Formulation::weston_watkins)] = solve_row<WestonWatkins, T>;
    units.solve_row[int(Formulation::one_vs_rest)] = solve_row<OneVsRest, T>;
}

template void LARANK_UNITS_OF(LARANK_UNIT)(Units<float>&);
template void LARANK_UNITS_OF(LARANK_UNIT)(Units<double>&);

}  // namespace larank
