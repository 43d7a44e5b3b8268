// Asks for a cache line ahead of its use.
#pragma once

#include <cstdint>

namespace larank {

// Rows of W asked for ahead of their use: of 12 and 20, the latter was quicker on news20 in double precision.
constexpr int64_t prefetch_distance = 20;

// GCC takes a function that does nothing but __builtin_prefetch for one without effect and drops the calls to it.
inline void prefetch(const void* address) {
#if defined(__x86_64__) && defined(__GNUC__)
    asm volatile("prefetcht0 %0" : : "m"(*static_cast<const char*>(address)));
#else
    __builtin_prefetch(address);
#endif
}

// The same, but into the second cache only: for what is used a while later.
inline void prefetch_for_later(const void* address) {
#if defined(__x86_64__) && defined(__GNUC__)
    asm volatile("prefetcht1 %0" : : "m"(*static_cast<const char*>(address)));
#else
    __builtin_prefetch(address, 0, 2);
#endif
}

}  // namespace larank
