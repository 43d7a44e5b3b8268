// Tokens of Python and of files, and their features.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>

#include "bindings/arrays.hpp"
#include "templates.hpp"

namespace {

using larank::Dictionary;
using larank::TemplateTable;
using larank::TokenBlock;

const larank::CharacterTables python_characters{
    [](uint32_t c) { return Py_UNICODE_ISUPPER(Py_UCS4(c)) != 0; },
    [](uint32_t c) { return Py_UNICODE_ISALPHA(Py_UCS4(c)) != 0; },
    [](uint32_t c) { return Py_UNICODE_ISDECIMAL(Py_UCS4(c)) != 0; },
    [](uint32_t c) { return uint32_t(Py_UNICODE_TOLOWER(Py_UCS4(c))); },
};

// Python objects, walked through without making more of them

std::string place(Py_ssize_t sentence) { return "X[" + std::to_string(sentence) + "]"; }
std::string place(Py_ssize_t sentence, Py_ssize_t token) { return place(sentence) + "[" + std::to_string(token) + "]"; }

[[noreturn]] void fail_value(const std::string& why) { throw nb::value_error(why.c_str()); }
[[noreturn]] void fail_type(const std::string& why) { throw nb::type_error(why.c_str()); }

std::string kind_of(PyObject* object) { return Py_TYPE(object)->tp_name; }
std::string a_kind_of(PyObject* object) {
    const std::string kind = kind_of(object);
    return (std::string("aeiouAEIOU").find(kind[0]) == std::string::npos ? "a " : "an ") + kind;
}

// A list or tuple as it is, another iterable as a list of what it gives.
nb::object walkable(PyObject* object, const std::string& where, const char* wanted) {
    const bool is_text = PyUnicode_Check(object) || PyBytes_Check(object);
    PyObject* found = is_text || PyDict_Check(object) ? nullptr : PySequence_Fast(object, "");
    if (!found) {
        PyErr_Clear();
        fail_type(where + " is " + a_kind_of(object) + "; " + wanted);
    }
    return nb::steal(found);
}

// Calls visit(token, sentence number, token number) for all tokens of X, and end_sentence() after each sentence.
template <class Visit, class End>
void walk(nb::handle X, const Visit& visit, const End& end_sentence) {
    const nb::object sentences = walkable(X.ptr(), "X", "expected a list of sequences of tokens");
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sentences.ptr()); ++i) {
        const nb::object tokens = walkable(PySequence_Fast_GET_ITEM(sentences.ptr(), i), place(i),
                                           "expected a sequence of tokens, such as a list");
        const Py_ssize_t length = PySequence_Fast_GET_SIZE(tokens.ptr());
        if (length == 0) fail_value(place(i) + " is an empty sequence; every sequence needs at least one token");
        for (Py_ssize_t t = 0; t < length; ++t) visit(PySequence_Fast_GET_ITEM(tokens.ptr(), t), i, t);
        end_sentence();
    }
}

template <class Where>
std::string_view utf8_of(PyObject* text, const Where& where) {
    Py_ssize_t size = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(text, &size);
    if (!bytes) {
        PyErr_Clear();
        fail_value(where() + " holds a lone surrogate, which is no character");
    }
    return {bytes, std::size_t(size)};
}

