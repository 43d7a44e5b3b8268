// Inner products of examples on a lattice, x = a + b q with whole numbers q, by integer arithmetic.
//
// A row of the lattice is `words` words of 32 bits that hold q, four bytes or two half-words each, zeros at the end,
// and two more words: what the row adds to a product as a row, and as a column. For rows x and z
//
//   v = factor * dot(x, z) + row_term(x) + column_term(z),   out = scale * v,
//
// where dot is sum (q_x - 128) q_z for bytes and sum q_x q_z for half-words. The terms are chosen so that scale * v is
// x'z, or -|x - z|^2 / 2, which needs neither norms nor a lattice that contains the origin; see
// src/larank/blocks/lattice.py.
//
// A number q is stored as q itself: bytes from 0 on, half-words from `lowest` on. `table` has the value of X at each of
// them, so that rows can be turned back into what they were, to the last bit.
//
// No overflow: all sums are taken modulo 2^32, in unsigned arithmetic or by instructions that wrap around (vpdpbusd and
// vpdpwssd, not their saturating forms; the four products of bytes, each at most 128 * 255 in absolute value, and the
// two of half-words, at most 2^30 each, are added in 32 bits). The result is right because v itself is below 2^31 in
// absolute value, which who makes the lattice has to see to. So v is exact, whatever the instruction set.
//
// Words that are zero in all columns of a panel add nothing to any sum and are passed over: the margins of images, and
// most of what counts and indicators have.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#ifdef __AVX512VNNI__
#include <immintrin.h>
#endif

#include "simd/units.hpp"

