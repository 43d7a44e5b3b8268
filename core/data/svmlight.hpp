// The svmlight / libsvm text format: `label index:value index:value ... # comment`, one example per line.
//
// The reader is fed whole lines, in as many pieces as one likes, and hands over rows block by block or all at once. It
// keeps raw indices until then, when it knows whether they count from zero or from one. Errors begin with the line they
// were found in.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/decimal.hpp"

namespace larank {

// An array that grows by realloc, which moves the pages of a large block instead of copying them.
template <class T>
class Growing {
  public:
    Growing() = default;
    Growing(Growing&& other) noexcept { swap(other); }
    Growing& operator=(Growing&& other) noexcept {
        Growing(std::move(other)).swap(*this);
        return *this;
    }
    ~Growing() { std::free(data_); }

    std::size_t size() const { return size_; }
    T* begin() { return data_; }
    T* end() { return data_ + size_; }

    void reserve_more(std::size_t extra) {
        if (size_ + extra > capacity_) resize_block(std::max(size_ + extra, 2 * capacity_));
    }
    void set_end(const T* end) { size_ = std::size_t(end - data_); }

    // Gives the block away; its new owner calls free.
    T* release() {
        resize_block(std::max<std::size_t>(size_, 1));
        size_ = capacity_ = 0;
        return std::exchange(data_, nullptr);
    }

  private:
    void swap(Growing& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }
    void resize_block(std::size_t capacity) {
        void* moved = std::realloc(data_, capacity * sizeof(T));
        if (!moved) throw std::bad_alloc();
        data_ = static_cast<T*>(moved);
        capacity_ = capacity;
    }

    T* data_ = nullptr;
    std::size_t size_ = 0, capacity_ = 0;
};

constexpr int64_t most_features = std::numeric_limits<int32_t>::max();

enum class IndexBase { zero, one, detect };

inline bool ends_row(char c) { return c == '\n' || c == '#'; }
inline bool ends_word(char c) { return is_blank(c) || ends_row(c); }

// The word at `p` in quotes, in ASCII and short, so that any bytes can stand in a message.
inline std::string quoted(const char* p) {
    constexpr std::ptrdiff_t longest = 40;
    static const char* hex = "0123456789abcdef";
    std::string out = "'";
    const char* q = p;
    for (; !ends_word(*q) && q - p < longest; ++q) {
        if (*q >= ' ' && *q <= '~')
            out += *q;
        else
            out += {'\\', 'x', hex[(*q >> 4) & 15], hex[*q & 15]};
    }
    return out + (ends_word(*q) ? "'" : "...'");
}

inline bool is_not_finite(std::string_view word) {
    std::string low;
    for (char c : word.substr(0, 10)) low += c >= 'A' && c <= 'Z' ? char(c + 32) : c;
    if (!low.empty() && (low[0] == '+' || low[0] == '-')) low.erase(0, 1);
    return low == "nan" || low == "inf" || low == "infinity";
}

// Rows of a CSR matrix, their labels, each followed by a line end, and the lines they stand in.
template <class T>
struct SvmlightRows {
    Growing<T> values;
    Growing<int32_t> indices;
    std::vector<int64_t> starts{0}, lines;
    std::string labels;
    int64_t features = 0;

    int64_t bytes() const {
        return int64_t(values.size() * sizeof(T) + indices.size() * sizeof(int32_t) + lines.size() * sizeof(int64_t));
    }
};

template <class T>
class SvmlightReader {
  public:
    // `features` < 0: as many as the file has. A block is full once its matrix has `block_bytes`; without them it is
    // all that is fed.
    SvmlightReader(IndexBase base, int64_t features, std::optional<int64_t> block_bytes)
        : base_(base), features_(features), block_bytes_(block_bytes.value_or(std::numeric_limits<int64_t>::max())) {
        if (base == IndexBase::detect && block_bytes)
            throw std::invalid_argument("where indices count from is detected in a whole file, not in blocks");
        if (block_bytes_ < 1) throw std::invalid_argument("block_bytes must be positive");
        if (features >= 0) largest_ = std::min(largest_, features);
        if (base == IndexBase::zero) largest_ = std::min(largest_, (features >= 0 ? features : most_features) - 1);
    }

