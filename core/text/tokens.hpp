// Sentences of text, and the features of tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace larank {

// Tokens of one or more columns of text, all text in one buffer, and perhaps a label per token.
struct Sentences {
    explicit Sentences(std::size_t column_count) : columns(column_count) {}

    std::size_t columns;
    std::vector<int64_t> starts{0};  // sentence i is tokens starts[i] : starts[i + 1]
    std::vector<int32_t> labels;     // numbers in a dictionary of labels; empty: there are none
    std::vector<int64_t> lines;      // of a file; empty: the tokens do not come from one

    std::size_t size() const { return starts.size() - 1; }
    std::size_t tokens() const { return ends_.size() / columns; }

    std::string_view cell(std::size_t token, std::size_t column) const {
        const std::size_t at = token * columns + column;
        const std::size_t start = at ? ends_[at - 1] : 0;
        return {text_.data() + start, ends_[at] - start};
    }
    void append_cell(std::string_view word) {
        text_.append(word);
        ends_.push_back(text_.size());
    }
    void end_sentence() { starts.push_back(int64_t(tokens())); }

  private:
    std::string text_;
    std::vector<std::size_t> ends_;  // of the cells of the first token, then of the second, ...
};

// The features of tokens, one after another.
struct TokenFeatures {
    std::vector<int64_t> starts{0};
    std::vector<int32_t> features;
    std::vector<double> values;  // empty: all are 1
};

}  // namespace larank
