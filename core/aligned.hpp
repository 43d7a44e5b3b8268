// Arrays for W and the class lanes: 64-byte aligned, zero at first, on huge pages where they are large.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace larank {

template <class T>
class AlignedArray {
  public:
    explicit AlignedArray(int64_t size) : size_(size), data_(allocate(size)) { clear(); }

    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    int64_t size() const { return size_; }
    void clear() { std::memset(static_cast<void*>(data()), 0, std::size_t(size_) * sizeof(T)); }

  private:
    struct Free {
        void operator()(T* p) const { std::free(p); }
    };

    // Random rows of a W of many megabytes miss the TLB at every access unless its pages are large.
    static T* allocate(int64_t size) {
        constexpr std::size_t huge = std::size_t{1} << 21;
        const std::size_t bytes = std::size_t(size) * sizeof(T), alignment = bytes >= huge ? huge : 64;
        const std::size_t whole = (bytes + alignment) / alignment * alignment;
        void* p = std::aligned_alloc(alignment, whole);
        if (!p) throw std::bad_alloc();
#if defined(__linux__)
        if (alignment == huge) madvise(p, whole, MADV_HUGEPAGE);
#endif
        return static_cast<T*>(p);
    }

    int64_t size_;
    std::unique_ptr<T, Free> data_;
};

}  // namespace larank
