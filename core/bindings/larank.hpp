// The sessions of LaRank and of the active set, which is trained further on the same patterns.
#pragma once

#include "bindings/linearsession.hpp"
#include "bindings/session.hpp"
#include "kernel/activeset.hpp"
#include "kernel/kernelmachine.hpp"
#include "kernel/larank.hpp"
#include "kernel/linearmachine.hpp"

template <class Machine>
struct MulticlassSolver : larank::LaRank<Machine> {
    using larank::LaRank<Machine>::LaRank;

    larank::ActiveSet<Machine> active_set{this->steps()};
};

template <class T>
using KernelLaRank = Session<MulticlassSolver<larank::KernelMachine<T>>>;

template <class T>
using LinearLaRank = LinearSession<larank::LaRank<larank::LinearMachine<T>>>;
