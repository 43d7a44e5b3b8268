// Features from templates: for each token the conjunctions of what is seen at it and around it.
//
// A *view* is a form of a column: the suffix of length 3 of column 0. An *atom* is a view at an offset from the token,
// and a *template* a conjunction of up to four atoms. Every view numbers the values it has seen; with the number of
// values of its atoms, a template makes a tuple, and the tuple makes the feature:
//
//     suffix3(word[0]) | pos[-1]   at "dog" after "the/DT"   ->   (number of "dog", number of "DT")   ->   feature
//
// So no text of a feature is ever built or stored. Features are numbered in the order in which they first come, tokens
// first, then templates. Beyond the ends of a sentence stand values of their own, one for each distance, which no text
// can equal. A template with an atom that has no value (a word too short for a prefix, or, where nothing new is learnt,
// a value not seen before) makes no feature. The template without atoms is the bias.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "text/dictionary.hpp"
#include "text/tokens.hpp"
#include "text/wordforms.hpp"

namespace larank {

constexpr std::size_t most_atoms = 4;
constexpr int farthest_offset = 50;

struct View {
    Form form;
    std::size_t length;  // of prefixes and suffixes
    std::size_t column;
};

struct Atom {
    std::size_t view;
    int offset;
};

// One thread may learn while others read: a call sees all features of a block or none of them.
class TemplateTable {
  public:
    TemplateTable(std::vector<View> views, std::vector<std::vector<Atom>> templates, std::size_t columns,
                  const CharacterTables& tables)
        : forms_(tables), columns_(columns), words_(columns), views_of_(columns) {
        for (const View& view : views) {
            if (view.column >= columns) throw std::invalid_argument("a view of a column that is not there");
            views_of_[view.column].push_back(views_.size());
            views_.push_back({view, {}, {}});
        }
        for (std::vector<Atom>& atoms : templates) add_template(std::move(atoms));
    }

    int64_t features() const {
        const std::shared_lock reads(turn_);
        return features_;
    }

    // Features that are new get the next numbers.
    TokenFeatures learn(const Sentences& block) {
        const std::unique_lock learns(turn_);
        return expanded(block, *this);
    }
    // Features that are new are left out.
    TokenFeatures encode(const Sentences& block) const {
        const std::shared_lock reads(turn_);
        return expanded(block, *this);
    }

    // Which template made each of these features, and of which values: texts, or distances beyond the ends.
    struct Origin {
        std::size_t template_number = 0;
        std::vector<std::string> values;
    };
    std::vector<Origin> origins(const std::vector<int64_t>& features) const;

    // What a table is made of besides its views and templates, to be stored: the values each view has seen, the words
    // of each column, and for every feature its template and its tuple, one after another.
    struct State {
        std::vector<Dictionary> words, values;
        std::vector<uint16_t> templates;
        std::vector<uint32_t> tuples;
    };
    State state() const;
    void restore(State state);

  private:
    static constexpr uint32_t no_value = 0;
    static constexpr uint32_t first_text = 1 + 2 * farthest_offset;  // values below stand for what is beyond the ends

    static uint32_t before_start(int distance) { return uint32_t(distance); }
    static uint32_t after_end(int distance) { return uint32_t(farthest_offset + distance); }

    struct SeenView {
        View view;
        Dictionary values;              // value v is text number v - first_text
        std::vector<uint32_t> of_word;  // the value of each word of the column
    };

    struct Template {
        std::vector<Atom> atoms;
        std::vector<uint32_t> direct;  // up to one atom: one more than the feature of each value
        TupleTable tuples;             // more atoms
    };

    // The values of the views of a sentence; both its ends are padded.
    using ValueRows = std::vector<std::vector<uint32_t>>;

    static uint32_t numbered(Dictionary& known, std::string_view text) { return known.insert(text); }
    static uint32_t numbered(const Dictionary& known, std::string_view text) { return known.find(text); }

    // The values of words: a table that is const looks them up, another one learns those that are new.
    template <class Table>
    struct Values {
        Table& table;
        std::string scratch{};

        void fill(std::string_view word, std::size_t column, std::size_t at, ValueRows& rows) {
            const uint32_t number = numbered(table.words_[column], word);
            for (const std::size_t v : table.views_of_[column]) {
                auto& seen = table.views_[v];
                if constexpr (!std::is_const_v<Table>)
                    if (number == seen.of_word.size()) seen.of_word.push_back(value(seen, word));
                rows[v][at] = number == unknown ? value(seen, word) : seen.of_word[number];
            }
        }
        template <class View>
        uint32_t value(View& seen, std::string_view word) {
            if (!table.forms_.form(seen.view.form, seen.view.length, word, scratch)) return no_value;
            const uint32_t found = numbered(seen.values, scratch);
            return found == unknown ? no_value : first_text + found;
        }
    };

