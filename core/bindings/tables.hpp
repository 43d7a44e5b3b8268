// What every kernel session says of its support table.
#pragma once

#include "bindings/arrays.hpp"
#include "support.hpp"

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