    // Reads `text`, any number of whole lines, and stops before a row that comes when the block is full: `take` it, and
    // feed the rest. Returns how much was read.
    std::size_t feed(std::string_view text) {
        if (text.empty()) return 0;
        if (text.back() != '\n') throw std::logic_error("the text does not end with a line end");
        const char* const end = text.data() + text.size();
        for (const char* line = text.data(); line != end; ++lines_) {
            const char* const p = skip_blanks(line);
            const char* const line_end = static_cast<const char*>(std::memchr(p, '\n', std::size_t(end - p)));
            if (!ends_row(*p)) {
                if (rows_.bytes() >= block_bytes_) return std::size_t(line - text.data());
                read_row(p, std::size_t(line_end - p));
            }
            line = line_end + 1;
        }
        return text.size();
    }

    // Hands over the rows read since the last call. Their indices count from zero, and there are as many features as
    // the largest index so far asks for, if their number was not given.
    SvmlightRows<T> take() {
        if (rows_.lines.empty()) fail("no examples");
        const bool from_zero = base_ == IndexBase::zero || (base_ == IndexBase::detect && zero_line_);
        if (from_zero && top_line_)
            throw std::invalid_argument(at(*top_line_) + out_of_range(std::to_string(largest_), largest_ - 1) +
                                        ", counting from zero as line " + std::to_string(*zero_line_) + " does");
        if (!from_zero)
            for (int32_t& index : rows_.indices) --index;
        rows_.features = features_ >= 0 ? features_ : from_zero ? int64_t{seen_} + 1 : std::max(seen_, 0);
        return std::exchange(rows_, SvmlightRows<T>());
    }

    int64_t lines() const { return lines_; }

  private:
    // From the label to the end of the last pair; `length` is that of the line.
    void read_row(const char* p, std::size_t length) {
        const std::size_t pairs = length / 4 + 1;  // a pair has three characters at least, and a blank before it
        rows_.values.reserve_more(pairs);
        rows_.indices.reserve_more(pairs);
        p = read_label(p);
        T* value = rows_.values.end();
        int32_t* index = rows_.indices.end();
        int64_t previous = -1;
        for (p = skip_blanks(p); !ends_row(*p); p = skip_blanks(p)) {
            const char* const pair = p;
            uint64_t number = 0;
            p = read_digits(p, number);
            if (*p != ':' || p == pair) fail_at_index(pair);
            if (p - pair > 10 || int64_t(number) > largest_) fail(out_of_range({pair, p}, largest_));
            if (int64_t(number) <= previous) fail_at_order(int64_t(number), previous);
            previous = int64_t(number);
            const char* const text = ++p;
            p = read_decimal(text, *value);
            if (p == text || !ends_word(*p) || std::isinf(*value)) fail_at_value(pair, text);
            *index++ = int32_t(number);
            ++value;
        }
        note_indices(rows_.indices.end(), index);
        rows_.values.set_end(value);
        rows_.indices.set_end(index);
        rows_.starts.push_back(int64_t(rows_.indices.size()));
        rows_.lines.push_back(lines_ + 1);
    }

    const char* read_label(const char* p) {
        const char* end = p;
        for (; !ends_word(*end); ++end)
            if (*end == ':') fail("no label before " + quoted(p));
        const std::string_view word(p, std::size_t(end - p));
        if (word.find('\0') != word.npos) fail("NUL byte in the label " + quoted(p));
        if (word.find("\xef\xbb\xbf") != word.npos) fail("byte order mark in the label " + quoted(p));
        if (is_not_finite(word)) fail("the label " + quoted(p) + " is not finite");
        rows_.labels.append(word).push_back('\n');
        return end;
    }

    // Rows are sorted, so the first index tells about zero and the last about the largest.
    void note_indices(const int32_t* first, const int32_t* last) {
        if (first == last) return;
        if (*first == 0 && base_ == IndexBase::one)
            fail("index 0, but the indices should count from one (see zero_based)");
        if (*first == 0 && !zero_line_) zero_line_ = lines_ + 1;
        seen_ = std::max(seen_, last[-1]);
        if (base_ == IndexBase::detect && last[-1] == largest_ && !top_line_) top_line_ = lines_ + 1;
    }

