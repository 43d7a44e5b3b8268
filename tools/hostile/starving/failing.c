// Allocations that fail on demand: preloaded, it counts those of LEAST bytes or more, and threads, once it is armed.
//
// Those of the compiled core and of C++ are counted. NumPy does not always survive that its own fail.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LEAST = 256 };

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

static atomic_long counted, first, last;  // those from the first to the last fail
static atomic_int armed;

// Counts from now on, and lets the allocations from one to another fail; 0 and 0 lets none.
void arm(long from, long to) {
    atomic_store(&counted, 0), atomic_store(&first, from), atomic_store(&last, to), atomic_store(&armed, 1);
}
// Returns how many there were.
long disarm(void) {
    atomic_store(&armed, 0);
    return atomic_load(&counted);
}

static int is_ours(void* caller) {
    Dl_info at;
    if (!dladdr(caller, &at) || !at.dli_fname) return 0;
    return strstr(at.dli_fname, "/_core.") || strstr(at.dli_fname, "libstdc++") || strstr(at.dli_fname, "failing");
}
static int fails(size_t size, void* caller) {
    if (size < LEAST || !atomic_load(&armed) || !is_ours(caller)) return 0;
    const long number = atomic_fetch_add(&counted, 1) + 1;
    return number >= atomic_load(&first) && number <= atomic_load(&last);
}
static void* nothing(void) {
    errno = ENOMEM;
    return NULL;
}

#define FAILS(size) fails(size, __builtin_return_address(0))

void* malloc(size_t size) { return FAILS(size) ? nothing() : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return FAILS(count * size) ? nothing() : __libc_calloc(count, size); }
void* realloc(void* p, size_t size) { return FAILS(size) ? nothing() : __libc_realloc(p, size); }
void* memalign(size_t to, size_t size) { return FAILS(size) ? nothing() : __libc_memalign(to, size); }
void* aligned_alloc(size_t to, size_t size) { return FAILS(size) ? nothing() : __libc_memalign(to, size); }
int posix_memalign(void** p, size_t to, size_t size) {
    if (FAILS(size)) return ENOMEM;
    *p = __libc_memalign(to, size);
    return *p ? 0 : ENOMEM;
}
void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) {
    if (FAILS(size)) return nothing(), MAP_FAILED;
    return (void*)syscall(SYS_mmap, at, size, protection, flags, file, offset);
}

typedef int Create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
    static Create* create;
    if (!create) create = (Create*)dlsym(RTLD_NEXT, "pthread_create");
    return fails(LEAST, (void*)is_ours) ? EAGAIN : create(thread, attributes, start, argument);
}
