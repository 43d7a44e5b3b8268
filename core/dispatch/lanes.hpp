// Sixty-four bytes of class lanes: the unit in which rows of W and the row QPs are worked on.
//
// The compiler lowers the same code to whatever the instruction set of the translation unit offers. Every operation,
// the order of the horizontal reductions included, is the same in all of them, so all units round alike. The scalar
// unit (LARANK_SCALAR) spells the lanes out in plain loops and is what the others are tested against.
#pragma once

#include <cstdint>
#include <cstring>

#include "dispatch/units.hpp"

namespace larank {
inline namespace LARANK_UNIT {

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

template <class T, class Combine>
T reduce(const Lanes<T>& a, Combine combine) {
    Lanes<T> r = a;
    for (int64_t half = lane_count<T> / 2; half > 0; half /= 2)
        for (int64_t i = 0; i < half; ++i) r.lane[i] = combine(r.lane[i], r.lane[i + half]);
    return r.lane[0];
}

#else

// One vector of `Count` values; the compiler splits it into as many registers as the instruction set needs.
template <class T, int Count>
struct VectorOf {
    typedef T type __attribute__((vector_size(Count * sizeof(T))));
};
template <class T, int Count = int(lane_count<T>)>
using Vector = typename VectorOf<T, Count>::type;

template <class T>
struct Mask {
    decltype(Vector<T>{} > Vector<T>{}) lane;
};

template <class T>
struct Lanes {
    Vector<T> lane;
    T operator[](int64_t i) const { return lane[i]; }
};

#define LARANK_LANEWISE(op, Result)                               \
    template <class T>                                            \
    Result<T> operator op(const Lanes<T>& a, const Lanes<T>& b) { \
        return {a.lane op b.lane};                                \
    }
LARANK_LANEWISE(+, Lanes)
LARANK_LANEWISE(-, Lanes)
LARANK_LANEWISE(*, Lanes)
LARANK_LANEWISE(>, Mask)
LARANK_LANEWISE(==, Mask)
#undef LARANK_LANEWISE

template <class T>
Lanes<T> select(const Mask<T>& where, const Lanes<T>& a, const Lanes<T>& b) {
    return {where.lane ? a.lane : b.lane};
}

template <class T>
Lanes<T> broadcast(T x) {
    return {x - Vector<T>{}};
}

template <class Combine>
double reduce(const Lanes<double>& a, Combine combine) {
    const auto v = a.lane;
    const Vector<double, 4> q = combine(Vector<double, 4>(__builtin_shufflevector(v, v, 0, 1, 2, 3)),
                                        Vector<double, 4>(__builtin_shufflevector(v, v, 4, 5, 6, 7)));
    const Vector<double, 2> h = combine(Vector<double, 2>(__builtin_shufflevector(q, q, 0, 1)),
                                        Vector<double, 2>(__builtin_shufflevector(q, q, 2, 3)));
    return combine(double(h[0]), double(h[1]));
}

template <class Combine>
float reduce(const Lanes<float>& a, Combine combine) {
    const auto v = a.lane;
    const Vector<float, 8> o = combine(Vector<float, 8>(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7)),
                                       Vector<float, 8>(__builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15)));
    const Vector<float, 4> q = combine(Vector<float, 4>(__builtin_shufflevector(o, o, 0, 1, 2, 3)),
                                       Vector<float, 4>(__builtin_shufflevector(o, o, 4, 5, 6, 7)));
    const Vector<float, 4> h = combine(q, Vector<float, 4>(__builtin_shufflevector(q, q, 2, 3, 2, 3)));
    return combine(float(h[0]), float(h[1]));
}

#endif

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
