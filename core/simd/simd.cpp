// Chooses the instruction set of the hot units: the best one the processor has, or the one LARANK_SIMD names.
#include <stdexcept>

#ifdef LARANK_HAS_x86_64_v3
#include <cpuid.h>
#endif

#include "simd/units.hpp"

namespace larank {

#define LARANK_DECLARE(unit) \
    template <class T>       \
    void units_of_##unit(Units<T>&);
#ifdef LARANK_HAS_scalar
LARANK_DECLARE(scalar)
#endif
LARANK_DECLARE(baseline)
#ifdef LARANK_HAS_x86_64_v3
LARANK_DECLARE(x86_64_v3)
LARANK_DECLARE(x86_64_v4)
LARANK_DECLARE(x86_64_v4_vnni)
#endif
#undef LARANK_DECLARE

namespace {

struct Level {
    const char* name;
    void (*fill_float)(Units<float>&);
    void (*fill_double)(Units<double>&);
};

#ifdef LARANK_HAS_x86_64_v3
// The levels of the x86-64 psABI, feature by feature: not every compiler knows their names. The builtins also ask
// whether the operating system keeps the registers; of what they do not all know, the processor itself is asked.
bool has_x86_64_v3() {
    constexpr unsigned movbe = 1u << 22, f16c = 1u << 29, lzcnt = 1u << 5;
    unsigned a, b, basic, extended, d;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __get_cpuid(1, &a, &b, &basic, &d) &&
           (basic & (movbe | f16c)) == (movbe | f16c) && __get_cpuid(0x80000001u, &a, &b, &extended, &d) &&
           (extended & lzcnt);
}

bool has_x86_64_v4() {
    return has_x86_64_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

bool has_x86_64_v4_vnni() { return has_x86_64_v4() && __builtin_cpu_supports("avx512vnni"); }
#endif

std::vector<Level> runnable_levels() {
    std::vector<Level> levels;
#ifdef LARANK_HAS_scalar
    levels.push_back({"scalar", units_of_scalar<float>, units_of_scalar<double>});
#endif
    levels.push_back({"baseline", units_of_baseline<float>, units_of_baseline<double>});
#ifdef LARANK_HAS_x86_64_v3
    __builtin_cpu_init();
    if (has_x86_64_v3()) levels.push_back({"x86-64-v3", units_of_x86_64_v3<float>, units_of_x86_64_v3<double>});
    if (has_x86_64_v4()) levels.push_back({"x86-64-v4", units_of_x86_64_v4<float>, units_of_x86_64_v4<double>});
    if (has_x86_64_v4_vnni())
        levels.push_back({"x86-64-v4-vnni", units_of_x86_64_v4_vnni<float>, units_of_x86_64_v4_vnni<double>});
#endif
    return levels;
}

struct Chosen {
    std::string level;
    Units<float> single;
    Units<double> twice;
};
Chosen chosen;

}  // namespace

template <>
const Units<float>& units<float>() {
    return chosen.single;
}

template <>
const Units<double>& units<double>() {
    return chosen.twice;
}

const std::string& simd_level() { return chosen.level; }

std::vector<std::string> simd_levels() {
    std::vector<std::string> names;
    for (const Level& level : runnable_levels()) names.emplace_back(level.name);
    return names;
}

bool has_integer_products() {
#ifdef LARANK_HAS_x86_64_v3
    __builtin_cpu_init();
    return has_x86_64_v4_vnni();
#else
    return false;
#endif
}

void set_simd_level(const std::string& name) {
    std::string known;
    for (const Level& level : runnable_levels()) {
        if (level.name == name) {
            level.fill_float(chosen.single);
            level.fill_double(chosen.twice);
            chosen.level = name;
            return;
        }
        known += (known.empty() ? "'" : ", '") + std::string(level.name) + "'";
    }
    throw std::invalid_argument("the SIMD level (LARANK_SIMD) must be one of " + known + " on this machine, got '" +
                                name + "'");
}

}  // namespace larank
