// Lists as arguments, where there may be no memory for them.
#pragma once

#include <vector>

#include "bindings/arrays.hpp"

// The items of a list, one by one: nanobind's own conversion would end the process where there is no memory.
template <class T>
std::vector<T> items_of(const nb::sequence& list) {
    std::vector<T> items;
    for (const nb::handle item : list) {
        T value;
        if (!nb::try_cast(item, value)) throw nb::type_error("a list has an item of another type than it should");
        items.push_back(std::move(value));
    }
    return items;
}
