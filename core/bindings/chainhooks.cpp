// What tests ask of sessions on chains and nobody else does.
#include <nanobind/stl/optional.h>

#include "bindings/chain.hpp"

namespace {

template <class Operation>
auto on_patterns(Operation operation) {
    return [operation](chains::LaRankSession& session) {
        chains::check_model(session.model);
        (session.solver.*operation)();
    };
}

}  // namespace

void bind_chain_hooks(nb::module_& m) {
    using LaRank = larank::ChainLaRank<chains::Weight>;
    m.def("process_old", on_patterns(&LaRank::process_old), "session"_a);
    m.def("optimize", on_patterns(&LaRank::optimize), "session"_a);
    m.def("bytes", [](const chains::LaRankSession& session) { return session.solver.bytes(); }, "session"_a);
    m.def(
        "dual_from_weights", [](const chains::LaRankSession& session) { return session.solver.dual_from_weights(); },
        "session"_a);
}
