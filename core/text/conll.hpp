// Text in columns, as in the shared tasks of CoNLL: a token per line, an empty line after each sentence.
//
// The reader is fed bytes, cut anywhere, and gives blocks of whole sentences. A block ends with the first sentence that
// brings it to the number of tokens asked for, so where the bytes were cut does not show. Errors begin with the line
// they were found in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/dictionary.hpp"
#include "text/tokens.hpp"
#include "text/utf8.hpp"

namespace larank {

struct ConllFormat {
    std::optional<int> label;    // its column, counted from the end if negative; none: there are no labels
    bool splits_at_tabs;         // cells may then hold spaces; otherwise they end at any blank
    std::string comment;         // lines that begin so do not count; empty: there are none such
    std::size_t expected_cells;  // of a line; 0: as many as the first line has
    std::size_t most_cells;      // of any line
};

class ConllReader {
  public:
    // Labels that are new are added to `labels`.
    ConllReader(ConllFormat format, std::size_t block_tokens, Dictionary& labels)
        : format_(std::move(format)), block_tokens_(block_tokens), labels_(labels) {}

    int64_t lines() const { return lines_; }

    void feed(std::string_view bytes) {
        while (true) {
            const std::size_t size = bytes.find('\n');
            if (size == bytes.npos) break;
            if (cut_line_.empty()) {
                read_line(bytes.substr(0, size));
            } else {
                cut_line_.append(bytes.substr(0, size));
                read_line(cut_line_);
                cut_line_.clear();
            }
            bytes.remove_prefix(size + 1);
        }
        cut_line_.append(bytes);
    }

    // There are no more bytes: the last line and sentence need not be ended.
    void finish() {
        if (!cut_line_.empty()) read_line(cut_line_);
        cut_line_.clear();
        if (!has_begun_) read_held_lines();
        end_sentence();
        if (!block_) fail_at(lines_, "no tokens");
        if (block_->size() > 0) end_block();
    }

    // The blocks that are complete.
    std::vector<Sentences> take() { return std::exchange(complete_, {}); }

  private:
    void read_line(std::string_view line) {
        ++lines_;
        if (lines_ == 1 && line.substr(0, 3) == "\xef\xbb\xbf") line.remove_prefix(3);
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        if (!format_.comment.empty() && line.substr(0, format_.comment.size()) == format_.comment) return;
        check_bytes(line);
        if (!has_begun_ && (line.empty() || line.front() == '#') && held_.size() < most_held) {
            held_.emplace_back(lines_, line);
            return;
        }
        if (!has_begun_) {
            check_is_not_conllu(line);
            read_held_lines();
        }
        read_cells(line);
    }

    // Lines that begin with '#' may be tokens, or the comments of CoNLL-U. The first other line says which.
    void read_held_lines() {
        has_begun_ = true;
        const int64_t now = lines_;
        for (const auto& [number, line] : held_) lines_ = number, read_cells(line);
        lines_ = now;
        held_.clear();
    }

    // Ten columns between tabs, the first with the number of a word (1), of several (1-2) or of an empty node (0.1),
    // the seventh with that of the head.
    void check_is_not_conllu(std::string_view line) const {
        constexpr std::size_t columns = 10, head = 6;
        if (std::size_t(std::count(line.begin(), line.end(), '\t')) != columns - 1) return;
        std::vector<std::string_view> cells;
        for (std::size_t begin = 0; begin <= line.size();) {
            const std::size_t end = std::min(line.find('\t', begin), line.size());
            cells.push_back(line.substr(begin, end - begin));
            begin = end + 1;
        }
        const std::string_view id = cells[0];
        const std::size_t mark = std::min(id.find_first_of("-."), id.size());
        const bool is_id = is_number(id.substr(0, mark)) && (mark == id.size() || is_number(id.substr(mark + 1)));
        if (!is_id || !(cells[head] == "_" || is_number(cells[head]))) return;
        fail(
            "this is CoNLL-U or CoNLL-X, which are not supported: comments, lines for several words and empty nodes "
            "are not tokens of a sentence. Write the columns FORM and UPOS to a file, and read it with tabs as "
            "separator: awk -F'\\t' '/^[0-9]+\\t/ {print $2 \"\\t\" $4} /^$/'");
    }
    static bool is_number(std::string_view text) {
        return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    }

    void read_cells(std::string_view line) {
        split(line);
        if (cells_.empty())
            end_sentence();
        else
            add_token(line);
    }

    void check_bytes(std::string_view line) const {
        if (std::memchr(line.data(), '\0', line.size())) fail("a NUL byte in " + quoted(line));
        const std::size_t invalid = first_invalid_byte(line);
        if (invalid != line.npos) fail("byte " + std::to_string(invalid + 1) + " is not UTF-8 in " + quoted(line));
    }

