// Which values data have, when they all lie on a lattice: at most one value for each of its numbers.
#pragma once

#include <cmath>
#include <cstdint>

#include "simd/units.hpp"

namespace larank {

// Enter all values into the table. The first that has no place there, or whose place has another value, ends it: its
// position is returned, or -1 if there is none.
template <class T>
int64_t fill_lattice(const T* values, int64_t count, const LatticeTable<T>& lattice) {
    for (int64_t i = 0; i < count; ++i) {
        const T x = values[i];
        const T place = (x - lattice.low) * lattice.inverse_step + T(0.5);
        if (!(place >= 0 && place < T(lattice.size))) return i;
        T& known = lattice.values[int64_t(place)];
        if (known == x) continue;
        if (!std::isnan(known)) return i;
        known = x;
    }
    return -1;
}

}  // namespace larank
