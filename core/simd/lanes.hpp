// Sixty-four bytes of class lanes: the unit in which rows of W and the row QPs are worked on.
//
// The compiler lowers the same code to whatever the instruction set of the translation unit offers. Every operation,
// the order of the horizontal reductions included, is the same in all of them, so all units round alike. The scalar
// unit (LARANK_SCALAR) spells the lanes out in plain loops and is what the others are tested against.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "simd/units.hpp"

namespace larank {
inline namespace LARANK_UNIT {

// The bits of a number, and where its exponent begins.
template <class T>
struct Bits;
template <>
struct Bits<float> {
    using type = uint32_t;
    static constexpr int mantissa = 23;
};
template <>
struct Bits<double> {
    using type = uint64_t;
    static constexpr int mantissa = 52;
};

#ifdef LARANK_SCALAR

template <class T>
struct Mask {
    bool lane[lane_count<T>];
};

template <class T>
struct Lanes {
    T lane[lane_count<T>];
    T operator[](int64_t i) const { return lane[i]; }
};

#define LARANK_LANEWISE(op)                                                   \
    template <class T>                                                        \
    Lanes<T> operator op(const Lanes<T>& a, const Lanes<T>& b) {              \
        Lanes<T> r;                                                           \
        for (int64_t i = 0; i < lane_count<T>; ++i) r.lane[i] = a[i] op b[i]; \
        return r;                                                             \
    }
LARANK_LANEWISE(+)
LARANK_LANEWISE(-)
LARANK_LANEWISE(*)
LARANK_LANEWISE(/)
#undef LARANK_LANEWISE

template <class T>
Mask<T> operator>(const Lanes<T>& a, const Lanes<T>& b) {
    Mask<T> r;
    for (int64_t i = 0; i < lane_count<T>; ++i) r.lane[i] = a[i] > b[i];
    return r;
}

template <class T>
Mask<T> operator==(const Lanes<T>& a, const Lanes<T>& b) {
    Mask<T> r;
    for (int64_t i = 0; i < lane_count<T>; ++i) r.lane[i] = a[i] == b[i];
    return r;
}

template <class T>
Lanes<T> select(const Mask<T>& where, const Lanes<T>& a, const Lanes<T>& b) {
    Lanes<T> r;
    for (int64_t i = 0; i < lane_count<T>; ++i) r.lane[i] = where.lane[i] ? a[i] : b[i];
    return r;
}

template <class T>
Lanes<T> broadcast(T x) {
    Lanes<T> r;
    for (int64_t i = 0; i < lane_count<T>; ++i) r.lane[i] = x;
    return r;
}

template <class T>
Lanes<T> load(const T* from) {
    Lanes<T> v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

template <class T>
void store(T* to, const Lanes<T>& v) {
    std::memcpy(to, &v, sizeof v);
}

template <class Sum, class T>
Lanes<Sum> load_as(const T* from) {
    Lanes<Sum> v;
    for (int64_t i = 0; i < lane_count<Sum>; ++i) v.lane[i] = Sum(from[i]);
    return v;
}

// x 2^n, where the last bits of `shifted` hold n. Zeros, infinities and results that are not normal are not cared for.
template <class T>
Lanes<T> scale_by_power(const Lanes<T>& x, const Lanes<T>& shifted) {
    Lanes<T> r;
    for (int64_t i = 0; i < lane_count<T>; ++i) {
        typename Bits<T>::type number, power;
        std::memcpy(&number, &x.lane[i], sizeof number);
        std::memcpy(&power, &shifted.lane[i], sizeof power);
        number += power << Bits<T>::mantissa;
        std::memcpy(&r.lane[i], &number, sizeof number);
    }
    return r;
}

template <class T, class Combine>
T reduce(const Lanes<T>& a, Combine combine) {
    Lanes<T> r = a;
    for (int64_t half = lane_count<T> / 2; half > 0; half /= 2)
        for (int64_t i = 0; i < half; ++i) r.lane[i] = combine(r.lane[i], r.lane[i + half]);
    return r.lane[0];
}

#else

// One register of the instruction set. A wider vector type would compile too, but selections on it become scalar code.
#if defined(__AVX512F__)
constexpr std::size_t register_bytes = 64;
#elif defined(__AVX__)
constexpr std::size_t register_bytes = 32;
#else
constexpr std::size_t register_bytes = 16;
#endif
constexpr std::size_t parts = 64 / register_bytes;

template <class T, std::size_t Bytes = register_bytes>
struct VectorOf {
    typedef T type __attribute__((vector_size(Bytes)));
};
template <class T, std::size_t Bytes = register_bytes>
using Vector = typename VectorOf<T, Bytes>::type;

template <class T>
struct Mask {
    decltype(Vector<T>{} > Vector<T>{}) part[parts];
};

template <class T>
struct Lanes {
    Vector<T> part[parts];
    T operator[](int64_t i) const {
        constexpr int64_t width = register_bytes / sizeof(T);
        return part[i / width][i % width];
    }
};

#define LARANK_LANEWISE(op, Result)                                                 \
    template <class T>                                                              \
    Result<T> operator op(const Lanes<T>& a, const Lanes<T>& b) {                   \
        Result<T> r;                                                                \
        for (std::size_t p = 0; p < parts; ++p) r.part[p] = a.part[p] op b.part[p]; \
        return r;                                                                   \
    }
LARANK_LANEWISE(+, Lanes)
LARANK_LANEWISE(-, Lanes)
LARANK_LANEWISE(*, Lanes)
LARANK_LANEWISE(/, Lanes)
LARANK_LANEWISE(>, Mask)
LARANK_LANEWISE(==, Mask)
#undef LARANK_LANEWISE

template <class T>
Lanes<T> select(const Mask<T>& where, const Lanes<T>& a, const Lanes<T>& b) {
    Lanes<T> r;
    for (std::size_t p = 0; p < parts; ++p) r.part[p] = where.part[p] ? a.part[p] : b.part[p];
    return r;
}

template <class T>
Lanes<T> broadcast(T x) {
    Lanes<T> r;
    for (std::size_t p = 0; p < parts; ++p) r.part[p] = x - Vector<T>{};
    return r;
}

// Register by register: a copy of all 64 bytes at once goes through memory on narrower machines.
template <class T>
Lanes<T> load(const T* from) {
    Lanes<T> v;
    for (std::size_t p = 0; p < parts; ++p)
        std::memcpy(&v.part[p], from + p * register_bytes / sizeof(T), register_bytes);
    return v;
}

// As many numbers as `Lanes<Sum>` holds, in the type of a sum.
template <class Sum, class T>
Lanes<Sum> load_as(const T* from) {
    if constexpr (std::is_same_v<Sum, T>) {
        return load(from);
    } else {
        constexpr std::size_t width = register_bytes / sizeof(Sum);
        Lanes<Sum> v;
        for (std::size_t p = 0; p < parts; ++p) {
            Vector<T, width * sizeof(T)> narrow;
            std::memcpy(&narrow, from + p * width, sizeof narrow);
            v.part[p] = __builtin_convertvector(narrow, Vector<Sum>);
        }
        return v;
    }
}

template <class T>
void store(T* to, const Lanes<T>& v) {
    for (std::size_t p = 0; p < parts; ++p)
        std::memcpy(to + p * register_bytes / sizeof(T), &v.part[p], register_bytes);
}

template <class T>
Lanes<T> scale_by_power(const Lanes<T>& x, const Lanes<T>& shifted) {
    using BitVector = Vector<typename Bits<T>::type>;
    Lanes<T> r;
    for (std::size_t p = 0; p < parts; ++p)
        r.part[p] = (Vector<T>)((BitVector)x.part[p] + ((BitVector)shifted.part[p] << Bits<T>::mantissa));
    return r;
}

// The upper half of a vector upon the lower, until one value is left.
template <class T, std::size_t Bytes, class Combine>
T reduce_vector(const Vector<T, Bytes>& v, Combine combine) {
    if constexpr (Bytes == 2 * sizeof(T)) {
        return combine(T(v[0]), T(v[1]));
    } else {
        Vector<T, Bytes / 2> half[2];
        std::memcpy(half, &v, sizeof half);
        return reduce_vector<T, Bytes / 2>(combine(half[0], half[1]), combine);
    }
}

template <class T, class Combine>
T reduce(const Lanes<T>& a, Combine combine) {
    Lanes<T> r = a;
    for (std::size_t half = parts / 2; half > 0; half /= 2)
        for (std::size_t p = 0; p < half; ++p) r.part[p] = combine(r.part[p], r.part[p + half]);
    return reduce_vector<T, register_bytes>(r.part[0], combine);
}

#endif

// 0, 1, 2, ... : the class each lane of a row's first vector stands for.
template <class T>
Lanes<T> class_indices() {
    T index[lane_count<T>];
    for (int64_t i = 0; i < lane_count<T>; ++i) index[i] = T(i);
    return load(index);
}

struct Sum {
    template <class V>
    V operator()(const V& a, const V& b) const {
        return a + b;
    }
};

struct Greatest {
    template <class V>
    V operator()(const V& a, const V& b) const {
        return a > b ? a : b;
    }
};

template <class V>
V larger(const V& a, const V& b) {
    return select(a > b, a, b);
}

template <class V>
V smaller(const V& a, const V& b) {
    return select(a > b, b, a);
}

template <class T>
T sum(const Lanes<T>& a) {
    return reduce(a, Sum{});
}

template <class T>
T greatest(const Lanes<T>& a) {
    return reduce(a, Greatest{});
}

}  // namespace LARANK_UNIT
}  // namespace larank
