// Arrays of dictionaries and of rows of features.
#pragma once

#include <nanobind/stl/pair.h>

#include "bindings/arrays.hpp"
#include "text/dictionary.hpp"
#include "text/tokens.hpp"
#include "text/utf8.hpp"

inline nb::tuple rows_tuple(larank::TokenFeatures&& rows) {
    const nb::object values = rows.values.empty() ? nb::none() : nb::cast(to_numpy(std::move(rows.values)));
    return nb::make_tuple(to_numpy(std::move(rows.starts)), to_numpy(std::move(rows.features)), values);
}

inline nb::tuple dictionary_arrays(const larank::Dictionary& dictionary) {
    return nb::make_tuple(to_numpy(std::vector<uint8_t>(dictionary.text().begin(), dictionary.text().end())),
                          to_numpy(std::vector<int64_t>(dictionary.ends().begin(), dictionary.ends().end())));
}

inline larank::Dictionary dictionary_of(Vector<uint8_t> text, Vector<int64_t> ends) {
    larank::Dictionary dictionary;
    const std::string_view all(reinterpret_cast<const char*>(text.data()), text.shape(0));
    int64_t start = 0;
    for (std::size_t k = 0; k < ends.shape(0); ++k) {
        const int64_t end = ends.data()[k];
        if (end < start || end > int64_t(all.size()))
            throw std::invalid_argument("the state is damaged: a string ends beyond the text");
        const std::string_view word = all.substr(std::size_t(start), std::size_t(end - start));
        if (larank::first_invalid_byte(word) != word.npos)
            throw std::invalid_argument("the state is damaged: a string is not UTF-8");
        if (dictionary.insert(word) != k) throw std::invalid_argument("the state is damaged: a string is there twice");
        start = end;
    }
    return dictionary;
}
