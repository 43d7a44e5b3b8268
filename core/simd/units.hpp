// The hot units: compiled once per instruction set from unit.cpp, chosen once at import by simd.cpp.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace larank {

template <class T>
constexpr int64_t lane_count = 64 / int64_t{sizeof(T)};
// Values that `sum_rows` adds up.
template <class T>
constexpr int64_t values_side_by_side = 4 * lane_count<T>;

template <class T>
constexpr int64_t padded(int64_t classes) {
    return (classes + lane_count<T> - 1) / lane_count<T> * lane_count<T>;
}

enum class Formulation { crammer_singer, weston_watkins, one_vs_rest };

// One example: its stored values and the rows of W they belong to. A dense row has neither kind of columns and stores
// every feature. The constant feature, where `intercept` is not zero, has row `intercept_row` of W.
template <class T>
struct Row {
    const T* values;
    const int32_t* columns32;
    const int64_t* columns64;
    int64_t count;
    T intercept;
    int64_t intercept_row;
    const T* dense_ahead = nullptr;  // the dense row that comes next, to be fetched meanwhile
};

// Features of some sparse examples: feature c of the list has entries starts[c] to starts[c + 1] - 1.
template <class T>
struct Columns {
    int64_t count;
    const int32_t* features;
    const int64_t* starts;
    const int32_t* rows;
    const T* values;
};

// The QP of one example: everything but its own coefficients held fixed. Arrays hold `lanes` values, of which the
// first `classes` count; the others are padding, zero in `coefficients`.
template <class T>
struct RowProblem {
    const T* scores;        // w_m' x_i
    const T* coefficients;  // a_i^m, with w_m = sum_i a_i^m x_i
    int64_t classes;
    int64_t lanes;
    int64_t label;  // the lane of y_i
    T A;            // |x_i|^2 > 0
    T C;            // the cost of this example > 0
    T skip;         // a violation up to this leaves the coefficients as they are
    T C_rest = C;   // one-versus-rest: its cost in the problems of the other classes
};

// What one look at an example found, and whether `change` holds a step to take.
template <class T>
struct RowStep {
    T violation;
    T loss;  // what C is the cost of
    bool moved;
    T rest_loss = 0;  // what C_rest is the cost of
};

// How a diagonal scaling moves, see linear/gradientrows.hpp.
template <class T>
struct Rescaling {
    T share, lambda, least;
};

// A piece of a table: its rows lie `stride` values apart.
template <class T>
struct Tile {
    T* values;
    int64_t rows;
    int64_t columns;
    int64_t stride;
};

// Rows side by side that others are multiplied with.
template <class T>
constexpr int64_t panel_columns = 2 * lane_count<T>;

enum class ProductKernel { rbf, polynomial, sigmoid };
enum class RowKernel { laplacian, chi_squared, intersection };

// What the map from inner products to kernel values needs: squared norms, for distances, and the kernel's parameters.
template <class T>
struct MapArguments {
    const T* row_norms;
    const T* column_norms;
    T gamma;
    T coef0;
    int64_t degree;
};

// How the numbers of a row of the lattice are stored, and how many words of 32 bits they take; two more follow them.
enum class LatticeNumber { byte, half_word };
constexpr int64_t lattice_terms = 2;
template <class Q>
constexpr int64_t lattice_words(int64_t features) {
    return (features * int64_t{sizeof(Q)} + 3) / 4;
}

// The values of a lattice in increasing order, NaN where a value has not been met; the first one is number `lowest`.
template <class T>
struct LatticeTable {
    T* values;
    int32_t size;
    int32_t lowest;
    T low;
    T inverse_step;
};

// |x_i - x_j|^2 below this share of |x_i|^2 + |x_j|^2 is rounding.
constexpr double rounding_share = 1e-15;

// The largest of some values that may grow and the smallest of those that may shrink; -1 where there is none.
struct Extremes {
    double largest = -std::numeric_limits<double>::infinity();
    int64_t at_largest = -1;
    double smallest = std::numeric_limits<double>::infinity();
    int64_t at_smallest = -1;
};

