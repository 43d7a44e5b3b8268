// The Python module: its parts are in bindings/.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>

#include "bindings/arrays.hpp"
#include "blocks/libraries.hpp"
#include "simd/units.hpp"

NB_MODULE(_core, m) {
    // A process may end while a thread of its own still waits for a stream, and so still holds objects.
    nb::set_leak_warnings(false);
    const char* level = std::getenv("LARANK_SIMD");
    larank::set_simd_level(level && *level ? level : larank::simd_levels().back());
    m.def("simd_level", &larank::simd_level);
    m.def("simd_levels", &larank::simd_levels);
    m.def("set_simd_level", &larank::set_simd_level, "level"_a);
    m.def("loaded_libraries", &larank::loaded_libraries);
    bind_support(m);
    bind_sdm(m);
    bind_sdmpart(m);
    bind_sgd(m);
    bind_primal(m);
    bind_larank(m);
    bind_shared_sets(m);
    bind_lasvm(m);
    bind_mcsvm(m);
    bind_perceptrons(m);
    bind_huller(m);
    bind_tracking(m);
    bind_ambiguous(m);
    bind_ospas(m);
    bind_concepts(m);
    bind_kernel_maps(m);
    bind_lattice(m);
    bind_svmlight(m);
    bind_chains(m);
    bind_tokens(m);
    bind_names(m);
    bind_features(m);
    bind_structured(m);
}