namespace larank {
inline namespace LARANK_UNIT {

// A panel is some rows side by side: all first words, all second words and so on.
constexpr int64_t column_panel = 16;
#ifdef __AVX512VNNI__
constexpr int64_t row_panel = 14;  // as many sums as registers hold beside a panel's words; twice as many spill
#else
constexpr int64_t row_panel = 4;
#endif

// One number per column of a panel, as one vector.
template <class T>
struct PanelWide {
    typedef T type __attribute__((vector_size(sizeof(T) * column_panel)));
};
using Words = PanelWide<uint32_t>::type;
using Integers = PanelWide<int32_t>::type;

constexpr int64_t most_rows = 36 * row_panel;  // at once, packed: with 784 bytes each they stay in the cache

// The words of a few rows, those of rows that are not there zero. What is added is modulo 2^8: 128 or nothing.
template <int64_t Height>
void pack_panel(const uint32_t* rows, int64_t count, int64_t words, uint32_t flip, uint32_t* panel) {
    const int64_t stride = words + lattice_terms;
    if (count < Height) std::fill(panel, panel + words * Height, flip);
    for (int64_t first = 0; first < words; first += 16) {  // a line of each row at a time
        const int64_t last = std::min(words, first + 16);
        for (int64_t i = 0; i < count; ++i)
            for (int64_t k = first; k < last; ++k) panel[k * Height + i] = rows[i * stride + k] ^ flip;
    }
}

#ifdef __AVX512VNNI__

// Sixteen vectors of sixteen words as a matrix, transposed: blocks off the diagonal change places, the largest first.
inline void transpose(__m512i (&rows)[column_panel]) {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
#pragma GCC unroll 4
    for (int size = 8; size > 0; size /= 2) {
        const __m512i block = _mm512_set1_epi32(size);
        const __mmask16 is_upper = _mm512_test_epi32_mask(lane, block);
        const __m512i of_second = _mm512_set1_epi32(16);
        const __m512i low = _mm512_mask_sub_epi32(lane, is_upper, _mm512_add_epi32(lane, of_second), block);
        const __m512i high = _mm512_mask_add_epi32(_mm512_add_epi32(lane, block), is_upper, lane, of_second);
#pragma GCC unroll 16
        for (int i = 0; i < column_panel; ++i) {
            if (i & size) continue;
            const __m512i first = rows[i], second = rows[i + size];
            rows[i] = _mm512_permutex2var_epi32(first, low, second);
            rows[i + size] = _mm512_permutex2var_epi32(first, high, second);
        }
    }
}

// Sixteen rows or less, without the words that are zero in all of them: which remain, to `kept`, and how many.
inline int64_t pack_columns(const uint32_t* rows, int64_t count, int64_t words, uint32_t* panel, int32_t* kept) {
    const int64_t stride = words + lattice_terms;
    int64_t used = 0;
    for (int64_t first = 0; first < words; first += 16) {
        const int64_t width = std::min<int64_t>(16, words - first);
        const __mmask16 there = __mmask16((1u << width) - 1);
        __m512i block[column_panel];
        for (int64_t i = 0; i < column_panel; ++i)
            block[i] = i < count ? _mm512_maskz_loadu_epi32(there, rows + i * stride + first) : _mm512_setzero_si512();
        transpose(block);
        for (int64_t k = 0; k < width; ++k) {
            _mm512_store_si512(panel + used * column_panel, block[k]);
            kept[used] = int32_t(first + k);
            used += _mm512_test_epi32_mask(block[k], block[k]) != 0;
        }
    }
    return used;
}

template <class Q>
inline __m512i add_products(__m512i sums, __m512i column, uint32_t row) {
    const __m512i all = _mm512_set1_epi32(int32_t(row));
    if constexpr (sizeof(Q) == 1)
        return _mm512_dpbusd_epi32(sums, column, all);
    else
        return _mm512_dpwssd_epi32(sums, column, all);
}

// Of the words `kept` of the rows with the columns' words, of which there are no others.
template <class Q>
void panel_products(const uint32_t* rows, const uint32_t* columns, const int32_t* kept, int64_t count, int32_t* dots) {
    __m512i sums[row_panel];
    for (__m512i& sum : sums) sum = _mm512_setzero_si512();
    for (int64_t k = 0; k < count; ++k) {
        const __m512i column = _mm512_load_si512(columns + k * column_panel);
        const uint32_t* words = rows + kept[k] * row_panel;
#pragma GCC unroll 14
        for (int64_t i = 0; i < row_panel; ++i) sums[i] = add_products<Q>(sums[i], column, words[i]);
    }
    for (int64_t i = 0; i < row_panel; ++i) _mm512_store_si512(dots + i * column_panel, sums[i]);
}

template <class Q>
void in_place_products(const uint32_t* panel, const uint32_t* const* others, int64_t words, int32_t* dots) {
    __m512i sums[row_panel];
    for (__m512i& sum : sums) sum = _mm512_setzero_si512();
    for (int64_t k = 0; k < words; ++k) {
        const __m512i few = _mm512_load_si512(panel + k * column_panel);
#pragma GCC unroll 14
        for (int64_t i = 0; i < row_panel; ++i) {
            const __m512i all = _mm512_set1_epi32(int32_t(others[i][k]));
            if constexpr (sizeof(Q) == 1)
                sums[i] = _mm512_dpbusd_epi32(sums[i], all, few);
            else
                sums[i] = _mm512_dpwssd_epi32(sums[i], all, few);
        }
    }
    for (int64_t i = 0; i < row_panel; ++i) _mm512_store_si512(dots + i * column_panel, sums[i]);
}

#else

inline int64_t pack_columns(const uint32_t* rows, int64_t count, int64_t words, uint32_t* panel, int32_t* kept) {
    pack_panel<column_panel>(rows, count, words, 0, panel);
    int64_t used = 0;
    for (int64_t k = 0; k < words; ++k) {
        Words word;
        std::memcpy(&word, panel + k * column_panel, sizeof word);
        uint32_t any = 0;
        for (int64_t i = 0; i < column_panel; ++i) any |= word[i];
        std::memcpy(panel + used * column_panel, &word, sizeof word);
        kept[used] = int32_t(k);
        used += any != 0;
    }
    return used;
}

template <class Q>
inline uint32_t word_product(uint32_t row, uint32_t column) {
    using Left = std::conditional_t<sizeof(Q) == 1, int8_t, int16_t>;
    constexpr std::size_t count = 4 / sizeof(Q);
    Left left[count];
    Q right[count];
    std::memcpy(left, &row, 4);
    std::memcpy(right, &column, 4);
    uint32_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += uint32_t(int32_t(left[i]) * int32_t(right[i]));
    return sum;
}

template <class Q>
void panel_products(const uint32_t* rows, const uint32_t* columns, const int32_t* kept, int64_t count, int32_t* dots) {
    uint32_t sums[row_panel][column_panel] = {};
    for (int64_t k = 0; k < count; ++k)
        for (int64_t i = 0; i < row_panel; ++i)
            for (int64_t j = 0; j < column_panel; ++j)
                sums[i][j] += word_product<Q>(rows[kept[k] * row_panel + i], columns[k * column_panel + j]);
    std::memcpy(dots, sums, sizeof sums);
}

template <class Q>
void in_place_products(const uint32_t* panel, const uint32_t* const* others, int64_t words, int32_t* dots) {
    uint32_t sums[row_panel][column_panel] = {};
    for (int64_t k = 0; k < words; ++k)
        for (int64_t i = 0; i < row_panel; ++i)
            for (int64_t j = 0; j < column_panel; ++j)
                sums[i][j] += word_product<Q>(panel[k * column_panel + j], others[i][k]);
    std::memcpy(dots, sums, sizeof sums);
}

#endif

// Where X has no more rows than a panel, these are the panel, and those of Z are read where they are: to pack them
// would take longer than to multiply.
template <class Q, class T>
void few_lattice_products(const uint32_t* X, const uint32_t* Z, int64_t words, int32_t factor, T scale,
                          const Tile<T>& out) {
    constexpr uint32_t flip = sizeof(Q) == 1 ? 0x80808080u : 0u;  // q - 128, as signed bytes
    const int64_t stride = words + lattice_terms;
    thread_local std::vector<uint32_t> scratch;
    scratch.resize(std::size_t(column_panel * words + 16));
    const auto address = reinterpret_cast<std::uintptr_t>(scratch.data());
    uint32_t* const panel = scratch.data() + ((64 - address % 64) % 64) / 4;
    pack_panel<column_panel>(X, out.rows, words, flip, panel);
    alignas(64) int32_t dots[row_panel * column_panel];
    for (int64_t j = 0; j < out.columns; j += row_panel) {
        const int64_t width = std::min(row_panel, out.columns - j);
        const uint32_t* others[row_panel];  // the last one takes the place of those that are not there
        for (int64_t c = 0; c < row_panel; ++c) others[c] = Z + (j + std::min(c, width - 1)) * stride;
        in_place_products<Q>(panel, others, words, dots);
        for (int64_t i = 0; i < out.rows; ++i) {
            const uint32_t row_term = X[i * stride + words];
            for (int64_t c = 0; c < width; ++c)
                out.values[i * out.stride + j + c] =
                    scale * T(int32_t(uint32_t(factor) * uint32_t(dots[c * column_panel + i]) + row_term +
                                      others[c][words + 1]));
        }
    }
}

// Where both sides are packed: all row panels are multiplied with one column panel after the other.
template <class Q, class T>
void many_lattice_products(const uint32_t* X, const uint32_t* Z, int64_t words, int32_t factor, T scale,
                           const Tile<T>& out) {
    constexpr uint32_t flip = sizeof(Q) == 1 ? 0x80808080u : 0u;  // q - 128, as signed bytes
    const int64_t stride = words + lattice_terms;
    const int64_t row_panels = (out.rows + row_panel - 1) / row_panel;
    thread_local std::vector<uint32_t> scratch;
    scratch.resize(std::size_t((row_panels * row_panel + column_panel) * words + 16));
    const auto address = reinterpret_cast<std::uintptr_t>(scratch.data());
    uint32_t* columns = scratch.data() + ((64 - address % 64) % 64) / 4;
    uint32_t* rows = columns + column_panel * words;
    thread_local std::vector<int32_t> kept;
    kept.resize(std::size_t(words));
    for (int64_t p = 0; p < row_panels; ++p)
        pack_panel<row_panel>(X + p * row_panel * stride, std::min(row_panel, out.rows - p * row_panel), words, flip,
                              rows + p * row_panel * words);
    alignas(64) int32_t dots[row_panel * column_panel];
    for (int64_t j = 0; j < out.columns; j += column_panel) {
        const int64_t width = std::min(column_panel, out.columns - j);
        const int64_t count = pack_columns(Z + j * stride, width, words, columns, kept.data());
        Words column_terms = {};
        for (int64_t c = 0; c < width; ++c) column_terms[c] = Z[(j + c) * stride + words + 1];
        for (int64_t p = 0; p < row_panels; ++p) {
            panel_products<Q>(rows + p * row_panel * words, columns, kept.data(), count, dots);
            const int64_t first = p * row_panel, height = std::min(row_panel, out.rows - first);
            for (int64_t i = 0; i < height; ++i) {
                Words sums;
                std::memcpy(&sums, dots + i * column_panel, sizeof sums);
                sums = uint32_t(factor) * sums + X[(first + i) * stride + words] + column_terms;
                const auto values = scale * __builtin_convertvector(Integers(sums), typename PanelWide<T>::type);
                T* to = out.values + (first + i) * out.stride + j;
                if (width == column_panel)
                    std::memcpy(to, &values, sizeof values);
                else
                    std::memcpy(to, &values, std::size_t(width) * sizeof(T));
            }
        }
    }
}

// Q is uint8_t or int16_t. `X` has a row per row of `out`, `Z` one per column.
template <class Q, class T>
void lattice_products(const uint32_t* X, const uint32_t* Z, int64_t words, int32_t factor, T scale,
                      const Tile<T>& out) {
    if (out.rows <= column_panel) return few_lattice_products<Q>(X, Z, words, factor, scale, out);
    for (int64_t first = 0; first < out.rows; first += most_rows)
        many_lattice_products<Q>(
            X + first * (words + lattice_terms), Z, words, factor, scale,
            Tile<T>{out.values + first * out.stride, std::min(most_rows, out.rows - first), out.columns, out.stride});
}

// The place in the table of the number nearest to x; some place for what is out of range or no number.
template <class T>
inline int32_t place_of(T x, const LatticeTable<T>& lattice) {
    const T place = (x - lattice.low) * lattice.inverse_step + T(0.5);
    const T last = T(lattice.size - 1);
    return int32_t(place > 0 ? (place < last ? place : last) : T(0));
}

// The numbers of some rows, to `out`; false if a value is not in the table, and then `out` is not to be used.
template <class Q, class T>
bool lattice_numbers(const T* X, int64_t rows, int64_t features, const LatticeTable<T>& lattice, uint32_t* out) {
    const int64_t words = lattice_words<Q>(features);
    const T* table = lattice.values;
    const int32_t lowest = lattice.lowest;
    for (int64_t i = 0; i < rows; ++i) {
        const T* row = X + i * features;
        uint32_t* to = out + i * (words + lattice_terms);
        if (words > 0) to[words - 1] = 0;
        Q* numbers = reinterpret_cast<Q*>(to);
        int32_t others = 0;
        for (int64_t j = 0; j < features; ++j) {
            const int32_t place = place_of(row[j], lattice);
            others |= table[place] != row[j];
            numbers[j] = Q(place + lowest);
        }
        if (others) return false;
    }
    return true;
}

// Sums and sums of squares of the numbers of rows.
template <class Q>
void lattice_sums(const uint32_t* rows, int64_t count, int64_t words, int64_t* sums, int64_t* squares) {
    constexpr int64_t per_word = 4 / int64_t{sizeof(Q)},
                      most = 16384;  // whose sums fit in 32 bits, and squares of bytes
    for (int64_t i = 0; i < count; ++i) {
        const Q* numbers = reinterpret_cast<const Q*>(rows + i * (words + lattice_terms));
        int64_t sum = 0, square = 0;
        for (int64_t first = 0; first < words * per_word; first += most) {
            const int64_t last = std::min(words * per_word, first + most);
            using Square = std::conditional_t<sizeof(Q) == 1, int32_t, int64_t>;
            int32_t part = 0;
            Square part_square = 0;
            for (int64_t j = first; j < last; ++j) {
                part += numbers[j];
                part_square += Square(numbers[j]) * numbers[j];
            }
            sum += part;
            square += part_square;
        }
        sums[i] = sum;
        squares[i] = square;
    }
}

}  // namespace LARANK_UNIT
}  // namespace larank