    static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

    // A line of blanks has no cells.
    void split(std::string_view line) {
        cells_.clear();
        const char* const end = line.data() + line.size();
        const char* p = line.data();
        while (p != end && is_blank(*p)) ++p;
        if (p == end) return;
        if (format_.splits_at_tabs) return split_at_tabs(line);
        while (p != end) {
            const char* const start = p;
            while (p != end && !is_blank(*p)) ++p;
            add_cell(line, start, p);
            while (p != end && is_blank(*p)) ++p;
        }
    }
    void split_at_tabs(std::string_view line) {
        const char* const end = line.data() + line.size();
        for (const char* p = line.data();; ++p) {
            const char* const start = p;
            p = std::find(p, end, '\t');
            if (p == start) fail("column " + std::to_string(cells_.size() + 1) + " is empty in " + quoted(line));
            add_cell(line, start, p);
            if (p == end) return;
        }
    }

    void add_cell(std::string_view line, const char* start, const char* end) {
        if (cells_.size() == format_.most_cells)
            fail("more than " + columns(format_.most_cells) + " in " + quoted(line) +
                 "; keep the columns that the templates need");
        cells_.emplace_back(start, std::size_t(end - start));
    }

    void add_token(std::string_view line) {
        if (!block_) begin(line);
        if (cells_.size() != width_) fail_at_width(line);
        for (std::size_t column = 0; column < width_; ++column)
            if (column != label_) block_->append_cell(cells_[column]);
        if (label_ != none) block_->labels.push_back(int32_t(labels_.insert(cells_[label_])));
        block_->lines.push_back(lines_);
    }

    // The first line says how many columns there are.
    void begin(std::string_view line) {
        width_ = format_.expected_cells ? format_.expected_cells : cells_.size();
        first_line_ = lines_;
        if (cells_.size() != width_) fail_at_width(line);
        if (format_.label) {
            const int64_t column = *format_.label + (*format_.label < 0 ? int64_t(width_) : 0);
            if (column < 0 || column >= int64_t(width_))
                fail("label=" + std::to_string(*format_.label) + " is out of range for " + columns(width_) + " in " +
                     quoted(line));
            if (width_ == 1) fail("only a label in " + quoted(line) + "; expected another column, or label=None");
            label_ = std::size_t(column);
        }
        block_.emplace(width_ - (label_ != none));
    }

    void end_sentence() {
        if (!block_ || std::size_t(block_->starts.back()) == block_->tokens()) return;
        block_->end_sentence();
        if (block_->tokens() >= block_tokens_) end_block();
    }
    void end_block() {
        Sentences next(block_->columns);
        std::swap(next, *block_);
        complete_.push_back(std::move(next));
    }

    static std::string columns(std::size_t count) {
        return std::to_string(count) + (count == 1 ? " column" : " columns");
    }

    [[noreturn]] void fail_at_width(std::string_view line) const {
        const std::string expected =
            format_.expected_cells ? " are expected" : " are in line " + std::to_string(first_line_);
        fail(columns(cells_.size()) + " in " + quoted(line) + ", but " + std::to_string(width_) + expected);
    }
    [[noreturn]] void fail(const std::string& why) const { fail_at(lines_, why); }
    [[noreturn]] static void fail_at(int64_t line, const std::string& why) {
        throw std::invalid_argument("line " + std::to_string(line) + ": " + why);
    }

    // The line in quotes, shortened; bytes that cannot be shown are spelled out.
    static std::string quoted(std::string_view line) {
        constexpr std::size_t longest = 60;
        static const char* hex = "0123456789abcdef";
        const bool is_valid = first_invalid_byte(line) == line.npos;
        std::string out = "'";
        std::size_t at = 0;
        for (; at < line.size() && (at < longest || (is_valid && !begins_character(line[at]))); ++at) {
            const uint8_t byte = uint8_t(line[at]);
            if (byte == '\t')
                out += "\\t";
            else if (byte < ' ' || byte == 0x7f || (byte >= 0x80 && !is_valid))
                out += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
            else
                out += line[at];
        }
        return out + (at < line.size() ? "...'" : "'");
    }

    static constexpr std::size_t none = std::size_t(-1), most_held = 1000;

    ConllFormat format_;
    std::size_t block_tokens_;
    Dictionary& labels_;
    std::size_t width_ = 0, label_ = none;
    int64_t lines_ = 0, first_line_ = 0;
    std::string cut_line_;  // the bytes after the last line end
    bool has_begun_ = false;
    std::vector<std::pair<int64_t, std::string>> held_;  // before that: lines with their numbers
    std::vector<std::string_view> cells_;
    std::optional<Sentences> block_;
    std::vector<Sentences> complete_;
};

}  // namespace larank
