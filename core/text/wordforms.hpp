// What features look at instead of a word: its lower case, its first or last characters, its shape.
//
// Characters are code points.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/utf8.hpp"

namespace larank {

// What is known about characters beyond ASCII; whoever uses the core brings the tables.
struct CharacterTables {
    bool (*is_upper)(uint32_t);
    bool (*is_letter)(uint32_t);
    bool (*is_digit)(uint32_t);
    uint32_t (*to_lower)(uint32_t);
};

enum class Form { whole, lower, prefix, suffix, shape, short_shape };

class WordForms {
  public:
    explicit WordForms(const CharacterTables& tables) : tables_(tables) {}

    // Whether the word has this form; if so it is put into `out`. A word that is shorter than a prefix or suffix has
    // none.
    bool form(Form form, std::size_t length, std::string_view word, std::string& out) const {
        out.clear();
        switch (form) {
            case Form::whole: out = word; return true;
            case Form::lower: lower(word, out); return true;
            case Form::prefix: return prefix(word, length, out);
            case Form::suffix: return suffix(word, length, out);
            case Form::shape: shape(word, 0, out); return true;
            case Form::short_shape: shape(word, 1, out); return true;
        }
        return false;
    }

  private:
    void lower(std::string_view word, std::string& out) const {
        while (!word.empty()) {
            const uint32_t c = take_character(word);
            append_character(out, c < 0x80 ? (c - 'A' < 26u ? c + 32 : c) : tables_.to_lower(c));
        }
    }

    static bool prefix(std::string_view word, std::size_t length, std::string& out) {
        std::string_view rest = word;
        for (; length > 0 && !rest.empty(); --length) take_character(rest);
        out = word.substr(0, word.size() - rest.size());
        return length == 0;
    }

    static bool suffix(std::string_view word, std::size_t length, std::string& out) {
        std::size_t start = word.size();
        while (length > 0 && start > 0)
            if (begins_character(word[--start])) --length;
        out = word.substr(start);
        return length == 0;
    }

    // Capital letters are X, other letters x, digits 0 and the rest themselves. Runs are cut to `longest_run`; 0: they
    // are not.
    void shape(std::string_view word, std::size_t longest_run, std::string& out) const {
        uint32_t last = 0;
        std::size_t run = 0;
        while (!word.empty()) {
            const uint32_t kind = kind_of(take_character(word));
            run = kind == last ? run + 1 : 1;
            last = kind;
            if (longest_run == 0 || run <= longest_run) append_character(out, kind);
        }
    }
    uint32_t kind_of(uint32_t c) const {
        if (c < 0x80) return c - 'A' < 26u ? 'X' : c - 'a' < 26u ? 'x' : c - '0' < 10u ? '0' : c;
        return tables_.is_upper(c) ? 'X' : tables_.is_letter(c) ? 'x' : tables_.is_digit(c) ? '0' : c;
    }

    CharacterTables tables_;
};

}  // namespace larank