template <class T>
struct Units {
    // out = x' W over all lanes, and W += x coefficients'.
    void (*scores)(const Row<T>& x, const T* W, int64_t lanes, bool prefetch_weights, T* out);
    void (*add_row)(const Row<T>& x, const T* coefficients, int64_t lanes, T* W);
    void (*scores_in_double)(const Row<T>& x, const T* W, int64_t lanes, bool prefetch_weights, double* out);
    // The same two for a few named classes, where whole rows of W would cost more than they serve.
    void (*scores_of)(const Row<T>& x, const T* W, int64_t lanes, const int32_t* classes, int64_t count, T* out);
    void (*add_row_of)(const Row<T>& x, const T* coefficients, const int32_t* classes, int64_t count, int64_t lanes,
                       T* W);
    // The same two for several examples at once: dense ones, and sparse ones feature by feature.
    void (*dense_scores)(const T* X, int64_t count, int64_t features, const T* W, int64_t lanes, T* F);
    void (*dense_add)(const T* X, int64_t count, int64_t features, const T* G, int64_t lanes, T* W);
    void (*add_columns)(const Columns<T>& X, const T* V, int64_t lanes, T* F);
    void (*sum_columns)(const Columns<T>& X, const T* G, int64_t lanes, T* W);
    // Stochastic gradient steps, see linear/gradientrows.hpp.
    T (*dot_one)(const Row<T>& x, const T* w);
    double (*dot_one_in_double)(const Row<T>& x, const T* w);
    void (*add_one)(const Row<T>& x, T coefficient, T* w);
    void (*add_one_scaled)(const Row<T>& x, T coefficient, const T* B, T* w);
    void (*add_row_scaled)(const Row<T>& x, const T* coefficients, int64_t lanes, const T* B, T* W);
    void (*add_one_twice)(const Row<T>& x, const T* D, T coefficient, T second, T* w, T* u);
    void (*add_row_twice)(const Row<T>& x, const T* D, const T* coefficients, const T* seconds, int64_t lanes, T* W,
                          T* U);
    void (*add_row_in_double)(const Row<T>& x, const double* coefficients, int64_t functions, double* W);
    void (*shrink)(const T* rates, int64_t rows, int64_t lanes, T* W);
    void (*shrink_scaled)(const T* rates, int64_t rows, int64_t lanes, const T* B, T* W);
    void (*shrink_twice)(const T* rates, const T* ratios, const T* D, int64_t rows, int64_t lanes, T* W, T* U);
    void (*rescale)(const Row<T>& x, int64_t rows, const T* curvatures, const Rescaling<T>& by, int64_t lanes, T* B);
    // Indexed by Formulation. Writes the new coefficients minus the old ones to `change`; `work` holds `lanes` values.
    RowStep<T> (*solve_row[3])(const RowProblem<T>& row, T* work, T* change);
    // A row of kernel values against the support vectors of a class, see kernel/kernelrow.hpp.
    void (*add_row_values)(const T* k, double a, int64_t count, double* g);
    void (*add_row_in_type)(const T* k, T a, int64_t count, T* g);
    void (*add_row_values_at)(const T* k, const int32_t* slots, double a, int64_t count, double* g);
    void (*sum_rows)(const T* const* rows, int64_t at, const double* beta, int64_t count, double* sums);
    double (*dot_row_at)(const T* k, const int32_t* slots, const double* beta, int64_t count);
    // The gradient of a binary dual and the choice of a step, see kernel/gradient.hpp.
    Extremes (*find_extremes)(const double* g, const float* up, const float* down, int64_t count);
    Extremes (*move_gradient)(const T* ki, const T* kj, double step, const float* up, const float* down, int64_t count,
                              double* g);
    Extremes (*move_gradient_at)(const T* ki, const T* kj, const int32_t* slots, double step, const float* up,
                                 const float* down, int64_t count, double* g);
    int64_t (*best_partner)(const T* ki, const double* diagonal, double kii, double gi, const double* g,
                            const float* down, int64_t count);
    double (*dot_row)(const T* k, const double* beta, int64_t count);
    // One step of Viterbi, see chain/maxplus.hpp.
    void (*max_plus)(const T* scores, int64_t stride, const T* transitions, int64_t count, int64_t lanes, T* best,
                     T* argument);
    // Indexed by ProductKernel: inner products become kernel values, in place.
    void (*map_products[3])(const Tile<T>& products, const MapArguments<T>& with);
    bool (*is_within)(const Tile<T>& values, T bound);  // all of them, in absolute value
    // Indexed by LatticeNumber: products of rows on a lattice, and how these are made, see blocks/lattice.hpp.
    void (*lattice_products[2])(const uint32_t* X, const uint32_t* Z, int64_t words, int32_t factor, T scale,
                                const Tile<T>& out);
    bool (*lattice_numbers[2])(const T* X, int64_t rows, int64_t features, const LatticeTable<T>& lattice,
                               uint32_t* out);
    void (*lattice_sums[2])(const uint32_t* rows, int64_t count, int64_t words, int64_t* sums, int64_t* squares);
    // Many dense rows with many, see blocks/widepanels.hpp; null in units of other instruction sets.
    void (*wide_products)(const T* X, const T* Z, int64_t features, T* panel, const Tile<T>& out);
    // Indexed by RowKernel: out = k(row of X, row of Z), dense rows of `features` values one after another.
    void (*compare_rows[3])(const T* X, const T* Z, int64_t features, T gamma, const Tile<T>& out);
};

// The units in use, and the names of those this machine can run, slowest first.
template <class T>
const Units<T>& units();
const std::string& simd_level();
std::vector<std::string> simd_levels();
void set_simd_level(const std::string& level);
// Whether this machine multiplies bytes and half-words faster than floating-point numbers.
bool has_integer_products();

}  // namespace larank
