// What the bindings of all sessions that are fed blocks share.
#pragma once

#include <stdexcept>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "kernel/patternrows.hpp"
#include "kernel/support.hpp"

template <class T>
using KernelBlock = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// The arrays of the block a session works on: checked, and kept alive until the next one.
template <class T>
class FedBlock {
  public:
    std::pair<larank::Block<T>, larank::Examples> keep(KernelBlock<T> kernel, Table<T> within, Vector<int64_t> ids,
                                                       Vector<int32_t> labels, Vector<double> costs,
                                                       Vector<double> diagonal) {
        examples_ = int64_t(kernel.shape(0));
        if (int64_t(within.shape(0)) != examples_ || int64_t(within.shape(1)) != examples_)
            throw std::invalid_argument("within must have one row and column per row of kernel");
        for (const std::size_t length : {ids.shape(0), labels.shape(0), costs.shape(0), diagonal.shape(0)})
            if (int64_t(length) != examples_) throw std::invalid_argument("the block's arrays differ in length");
        for (int64_t i = 0; i < examples_; ++i)
            if (labels.data()[i] < 0) throw std::invalid_argument("labels must not be negative");
        arrays_ = {nb::cast(kernel), nb::cast(within), nb::cast(ids),
                   nb::cast(labels), nb::cast(costs),  nb::cast(diagonal)};
        return {{examples_, int64_t(kernel.shape(1)), kernel.data(), within.data()},
                {examples_, ids.data(), labels.data(), costs.data(), diagonal.data()}};
    }

    void check(int64_t end) const {
        if (end > examples_) throw std::invalid_argument("the block has fewer examples than that");
    }

  private:
    std::vector<nb::object> arrays_;
    int64_t examples_ = 0;
};

// The slots and ids of the patterns that were born from the block at hand.
inline nb::tuple newborn_arrays(const larank::SupportTable& table) {
    std::vector<int32_t> slots = table.newborn();
    std::vector<int64_t> ids;
    for (const int32_t slot : slots) ids.push_back(table[slot].id);
    const std::size_t count = ids.size();
    return nb::make_tuple(to_numpy(std::move(slots), {count}), to_numpy(std::move(ids), {count}));
}

// The id in each slot, -1 where it is free; for tests.
inline nb::ndarray<nb::numpy, int64_t> slot_ids(const larank::SupportTable& table) {
    std::vector<int64_t> ids;
    for (int32_t slot = 0; slot < table.slots(); ++slot) ids.push_back(table.contains(slot) ? table[slot].id : -1);
    const std::size_t count = ids.size();
    return to_numpy(std::move(ids), {count});
}
