// Decimal numbers read and written without a locale: correctly rounded one way, shortest round trip the other.
//
// Numbers of few digits, which are those of most files, are read here; std::from_chars, which has the last word on the
// others, takes 1.3 to 2 times as long for them.
#pragma once

#include <algorithm>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <vector>

namespace larank {

constexpr std::size_t longest_decimal = 32;  // what std::to_chars can need for one double or one int64

inline bool is_digit(char c) { return unsigned(c - '0') < 10; }
inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

inline const char* skip_blanks(const char* p) {
    while (is_blank(*p)) ++p;
    return p;
}

inline const char* read_digits(const char* p, uint64_t& number) {
    for (; is_digit(*p); ++p) number = number * 10 + uint64_t(*p - '0');
    return p;
}

// The exponent behind the 'e'; `p` stays where it is if there are no digits.
inline const char* read_exponent(const char* p, int64_t& exponent) {
    const char* q = p + (*p == '-' || *p == '+');
    if (!is_digit(*q)) return p;
    int64_t size = 0;
    for (; is_digit(*q); ++q)
        if (size < 1000000000) size = size * 10 + (*q - '0');
    exponent += *p == '-' ? -size : size;
    return q;
}

// std::from_chars does not say on which side a number left the range.
inline bool is_below_one(const char* p) {
    int64_t digits = 0;
    bool leading = true, fraction = false;
    for (; is_digit(*p) || *p == '.' || *p == '-'; ++p) {
        fraction = fraction || *p == '.';
        leading = leading && (*p < '1' || *p > '9');
        if (is_digit(*p)) digits += (!leading && !fraction) - (leading && fraction);
    }
    if (*p == 'e' || *p == 'E') read_exponent(p + 1, digits);
    return digits <= 0;
}

template <class T>
T read_slowly(const char* first, const char* last) {
    T value = 0;
    if (std::from_chars(first, last, value).ec != std::errc::result_out_of_range) return value;
    value = is_below_one(first) ? T(0) : std::numeric_limits<T>::infinity();
    return *first == '-' ? -value : value;
}

inline bool narrow(double exact, double& value) {
    value = exact;
    return true;
}

// A double in the middle between two floats may itself have been rounded to there: only the digits can tell.
inline bool narrow(double exact, float& value) {
    uint64_t bits;
    std::memcpy(&bits, &exact, sizeof bits);
    const bool in_range = exact == 0 || (exact >= double(FLT_MIN) && exact <= double(FLT_MAX));
    if (!in_range || (bits & 0x1fffffff) == 0x10000000) return false;
    value = float(exact);
    return true;
}

// Reads [+-]digits[.digits][e[+-]digits] at `p`; some later character must be none of a number. Returns the end, or `p`
// where there is no number. Too large becomes infinite, too small zero.
template <class T>
const char* read_decimal(const char* p, T& value) {
    static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char* const first = p;
    const bool negative = *p == '-';
    p += negative || *p == '+';
    const char* const number = p;
    uint64_t mantissa = 0;
    int64_t exponent = 0;
    p = read_digits(p, mantissa);
    int64_t digits = p - number;
    if (*p == '.') {
        const char* const fraction = ++p;
        p = read_digits(p, mantissa);
        exponent = fraction - p;
        digits -= exponent;
    }
    if (digits == 0) return first;
    if (*p == 'e' || *p == 'E') {
        const char* const end = read_exponent(p + 1, exponent);
        if (end == p + 1) return first;
        p = end;
    }
    // Both factors are exact doubles, so their one product or quotient is correctly rounded (Clinger 1990).
    if (digits <= 19 && mantissa <= uint64_t{1} << 53 && exponent >= -22 && exponent <= 22) {
        const double size = double(mantissa);
        if (narrow(exponent < 0 ? size / powers[-exponent] : size * powers[exponent], value)) {
            if (negative) value = -value;
            return p;
        }
    }
    value = read_slowly<T>(negative ? first : number, p);
    return p;
}

// Appends numbers, each followed by a line end and perhaps between blanks. False where one is missing or not finite.
template <class T>
bool read_decimals(std::string_view text, std::vector<T>& numbers) {
    if (!text.empty() && text.back() != '\n') throw std::logic_error("the text does not end with a line end");
    numbers.reserve(std::size_t(std::count(text.begin(), text.end(), '\n')));
    const char* p = text.data();
    for (const char* end = p + text.size(); p != end; ++p) {
        T value;
        const char* const first = skip_blanks(p);
        const char* const last = read_decimal(first, value);
        p = skip_blanks(last);
        if (last == first || *p != '\n' || std::isinf(value)) return false;
        numbers.push_back(value);
    }
    return true;
}

template <class T>
char* write_decimal(char* out, T value) {
    return std::to_chars(out, out + longest_decimal, value).ptr;
}

}  // namespace larank