    static std::string at(int64_t line) { return "line " + std::to_string(line) + ": "; }
    [[noreturn]] void fail(const std::string& why) const { throw std::invalid_argument(at(lines_ + 1) + why); }

    std::string out_of_range(const std::string& index, int64_t largest) const {
        if (features_ < 0) return "index " + index + " is larger than " + std::to_string(largest);
        return "index " + index + " is out of range for n_features=" + std::to_string(features_);
    }
    [[noreturn]] void fail_at_index(const char* pair) const {
        if (std::strncmp(pair, "qid:", 4) == 0) fail("qid: ranking groups are not supported");
        fail("malformed pair " + quoted(pair) + "; expected index:value");
    }
    [[noreturn]] void fail_at_order(int64_t index, int64_t previous) const {
        if (index == previous) fail("index " + std::to_string(index) + " is given twice");
        fail("index " + std::to_string(index) + " after " + std::to_string(previous) + "; indices must increase");
    }
    [[noreturn]] void fail_at_value(const char* pair, const char* text) const {
        const char* end = text;
        while (!ends_word(*end)) ++end;
        T value;
        const bool number = end != text && read_decimal(text, value) == end;
        if (number || is_not_finite({text, std::size_t(end - text)}))
            fail("the value of " + quoted(pair) + " is not finite");
        fail("malformed pair " + quoted(pair) + "; expected index:value");
    }

    IndexBase base_;
    int64_t features_, block_bytes_;
    int64_t largest_ = most_features;  // allowed index, as written in the file
    int32_t seen_ = -1;                // largest index, as written in the file
    int64_t lines_ = 0;
    std::optional<int64_t> zero_line_, top_line_;  // where index 0 and the largest allowed one first stood
    SvmlightRows<T> rows_;                         // since the last `take`
};

// Labels, each followed by a line end, as int64 if all are integers, as double if all are numbers. An integer too long
// for int64 is no number here, lest two labels become one.
struct LabelNumbers {
    std::vector<int64_t> integers;
    std::vector<double> reals;

    // False where some label is no number.
    bool read(std::string_view text) {
        if (!text.empty() && text.back() != '\n') throw std::logic_error("the labels do not end with a line end");
        const char* p = text.data();
        end_ = p + text.size();
        while (p != end_ && read_integer(p)) ++p;
        if (p == end_) return true;
        integers.clear();
        p = text.data();
        while (p != end_ && read_real(p)) ++p;
        return p == end_;
    }

  private:
    const char* end_ = nullptr;

    bool read_integer(const char*& p) {
        int64_t value = 0;
        const char* first = p + (p[0] == '+' && is_digit(p[1]));
        const auto found = std::from_chars(first, end_, value);
        if (found.ec != std::errc() || *found.ptr != '\n') return false;
        integers.push_back(value);
        p = found.ptr;
        return true;
    }
    bool read_real(const char*& p) {
        double value = 0;
        const char* last = read_decimal(p, value);
        if (last == p || *last != '\n' || std::isinf(value)) return false;
        if (std::none_of(p, last, [](char c) { return c == '.' || c == 'e' || c == 'E'; }) &&
            std::fabs(value) >= 0x1p63)
            return false;
        reals.push_back(value);
        p = last;
        return true;
    }
};

// Rows [first, last) of a CSR matrix as text, `labels` holding their labels, each followed by a line end.
template <class T>
std::string svmlight_text(const T* values, const int32_t* indices, const int64_t* starts, int64_t first, int64_t last,
                          std::string_view labels, int32_t base) {
    const std::size_t pairs = std::size_t(starts[last] - starts[first]);
    std::string out(labels.size() + pairs * 2 * longest_decimal, '\0');
    char* p = out.data();
    for (int64_t i = first; i < last; ++i) {
        const std::size_t size = labels.find('\n');
        if (size == labels.npos) throw std::logic_error("fewer labels than rows");
        p = std::copy_n(labels.data(), size, p);
        labels.remove_prefix(size + 1);
        for (int64_t k = starts[i]; k < starts[i + 1]; ++k) {
            *p++ = ' ';
            p = write_decimal(p, int64_t{indices[k]} + base);
            *p++ = ':';
            p = write_decimal(p, values[k]);
        }
        *p++ = '\n';
    }
    out.resize(std::size_t(p - out.data()));
    return out;
}

}  // namespace larank