    void add_template(std::vector<Atom> atoms) {
        if (atoms.size() > most_atoms) throw std::invalid_argument("a template of more than four atoms");
        for (const Atom& atom : atoms) {
            if (atom.view >= views_.size()) throw std::invalid_argument("an atom of a view that is not there");
            if (std::abs(atom.offset) > farthest_offset) throw std::invalid_argument("an offset beyond 50");
        }
        const std::size_t width = atoms.size();
        templates_.push_back({std::move(atoms), {}, TupleTable(width)});
    }

    template <class Table>
    static TokenFeatures expanded(const Sentences& block, Table& table);
    template <class Table>
    static void fill_sentence(const Sentences& block, std::size_t sentence, Values<Table>& values, ValueRows& rows);

    // The feature of a tuple, or `unknown`.
    uint32_t feature_of(Template& made, const uint32_t* tuple) {
        if (made.atoms.size() > 1) return counted(made.tuples.insert(tuple, made.tuples.hash(tuple), next()));
        const uint32_t value = made.atoms.empty() ? 0 : tuple[0];
        if (value >= made.direct.size()) made.direct.resize(value + 1 + made.direct.size());
        if (!made.direct[value]) made.direct[value] = next() + 1;
        return counted(made.direct[value] - 1);
    }
    uint32_t feature_of(const Template& made, const uint32_t* tuple) const {
        if (made.atoms.size() > 1) return made.tuples.find(tuple, made.tuples.hash(tuple));
        const uint32_t value = made.atoms.empty() ? 0 : tuple[0];
        return value < made.direct.size() ? made.direct[value] - 1 : unknown;
    }
    uint32_t next() const {
        if (features_ > INT32_MAX) throw std::length_error("more than 2147483647 distinct features");
        return uint32_t(features_);
    }
    uint32_t counted(uint32_t feature) {
        features_ += int64_t{feature} == features_;
        return feature;
    }

    // Calls visit(feature, template number, tuple) for all features, in no order.
    template <class Visit>
    void each_feature(const Visit& visit) const;
    std::string text_of(const SeenView& seen, uint32_t value) const;

