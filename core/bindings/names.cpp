// Dictionaries, and tokens whose features have names.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>

#include "bindings/dictionaries.hpp"
#include "bindings/walking.hpp"

namespace {

using larank::Dictionary;

// Tokens of named features: dicts of str, numbers, bools and None, which is no feature, or lists and sets of str.
// `number` makes a feature of a name, or `unknown`.
template <class Number>
class NamedTokens {
  public:
    explicit NamedTokens(const Number& number) : number_(number) {}

    larank::TokenFeatures rows;
    std::vector<int64_t> starts{0};

    void read(nb::handle X) {
        walk(
            X,
            [&](PyObject* token, Py_ssize_t i, Py_ssize_t t) {
                sentence_ = i;
                token_ = t;
                read_token(token);
                rows.starts.push_back(int64_t(rows.features.size()));
            },
            [&] { starts.push_back(int64_t(rows.starts.size()) - 1); });
    }

  private:
    std::string here() const { return x_at(sentence_, token_); }

    void read_token(PyObject* token) {
        const bool is_dict = PyDict_Check(token), is_set = PyAnySet_Check(token);
        kind_.check(is_dict ? 0 : is_set || PyList_Check(token) ? 1 : -1, token, sentence_, token_);
        const std::size_t first = rows.features.size();
        if (is_dict)
            read_dict(token);
        else
            read_names(token, is_set);
        if (has_repetition(first)) is_dict ? fail_at_repetition() : remove_repetitions(first);
    }

    void read_dict(PyObject* token) {
        PyObject *key, *value;
        for (Py_ssize_t at = 0; PyDict_Next(token, &at, &key, &value);) {
            if (!PyUnicode_Check(key)) fail_type(here() + " has a key of type " + kind_of(key) + "; expected a str");
            if (value == Py_None) continue;
            name_ = utf8_of(key, [&] { return "a key of " + here(); });
            if (PyUnicode_Check(value)) {
                name_ += '=';
                name_ += utf8_of(value, [&] { return here() + "['" + name_ + "']"; });
                add(name_, 1);
            } else {
                add(name_, number_from(value));
            }
        }
    }
    double number_from(PyObject* value) const {
        double number = PyNumber_Check(value) ? PyFloat_AsDouble(value) : 0;
        if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError)) {
            PyErr_Clear();
            number = HUGE_VAL;
        }
        if (!PyNumber_Check(value) || PyErr_Occurred()) {
            PyErr_Clear();
            fail_type(here() + "['" + name_ + "'] is " + a_kind_of(value) +
                      "; expected a str, a number, a bool or None");
        }
        if (!std::isfinite(number)) fail_value(here() + "['" + name_ + "'] is not finite");
        return number;
    }

    // The order of a set differs from one process to the next; features must not.
    void read_names(PyObject* token, bool is_set) {
        const nb::object items = nb::steal(PySequence_Fast(token, ""));
        names_.clear();
        for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(items.ptr()); ++k) {
            PyObject* item = PySequence_Fast_GET_ITEM(items.ptr(), k);
            if (!PyUnicode_Check(item))
                fail_type(here() + " holds " + a_kind_of(item) + "; expected names, of type str");
            names_.push_back(utf8_of(item, [&] { return "a name in " + here(); }));
        }
        if (is_set) std::sort(names_.begin(), names_.end());
        for (const std::string_view name : names_) add(name, 1);
    }

    void add(std::string_view name, double value) {
        const uint32_t feature = value == 0 ? larank::unknown : number_(name);
        if (feature == larank::unknown) return;
        if (value != 1 || !rows.values.empty()) {
            rows.values.resize(rows.features.size(), 1.0);
            rows.values.push_back(value);
        }
        rows.features.push_back(int32_t(feature));
    }

    bool has_repetition(std::size_t first) {
        sorted_.assign(rows.features.begin() + std::ptrdiff_t(first), rows.features.end());
        std::sort(sorted_.begin(), sorted_.end());
        return std::adjacent_find(sorted_.begin(), sorted_.end()) != sorted_.end();
    }
    void remove_repetitions(std::size_t first) {
        auto kept = rows.features.begin() + std::ptrdiff_t(first);
        for (auto next = kept; next != rows.features.end(); ++next)
            if (std::find(rows.features.begin() + std::ptrdiff_t(first), kept, *next) == kept) *kept++ = *next;
        rows.features.erase(kept, rows.features.end());
    }
    [[noreturn]] void fail_at_repetition() const {
        fail_value(here() + " names a feature twice: a key with a number is called like a key with '=' and its text");
    }

    const Number& number_;
    Py_ssize_t sentence_ = 0, token_ = 0;
    OneKind kind_{"a dict, or a list or set of str"};
    std::string name_;
    std::vector<std::string_view> names_;
    std::vector<int32_t> sorted_;
};

template <class Number>
nb::tuple read_named(nb::handle X, const Number& number) {
    NamedTokens<Number> tokens(number);
    tokens.read(X);
    return nb::make_tuple(to_numpy(std::move(tokens.starts)), rows_tuple(std::move(tokens.rows)));
}

// After an error nothing has been learnt.
nb::tuple learn_names(Dictionary& names, nb::handle X) {
    const uint32_t before = names.size();
    try {
        return read_named(X, [&](std::string_view name) { return names.insert(name); });
    } catch (...) {
        names.truncate(before);
        throw;
    }
}

nb::tuple encode_names(const Dictionary& names, nb::handle X) {
    return read_named(X, [&](std::string_view name) { return names.find(name); });
}

nb::list all_words(const Dictionary& dictionary) {
    nb::list out;
    for (uint32_t number = 0; number < dictionary.size(); ++number)
        out.append(nb::str(dictionary[number].data(), dictionary[number].size()));
    return out;
}

std::string word_numbered(const Dictionary& dictionary, int64_t number) {
    if (number < 0 || number >= dictionary.size())
        throw nb::index_error(
            ("there is no number " + std::to_string(number) + "; there are " + std::to_string(dictionary.size()))
                .c_str());
    return std::string(dictionary[uint32_t(number)]);
}

}  // namespace

void bind_names(nb::module_& m) {
    nb::class_<Dictionary>(m, "Dictionary")
        .def(nb::init<>())
        .def(
            "__init__",
            [](Dictionary* self, Vector<uint8_t> text, Vector<int64_t> ends) {
                new (self) Dictionary(dictionary_of(text, ends));
            },
            "text"_a.noconvert(), "ends"_a.noconvert())
        .def("__getstate__", &dictionary_arrays)
        .def("__setstate__",
             [](Dictionary& self, const std::pair<Vector<uint8_t>, Vector<int64_t>>& arrays) {
                 new (&self) Dictionary(dictionary_of(arrays.first, arrays.second));
             })
        .def("__len__", &Dictionary::size)
        .def("__getitem__", &word_numbered, "number"_a)
        .def("words", &all_words)
        .def("arrays", &dictionary_arrays)
        .def("learn_names", &learn_names, "X"_a)
        .def("encode_names", &encode_names, "X"_a);
}