// Sentences of str (one column) or of tuples of str as a block.
TokenBlock token_block(nb::handle X, std::size_t columns) {
    TokenBlock block(columns);
    int first_is_text = -1;
    std::string first_kind;
    const auto one_text = [&](PyObject* token, Py_ssize_t i, Py_ssize_t t) {
        if (columns != 1)
            fail_value(place(i, t) + " is a str, one column, but there are " + std::to_string(columns) +
                       " columns; expected a tuple of " + std::to_string(columns) + " str");
        block.append_cell(utf8_of(token, [&] { return place(i, t); }));
    };
    const auto several_texts = [&](PyObject* token, Py_ssize_t i, Py_ssize_t t) {
        if (std::size_t(PyTuple_GET_SIZE(token)) != columns)
            fail_value(place(i, t) + " has length " + std::to_string(PyTuple_GET_SIZE(token)) + "; expected " +
                       std::to_string(columns) + ", one str per column");
        for (Py_ssize_t c = 0; c < PyTuple_GET_SIZE(token); ++c) {
            PyObject* cell = PyTuple_GET_ITEM(token, c);
            const auto where = [&] { return place(i, t) + "[" + std::to_string(c) + "]"; };
            if (!PyUnicode_Check(cell)) fail_type(where() + " is " + a_kind_of(cell) + "; expected a str");
            block.append_cell(utf8_of(cell, where));
        }
    };
    walk(
        X,
        [&](PyObject* token, Py_ssize_t i, Py_ssize_t t) {
            const bool is_text = PyUnicode_Check(token);
            if (!is_text && !PyTuple_Check(token) && first_is_text < 0)
                fail_type(place(i, t) + " is " + a_kind_of(token) + "; expected a str or a tuple of str");
            if (first_is_text < 0) {
                first_is_text = is_text;
                first_kind = a_kind_of(token);
            }
            if (is_text != (first_is_text == 1) || (!is_text && !PyTuple_Check(token)))
                fail_type(place(i, t) + " is " + a_kind_of(token) + ", but X[0][0] is " + first_kind +
                          "; all tokens must be of one kind");
            is_text ? one_text(token, i, t) : several_texts(token, i, t);
        },
        [&] { block.end_sentence(); });
    return block;
}

// Arrays

nb::tuple rows_tuple(larank::FeatureRows&& rows) {
    const std::size_t starts = rows.starts.size(), features = rows.features.size(), values = rows.values.size();
    nb::object numbers = nb::none();
    if (values) numbers = nb::cast(to_numpy(std::move(rows.values), {values}));
    return nb::make_tuple(to_numpy(std::move(rows.starts), {starts}), to_numpy(std::move(rows.features), {features}),
                          numbers);
}

template <class T>
nb::ndarray<nb::numpy, T> copied(const std::vector<T>& values) {
    return to_numpy(std::vector<T>(values), {values.size()});
}

nb::tuple dictionary_arrays(const Dictionary& dictionary) {
    std::vector<uint8_t> text(dictionary.text().begin(), dictionary.text().end());
    std::vector<int64_t> ends(dictionary.ends().begin(), dictionary.ends().end());
    const std::size_t bytes = text.size(), words = ends.size();
    return nb::make_tuple(to_numpy(std::move(text), {bytes}), to_numpy(std::move(ends), {words}));
}

Dictionary dictionary_of(Vector<uint8_t> text, Vector<int64_t> ends) {
    Dictionary dictionary;
    const char* start = reinterpret_cast<const char*>(text.data());
    const char* const end = start + text.shape(0);
    for (std::size_t k = 0; k < ends.shape(0); ++k) {
        const char* last = reinterpret_cast<const char*>(text.data()) + ends.data()[k];
        if (ends.data()[k] < 0 || last < start || last > end)
            throw std::invalid_argument("the state is damaged: a string ends beyond the text");
        const std::string_view word(start, std::size_t(last - start));
        if (larank::first_invalid_byte(word) != word.npos)
            throw std::invalid_argument("the state is damaged: a string is not UTF-8");
        if (dictionary.insert(word) != k) throw std::invalid_argument("the state is damaged: a string is there twice");
        start = last;
    }
    return dictionary;
}

// Templates

using ViewSpec = std::tuple<std::string, std::size_t, std::size_t>;
using AtomSpec = std::pair<std::size_t, int>;

