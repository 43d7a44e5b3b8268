// UTF-8: its characters, and whether bytes are valid.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace larank {

inline bool begins_character(char byte) { return (uint8_t(byte) & 0xc0) != 0x80; }

// The code point at the front of valid UTF-8, which is taken off.
inline uint32_t take_character(std::string_view& text) {
    const uint8_t first = uint8_t(text[0]);
    std::size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint32_t character = size == 1 ? first : first & (0x7fu >> size);
    for (std::size_t k = 1; k < size; ++k) character = character << 6 | (uint8_t(text[k]) & 0x3f);
    text.remove_prefix(size);
    return character;
}

inline void append_character(std::string& out, uint32_t character) {
    if (character < 0x80) {
        out += char(character);
    } else if (character < 0x800) {
        out += {char(0xc0 | character >> 6), char(0x80 | (character & 0x3f))};
    } else if (character < 0x10000) {
        out += {char(0xe0 | character >> 12), char(0x80 | (character >> 6 & 0x3f)), char(0x80 | (character & 0x3f))};
    } else {
        out += {char(0xf0 | character >> 18), char(0x80 | (character >> 12 & 0x3f)),
                char(0x80 | (character >> 6 & 0x3f)), char(0x80 | (character & 0x3f))};
    }
}

// Where the first byte stands that is not UTF-8, as the Unicode standard defines it (table 3-7); npos: nowhere.
inline std::size_t first_invalid_byte(std::string_view text) {
    uint8_t all = 0;
    for (const char c : text) all |= uint8_t(c);
    if (all < 0x80) return text.npos;
    for (std::size_t at = 0; at < text.size();) {
        const uint8_t first = uint8_t(text[at]);
        const std::size_t size = first < 0x80   ? 1
                                 : first < 0xc2 ? 0
                                 : first < 0xe0 ? 2
                                 : first < 0xf0 ? 3
                                 : first < 0xf5 ? 4
                                                : 0;
        if (size == 0 || size > text.size() - at) return at;
        for (std::size_t k = 1; k < size; ++k)
            if (begins_character(text[at + k])) return at;
        const uint8_t second = size > 1 ? uint8_t(text[at + 1]) : 0;
        const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
        const bool beyond = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
        if (overlong || beyond) return at;
        at += size;
    }
    return text.npos;
}

}  // namespace larank
