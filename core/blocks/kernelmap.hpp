// Kernel values: element-wise maps over a tile of inner products, and kernels that compare two rows feature by feature.
//
// A tile is a piece of a larger table, so its rows lie `stride` values apart. Products come from BLAS; the map is one
// pass over the tile while it is in cache. The exponential is written here because a library's would differ between
// machines, and the units must round alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "simd/lanes.hpp"

// Called from the loop over whole vectors and again for the end of a row: twice, so not inlined unless told.
#define LARANK_INLINE inline __attribute__((always_inline))

namespace larank {
inline namespace LARANK_UNIT {

// The first `count` lanes from memory, zeros in the others.
template <class T>
Lanes<T> load(const T* from, int64_t count) {
    if (count == lane_count<T>) return load(from);
    T padded_values[lane_count<T>] = {};
    std::copy(from, from + count, padded_values);
    return load(padded_values);
}

template <class T>
void store(T* to, const Lanes<T>& v, int64_t count) {
    if (count == lane_count<T>) return store(to, v);
    for (int64_t i = 0; i < count; ++i) to[i] = v[i];
}

// exp(x) = 2^n exp(r) with n the integer nearest to x / ln 2: `ln2_high` has so few digits that n * ln2_high is exact.
// `series` are the coefficients c of exp(r) = 1 + r + r^2 (c_0 + c_1 r + ...), interpolated at Chebyshev points of
// |r| <= ln(2) / 2; what they leave out is below a fifth of a unit in the last place. Adding `round` leaves n in the
// last bits of the sum. Below `smallest` the result would not be a normal number.
template <class T>
struct Exponential;

template <>
struct Exponential<float> {
    static constexpr float log2_e = 1.44269504f, round = 12582912.0f, smallest = -87.33f;
    static constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    static constexpr float series[] = {0.5f, 0.166665778f, 0.0416665561f, 0.00836317334f, 0.00139261759f};
};

template <>
struct Exponential<double> {
    static constexpr double log2_e = 1.4426950408889634, round = 6755399441055744.0, smallest = -708.39;
    static constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
    static constexpr double series[] = {0.5000000000000001,     0.16666666666666669,    0.041666666666624164,
                                        0.008333333333330065,   0.0013888888917196881,  0.0001984126986304067,
                                        2.4801521322116825e-05, 2.7557268480116333e-06, 2.762007599981065e-07,
                                        2.5100375924709717e-08};
};

template <class T, std::size_t Count>
LARANK_INLINE Lanes<T> polynomial(const Lanes<T>& x, const T (&coefficients)[Count]) {
    Lanes<T> value = broadcast(coefficients[Count - 1]);
    for (std::size_t i = Count - 1; i-- > 0;) value = value * x + broadcast(coefficients[i]);
    return value;
}

// exp(x) for x <= 0, to about one unit in the last place; 1 at 0, and 0 where the result would be subnormal.
template <class T>
LARANK_INLINE Lanes<T> exp_of_negative(const Lanes<T>& x) {
    using E = Exponential<T>;
    const Lanes<T> shifted = x * broadcast(E::log2_e) + broadcast(E::round);
    const Lanes<T> n = shifted - broadcast(E::round);
    const Lanes<T> r = x - n * broadcast(E::ln2_high) - n * broadcast(E::ln2_low);
    const Lanes<T> fraction = polynomial(r, E::series) * (r * r) + r + broadcast(T(1));
    return select(broadcast(E::smallest) > x, broadcast(T(0)), scale_by_power(fraction, shifted));
}

// tanh near 0, where (1 - e) / (1 + e) with e = exp(-2 |x|) would cancel: the approximations of the Cephes library.
LARANK_INLINE Lanes<float> tanh_near_zero(const Lanes<float>& x) {
    constexpr float series[] = {-3.33332819422e-1f, 1.33314422036e-1f, -5.37397155531e-2f, 2.06390887954e-2f,
                                -5.70498872745e-3f};
    const Lanes<float> square = x * x;
    return polynomial(square, series) * square * x + x;
}

LARANK_INLINE Lanes<double> tanh_near_zero(const Lanes<double>& x) {
    constexpr double above[] = {-1.61468768441708447952e3, -9.92877231001918586564e1, -9.64399179425052238628e-1};
    constexpr double below[] = {4.84406305325125486048e3, 2.23548839060100448583e3, 1.12811678491632931402e2, 1.0};
    const Lanes<double> square = x * x;
    return x + x * square * (polynomial(square, above) / polynomial(square, below));
}

template <class T>
LARANK_INLINE Lanes<T> tanh(const Lanes<T>& x) {
    const Lanes<T> zero = broadcast(T(0)), one = broadcast(T(1));
    const Lanes<T> magnitude = select(zero > x, zero - x, x);
    const Lanes<T> e = exp_of_negative(broadcast(T(-2)) * magnitude);
    const Lanes<T> far = (one - e) / (one + e);
    return select(magnitude > broadcast(T(0.625)), select(zero > x, zero - far, far), tanh_near_zero(x));
}

// Element-wise maps: `enter` a row, then `count` values from a column on.

template <class T>
struct Rbf {
    const MapArguments<T>& with;
    Lanes<T> row{};
    void enter(int64_t i) { row = broadcast(with.row_norms[i]); }
    Lanes<T> operator()(const Lanes<T>& products, int64_t column, int64_t count) const {
        const Lanes<T> zero = broadcast(T(0));
        const Lanes<T> distance = row + load(with.column_norms + column, count) - (products + products);
        return exp_of_negative(broadcast(-with.gamma) * select(zero > distance, zero, distance));
    }
};

template <class T>
struct Polynomial {
    const MapArguments<T>& with;
    void enter(int64_t) {}
    Lanes<T> operator()(const Lanes<T>& products, int64_t, int64_t) const {
        Lanes<T> power = broadcast(with.gamma) * products + broadcast(with.coef0), value = broadcast(T(1));
        for (int64_t rest = with.degree; rest > 0; rest /= 2) {
            if (rest % 2) value = value * power;
            if (rest > 1) power = power * power;
        }
        return value;
    }
};

template <class T>
struct Sigmoid {
    const MapArguments<T>& with;
    void enter(int64_t) {}
    Lanes<T> operator()(const Lanes<T>& products, int64_t, int64_t) const {
        return tanh(broadcast(with.gamma) * products + broadcast(with.coef0));
    }
};

// exp(-gamma distance), for distances found without a product.
template <class T>
struct Decay {
    const MapArguments<T>& with;
    void enter(int64_t) {}
    Lanes<T> operator()(const Lanes<T>& distances, int64_t, int64_t) const {
        return exp_of_negative(broadcast(-with.gamma) * distances);
    }
};

template <template <class> class Map, class T>
void map_tile(const Tile<T>& tile, const MapArguments<T>& with) {
    constexpr int64_t width = lane_count<T>;
    Map<T> map{with};
    for (int64_t i = 0; i < tile.rows; ++i) {
        T* row = tile.values + i * tile.stride;
        map.enter(i);
        int64_t j = 0;
        for (; j + width <= tile.columns; j += width) store(row + j, map(load(row + j), j, width));
        if (j < tile.columns) {
            const int64_t count = tile.columns - j;
            store(row + j, map(load(row + j, count), j, count), count);
        }
    }
}

// Whether no value of a tile is beyond the bound on either side; NaN is.
template <class T>
bool is_within(const Tile<T>& tile, T bound) {
    constexpr int64_t width = lane_count<T>;
    const Lanes<T> zero = broadcast(T(0)), one = broadcast(T(1)), above = broadcast(bound), below = broadcast(-bound);
    Lanes<T> outside = zero;
    const auto look = [&](const Lanes<T>& v) {
        outside = larger(outside, select(v > above, one, select(below > v, one, select(v == v, zero, one))));
    };
    for (int64_t i = 0; i < tile.rows; ++i) {
        const T* row = tile.values + i * tile.stride;
        int64_t j = 0;
        for (; j + width <= tile.columns; j += width) look(load(row + j));
        if (j < tile.columns) look(load(row + j, tile.columns - j));
    }
    return greatest(outside) == 0;
}

// Kernels of two rows: what one feature adds. Features that are zero in both rows, such as padding, add nothing.

struct AbsoluteDifference {
    template <class V>
    V operator()(const V& x, const V& z) const {
        return larger(x - z, z - x);
    }
};

struct Smaller {
    template <class V>
    V operator()(const V& x, const V& z) const {
        return smaller(x, z);
    }
};

struct ChiSquared {
    template <class T>
    Lanes<T> operator()(const Lanes<T>& x, const Lanes<T>& z) const {
        const Lanes<T> difference = x - z, total = x + z;
        const Lanes<T> divisor = select(total == broadcast(T(0)), broadcast(T(1)), total);
        return difference * difference / divisor;
    }
};

// Several rows of X against several of Z at once, so that a vector loaded serves more than one sum.
template <std::size_t XRows, std::size_t ZRows, class Term, class T>
void compare_few(const T* X, const T* Z, int64_t features, T* out, int64_t stride) {
    constexpr int64_t width = lane_count<T>;
    Lanes<T> total[XRows][ZRows];
    for (auto& row : total)
        for (Lanes<T>& value : row) value = broadcast(T(0));
    const auto add = [&](int64_t j, int64_t count) {
        Lanes<T> z[ZRows];
        for (std::size_t b = 0; b < ZRows; ++b) z[b] = load(Z + int64_t(b) * features + j, count);
        for (std::size_t a = 0; a < XRows; ++a) {
            const Lanes<T> x = load(X + int64_t(a) * features + j, count);
            for (std::size_t b = 0; b < ZRows; ++b) total[a][b] = total[a][b] + Term{}(x, z[b]);
        }
    };
    int64_t j = 0;
    for (; j + width <= features; j += width) add(j, width);
    if (j < features) add(j, features - j);
    for (std::size_t a = 0; a < XRows; ++a)
        for (std::size_t b = 0; b < ZRows; ++b) out[int64_t(a) * stride + int64_t(b)] = sum(total[a][b]);
}

// Rows of Z are taken in panels that stay in the cache while all rows of X go by.
template <class Term, class T>
void compare_rows(const T* X, const T* Z, int64_t features, const Tile<T>& out) {
    constexpr int64_t x_step = 2, z_step = 4, panel_values = 32768;
    const int64_t panel = std::max(z_step, panel_values / std::max<int64_t>(features, 1) / z_step * z_step);
    for (int64_t first = 0; first < out.columns; first += panel) {
        const int64_t last = std::min(out.columns, first + panel);
        const auto sweep = [&](auto x_rows, int64_t i) {
            constexpr std::size_t height = decltype(x_rows)::value;
            T* row = out.values + i * out.stride;
            int64_t j = first;
            for (; j + z_step <= last; j += z_step)
                compare_few<height, z_step, Term>(X + i * features, Z + j * features, features, row + j, out.stride);
            for (; j < last; ++j)
                compare_few<height, 1, Term>(X + i * features, Z + j * features, features, row + j, out.stride);
        };
        int64_t i = 0;
        for (; i + x_step <= out.rows; i += x_step) sweep(std::integral_constant<std::size_t, x_step>{}, i);
        for (; i < out.rows; ++i) sweep(std::integral_constant<std::size_t, 1>{}, i);
    }
}

template <class Term, class T>
void compare_rows_and_decay(const T* X, const T* Z, int64_t features, T gamma, const Tile<T>& out) {
    compare_rows<Term>(X, Z, features, out);
    map_tile<Decay>(out, MapArguments<T>{nullptr, nullptr, gamma, 0, 0});
}

template <class T>
void intersection(const T* X, const T* Z, int64_t features, T, const Tile<T>& out) {
    compare_rows<Smaller>(X, Z, features, out);
}

}  // namespace LARANK_UNIT
}  // namespace larank
