// Memory for large arrays: 64-byte aligned, on huge pages where it is worth it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace larank {

// Accesses in random order to many megabytes miss the TLB every time unless the pages are large; and the system clears
// a huge page in a fraction of the time that it takes to hand out as many small ones.
constexpr std::size_t huge_page = std::size_t{1} << 21;

// What different threads write lies so far apart: processors fetch lines in pairs.
constexpr std::size_t cache_lines = 128;

inline void* allocate_aligned(std::size_t bytes) {
    const std::size_t alignment = bytes >= huge_page ? huge_page : 64;
    const std::size_t whole = (bytes + alignment) / alignment * alignment;
    void* p = std::aligned_alloc(alignment, whole);
    if (!p) throw std::bad_alloc();
#if defined(__linux__)
    if (alignment == huge_page) madvise(p, whole, MADV_HUGEPAGE);
#endif
    return p;
}

template <class T>
struct AlignedAllocator {
    using value_type = T;
    AlignedAllocator() = default;
    template <class U>
    AlignedAllocator(const AlignedAllocator<U>&) {}
    T* allocate(std::size_t count) { return static_cast<T*>(allocate_aligned(count * sizeof(T))); }
    void deallocate(T* p, std::size_t) { std::free(p); }
    bool operator==(const AlignedAllocator&) const { return true; }
    bool operator!=(const AlignedAllocator&) const { return false; }
};

// A std::vector on large pages, for what is visited in random order.
template <class T>
using LargeVector = std::vector<T, AlignedAllocator<T>>;

// A fixed number of zeros.
template <class T>
class AlignedArray {
  public:
    explicit AlignedArray(int64_t size)
        : size_(size), data_(static_cast<T*>(allocate_aligned(std::size_t(size) * sizeof(T)))) {
        clear();
    }

    AlignedArray(const AlignedArray& other) : AlignedArray(other.size_) { *this = other; }
    AlignedArray(AlignedArray&&) = default;
    AlignedArray& operator=(AlignedArray&&) = default;
    AlignedArray& operator=(const AlignedArray& other) {
        if (size_ != other.size_) *this = AlignedArray(other.size_);
        std::memcpy(static_cast<void*>(data()), other.data(), std::size_t(size_) * sizeof(T));
        return *this;
    }

    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    int64_t size() const { return size_; }
    void clear() { std::memset(static_cast<void*>(data()), 0, std::size_t(size_) * sizeof(T)); }

    // Of a size that both sides know.
    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        for (int64_t n = 0; n < size_; ++n) snapshot(data()[n]);
    }

  private:
    struct Free {
        void operator()(T* p) const { std::free(p); }
    };

    int64_t size_;
    std::unique_ptr<T, Free> data_;
};

// Memory of its own that goes back to the system when it is freed, whatever the heap keeps; zeros.
template <class T>
class Pages {
  public:
    Pages() = default;
    explicit Pages(int64_t size) : bytes_(std::size_t(size) * sizeof(T)) {
#if defined(__linux__)
        if (bytes_ >= least) {
            data_ = static_cast<T*>(bytes_ < huge_page ? map(bytes_) : map_huge(bytes_));
            return;
        }
#endif
        data_ = static_cast<T*>(allocate_aligned(bytes_));
        std::memset(static_cast<void*>(data_), 0, bytes_);
    }
    Pages(Pages&& other) noexcept
        : bytes_(std::exchange(other.bytes_, 0)), data_(std::exchange(other.data_, nullptr)) {}
    Pages& operator=(Pages&& other) noexcept {
        std::swap(bytes_, other.bytes_);
        std::swap(data_, other.data_);
        return *this;
    }
    ~Pages() {
#if defined(__linux__)
        if (bytes_ >= least) {
            munmap(data_, bytes_);
            return;
        }
#endif
        std::free(data_);
    }

    T* data() const { return data_; }

  private:
    static constexpr std::size_t least = std::size_t{1} << 16;

#if defined(__linux__)
    static void* map(std::size_t bytes) {
        void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) throw std::bad_alloc();
        return p;
    }
    // Beginning where a huge page can begin: what is too much on either side goes back untouched.
    static void* map_huge(std::size_t bytes) {
        constexpr std::size_t small_page = 4096;
        const std::size_t whole = (bytes + small_page - 1) / small_page * small_page;
        char* const p = static_cast<char*>(map(whole + huge_page));
        const std::size_t before = (huge_page - reinterpret_cast<std::uintptr_t>(p) % huge_page) % huge_page;
        if (before) munmap(p, before);
        munmap(p + before + whole, huge_page - before);
        madvise(p + before, whole, MADV_HUGEPAGE);
        return p + before;
    }
#endif

    std::size_t bytes_ = 0;
    T* data_ = nullptr;
};

}  // namespace larank
