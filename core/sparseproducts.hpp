// Inner products of two sets of sparse rows.
//
// A few rows of the left side are spread out as [feature][row], over the features they use; each row on the right then
// meets them like an example meets W, in the hot unit of the linear solvers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "aligned.hpp"
#include "dispatch/units.hpp"

namespace larank {

template <class T>
struct CsrRows {
    const T* values;
    const int32_t* columns;
    const int64_t* starts;
    int64_t rows;
};

// out = left right'. Columns of both lie below `features`.
template <class T>
void sparse_products(const CsrRows<T>& left, const CsrRows<T>& right, int64_t features, const Tile<T>& out) {
    constexpr int64_t group = 8 * lane_count<T>, together = lane_count<T>;
    std::vector<int32_t> place(std::size_t(features), 0), columns;
    std::vector<T> values;
    for (int64_t first = 0; first < left.rows; first += group) {
        const int64_t rows = std::min(group, left.rows - first), lanes = padded<T>(rows);
        const int64_t from = left.starts[first], to = left.starts[first + rows];
        int32_t used = 0;
        for (int64_t e = from; e < to; ++e) {
            int32_t& at = place[std::size_t(left.columns[e])];
            if (at == 0) at = ++used;
        }
        AlignedArray<T> spread(int64_t{used} * lanes), found(together * lanes);
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t e = left.starts[first + i]; e < left.starts[first + i + 1]; ++e)
                spread.data()[(place[std::size_t(left.columns[e])] - 1) * lanes + i] += left.values[e];
        for (int64_t j = 0; j < right.rows; j += together) {
            const int64_t count = std::min(together, right.rows - j);
            for (int64_t b = 0; b < count; ++b) {
                columns.clear();
                values.clear();
                for (int64_t e = right.starts[j + b]; e < right.starts[j + b + 1]; ++e)
                    if (const int32_t at = place[std::size_t(right.columns[e])]) {
                        columns.push_back(at - 1);
                        values.push_back(right.values[e]);
                    }
                const Row<T> row{values.data(), columns.data(), nullptr, int64_t(values.size()), 0, 0};
                T* scores = found.data() + b * lanes;
                if (values.empty())
                    std::fill(scores, scores + lanes, T(0));
                else
                    units<T>().scores(row, spread.data(), lanes, true, scores);
            }
            for (int64_t i = 0; i < rows; ++i)
                for (int64_t b = 0; b < count; ++b)
                    out.values[(first + i) * out.stride + j + b] = found.data()[b * lanes + i];
        }
        for (int64_t e = from; e < to; ++e) place[std::size_t(left.columns[e])] = 0;
    }
}

}  // namespace larank