    WordForms forms_;
    std::size_t columns_;
    std::vector<Dictionary> words_;  // of each column that is used
    std::vector<SeenView> views_;
    std::vector<std::vector<std::size_t>> views_of_;  // each column
    std::vector<Template> templates_;
    int64_t features_ = 0;
    mutable std::shared_mutex turn_;
};

template <class Table>
TokenFeatures TemplateTable::expanded(const Sentences& block, Table& table) {
    if (block.columns != table.columns_) throw std::invalid_argument("the block has another number of columns");
    TokenFeatures out;
    out.starts.reserve(block.tokens() + 1);
    out.features.reserve(block.tokens() * table.templates_.size());
    Values<Table> values{table};
    ValueRows rows(table.views_.size());
    std::array<uint32_t, most_atoms> tuple{};
    for (std::size_t sentence = 0; sentence < block.size(); ++sentence) {
        fill_sentence(block, sentence, values, rows);
        const int64_t length = block.starts[sentence + 1] - block.starts[sentence];
        for (int64_t i = 0; i < length; ++i) {
            for (auto& made : table.templates_) {
                bool has_values = true;
                for (std::size_t k = 0; k < made.atoms.size(); ++k) {
                    const Atom& atom = made.atoms[k];
                    tuple[k] = rows[atom.view][std::size_t(farthest_offset + i + atom.offset)];
                    has_values = has_values && tuple[k] != no_value;
                }
                const uint32_t feature = has_values ? table.feature_of(made, tuple.data()) : unknown;
                if (feature != unknown) out.features.push_back(int32_t(feature));
            }
            out.starts.push_back(int64_t(out.features.size()));
        }
    }
    return out;
}

template <class Table>
void TemplateTable::fill_sentence(const Sentences& block, std::size_t sentence, Values<Table>& values,
                                  ValueRows& rows) {
    const std::size_t first = std::size_t(block.starts[sentence]);
    const std::size_t length = std::size_t(block.starts[sentence + 1]) - first;
    for (std::vector<uint32_t>& row : rows) {
        row.resize(length + 2 * farthest_offset);
        for (int distance = 1; distance <= farthest_offset; ++distance) {
            row[std::size_t(farthest_offset - distance)] = before_start(distance);
            row[length + std::size_t(farthest_offset + distance - 1)] = after_end(distance);
        }
    }
    for (std::size_t i = 0; i < length; ++i)
        for (std::size_t column = 0; column < block.columns; ++column)
            if (!values.table.views_of_[column].empty())
                values.fill(block.cell(first + i, column), column, i + farthest_offset, rows);
}

template <class Visit>
void TemplateTable::each_feature(const Visit& visit) const {
    for (std::size_t number = 0; number < templates_.size(); ++number) {
        const Template& made = templates_[number];
        made.tuples.each([&](uint32_t feature, const uint32_t* tuple) { visit(feature, number, tuple); });
        for (uint32_t value = 0; value < made.direct.size(); ++value)
            if (made.direct[value]) visit(made.direct[value] - 1, number, &value);
    }
}

inline std::string TemplateTable::text_of(const SeenView& seen, uint32_t value) const {
    if (value >= first_text) return std::string(seen.values[value - first_text]);
    if (value > farthest_offset) return "</s+" + std::to_string(value - farthest_offset) + ">";
    return "<s-" + std::to_string(value) + ">";
}

inline std::vector<TemplateTable::Origin> TemplateTable::origins(const std::vector<int64_t>& features) const {
    const std::shared_lock reads(turn_);
    std::vector<std::pair<int64_t, std::size_t>> wanted;
    for (std::size_t k = 0; k < features.size(); ++k) {
        if (features[k] < 0 || features[k] >= features_)
            throw std::invalid_argument("there is no feature " + std::to_string(features[k]) + "; there are " +
                                        std::to_string(features_));
        wanted.emplace_back(features[k], k);
    }
    std::sort(wanted.begin(), wanted.end());
    std::vector<Origin> out(features.size());
    each_feature([&](uint32_t feature, std::size_t number, const uint32_t* tuple) {
        auto found = std::lower_bound(wanted.begin(), wanted.end(), std::pair<int64_t, std::size_t>(feature, 0));
        for (; found != wanted.end() && found->first == feature; ++found) {
            Origin& origin = out[found->second];
            origin.template_number = number;
            const std::vector<Atom>& atoms = templates_[number].atoms;
            for (std::size_t a = 0; a < atoms.size(); ++a)
                origin.values.push_back(text_of(views_[atoms[a].view], tuple[a]));
        }
    });
    return out;
}

inline TemplateTable::State TemplateTable::state() const {
    const std::shared_lock reads(turn_);
    State state;
    state.words = words_;
    for (const SeenView& seen : views_) state.values.push_back(seen.values);
    state.templates.resize(std::size_t(features_));
    std::vector<std::array<uint32_t, most_atoms>> tuples(static_cast<std::size_t>(features_));
    each_feature([&](uint32_t feature, std::size_t number, const uint32_t* tuple) {
        state.templates[feature] = uint16_t(number);
        std::copy_n(tuple, templates_[number].atoms.size(), tuples[feature].data());
    });
    for (std::size_t f = 0; f < tuples.size(); ++f)
        state.tuples.insert(state.tuples.end(), tuples[f].begin(),
                            tuples[f].begin() + int64_t(templates_[state.templates[f]].atoms.size()));
    return state;
}

// The values of words are found again from their text.
inline void TemplateTable::restore(State state) {
    if (features_ != 0 || state.words.size() != columns_ || state.values.size() != views_.size())
        throw std::invalid_argument("the state does not fit the templates");
    words_ = std::move(state.words);
    Values<TemplateTable> values{*this};
    for (std::size_t v = 0; v < views_.size(); ++v) {
        SeenView& seen = views_[v];
        seen.values = std::move(state.values[v]);
        const Dictionary& words = words_[seen.view.column];
        for (uint32_t word = 0; word < words.size(); ++word) seen.of_word.push_back(values.value(seen, words[word]));
    }
    const uint32_t* tuple = state.tuples.data();
    const uint32_t* const end = tuple + state.tuples.size();
    for (const uint16_t number : state.templates) {
        if (number >= templates_.size() || std::size_t(end - tuple) < templates_[number].atoms.size())
            throw std::invalid_argument("the state is damaged: a template or tuple is missing");
        Template& made = templates_[number];
        for (std::size_t a = 0; a < made.atoms.size(); ++a)
            if (tuple[a] == no_value || tuple[a] >= first_text + views_[made.atoms[a].view].values.size())
                throw std::invalid_argument("the state is damaged: a value is out of range");
        const int64_t before = features_;
        feature_of(made, tuple);
        if (features_ == before) throw std::invalid_argument("the state is damaged: a feature is there twice");
        tuple += made.atoms.size();
    }
    if (tuple != end) throw std::invalid_argument("the state is damaged: there are more tuples than features");
}

}  // namespace larank
