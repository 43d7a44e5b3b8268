// The heap and the system.
#pragma once

#if defined(__linux__)
#include <malloc.h>
#endif

namespace larank {

// Gives back to the system what the heap has free, which it would keep.
inline void trim_heap() {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

}  // namespace larank