TemplateTable template_table(const std::vector<ViewSpec>& views, const std::vector<std::vector<AtomSpec>>& templates,
                             std::size_t columns) {
    std::vector<larank::View> seen;
    for (const auto& [form, length, column] : views) seen.push_back({larank::form_named(form), length, column});
    std::vector<std::vector<larank::Atom>> made;
    for (const auto& atoms : templates) {
        made.emplace_back();
        for (const auto& [view, offset] : atoms) made.back().push_back({view, offset});
    }
    return TemplateTable(std::move(seen), std::move(made), columns, python_characters);
}

nb::list template_origins(const TemplateTable& table, Vector<int64_t> features) {
    nb::list out;
    const std::vector<int64_t> wanted(features.data(), features.data() + features.shape(0));
    for (const TemplateTable::Origin& origin : table.origins(wanted))
        out.append(nb::make_tuple(origin.template_number, nb::cast(origin.values)));
    return out;
}

nb::tuple template_state(const TemplateTable& table) {
    TemplateTable::State state = table.state();
    nb::list words, values;
    for (const Dictionary& dictionary : state.words) words.append(dictionary_arrays(dictionary));
    for (const Dictionary& dictionary : state.values) values.append(dictionary_arrays(dictionary));
    const std::size_t features = state.templates.size(), numbers = state.tuples.size();
    return nb::make_tuple(words, values, to_numpy(std::move(state.templates), {features}),
                          to_numpy(std::move(state.tuples), {numbers}));
}

using DictionaryArrays = std::pair<Vector<uint8_t>, Vector<int64_t>>;

void restore_templates(TemplateTable& table, const std::vector<DictionaryArrays>& words,
                       const std::vector<DictionaryArrays>& values, Vector<uint16_t> templates,
                       Vector<uint32_t> tuples) {
    TemplateTable::State state;
    for (const auto& [text, ends] : words) state.words.push_back(dictionary_of(text, ends));
    for (const auto& [text, ends] : values) state.values.push_back(dictionary_of(text, ends));
    state.templates.assign(templates.data(), templates.data() + templates.shape(0));
    state.tuples.assign(tuples.data(), tuples.data() + tuples.shape(0));
    table.restore(std::move(state));
}

template <class Table, class Method>
nb::tuple expand(Table& table, const TokenBlock& block, Method method) {
    larank::FeatureRows rows;
    {
        nb::gil_scoped_release release;
        rows = (table.*method)(block);
    }
    return rows_tuple(std::move(rows));
}

void bind_templates(nb::module_& m) {
    nb::class_<TemplateTable>(m, "TemplateTable")
        .def(
            "__init__",
            [](TemplateTable* self, const std::vector<ViewSpec>& views,
               const std::vector<std::vector<AtomSpec>>& templates,
               std::size_t columns) { new (self) TemplateTable(template_table(views, templates, columns)); },
            "views"_a, "templates"_a, "columns"_a)
        .def_prop_ro("n_features", &TemplateTable::features)
        .def(
            "learn",
            [](TemplateTable& self, const TokenBlock& block) { return expand(self, block, &TemplateTable::learn); },
            "block"_a)
        .def(
            "encode",
            [](const TemplateTable& self, const TokenBlock& block) {
                return expand(self, block, &TemplateTable::encode);
            },
            "block"_a)
        .def("origins", &template_origins, "features"_a.noconvert())
        .def("state", &template_state)
        .def("restore", &restore_templates, "words"_a, "values"_a, "templates"_a.noconvert(), "tuples"_a.noconvert());
}

void bind_tokens(nb::module_& m) {
    nb::class_<TokenBlock>(m, "TokenBlock")
        .def("__len__", &TokenBlock::sentences)
        .def_ro("n_columns", &TokenBlock::columns)
        .def_prop_ro("n_tokens", &TokenBlock::tokens)
        .def_prop_ro("starts", [](const TokenBlock& self) { return copied(self.starts); }, nb::rv_policy::move);
    m.def("token_block", &token_block, "X"_a, "columns"_a);
}

}  // namespace

void bind_features(nb::module_& m) {
    bind_tokens(m);
    bind_templates(m);
}
