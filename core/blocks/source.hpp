// Where a solver asks for kernel values that it does not have: it names slots and is handed rows.
#pragma once

#include <cstdint>
#include <vector>

namespace larank {

// Rows of values one after another, `stride` apart, for as long as the source is not asked again.
template <class T>
struct SourceRows {
    const T* values;
    int64_t stride;

    const T* operator[](std::size_t n) const { return values + int64_t(n) * stride; }
};

template <class T>
class KernelSource {
  public:
    virtual ~KernelSource() = default;
    // The kernel values of the patterns in some slots with those in the first `columns` slots. Where one is free,
    // anything finite will do.
    virtual SourceRows<T> rows(const std::vector<int32_t>& slots, int64_t columns) = 0;
    // The kernel values of the patterns in some slots with those in others.
    virtual SourceRows<T> between(const std::vector<int32_t>& slots, const std::vector<int32_t>& others) = 0;
};

}  // namespace larank
