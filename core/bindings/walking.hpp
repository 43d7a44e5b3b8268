// Sequences of tokens in Python, walked through without making more objects of them. Errors say where: X[3][0].
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

namespace nb = nanobind;

inline std::string x_at(Py_ssize_t sentence) { return "X[" + std::to_string(sentence) + "]"; }
inline std::string x_at(Py_ssize_t sentence, Py_ssize_t token) {
    return x_at(sentence) + "[" + std::to_string(token) + "]";
}

[[noreturn]] inline void fail_value(const std::string& why) { throw nb::value_error(why.c_str()); }
[[noreturn]] inline void fail_type(const std::string& why) { throw nb::type_error(why.c_str()); }

inline std::string kind_of(PyObject* object) { return Py_TYPE(object)->tp_name; }
inline std::string a_kind_of(PyObject* object) {
    const std::string kind = kind_of(object);
    return (std::string("aeiouAEIOU").find(kind[0]) == std::string::npos ? "a " : "an ") + kind;
}

// A list or tuple as it is, another iterable as a list of what it gives.
inline nb::object walkable(PyObject* object, const std::string& where, const char* wanted) {
    const bool is_text = PyUnicode_Check(object) || PyBytes_Check(object);
    PyObject* found = is_text || PyDict_Check(object) || PyAnySet_Check(object) ? nullptr : PySequence_Fast(object, "");
    if (found) return nb::steal(found);
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
    PyErr_Clear();
    fail_type(where + " is " + a_kind_of(object) + "; " + wanted);
}

// Calls visit(token, sentence number, token number) for all tokens of X, and end_sentence() after each sentence.
template <class Visit, class End>
void walk(nb::handle X, const Visit& visit, const End& end_sentence) {
    const nb::object sentences = walkable(X.ptr(), "X", "expected a list of sequences of tokens");
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sentences.ptr()); ++i) {
        const nb::object tokens = walkable(PySequence_Fast_GET_ITEM(sentences.ptr(), i), x_at(i),
                                           "expected a sequence of tokens, such as a list");
        const Py_ssize_t length = PySequence_Fast_GET_SIZE(tokens.ptr());
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

// All tokens must be of the kind of the first one.
class OneKind {
  public:
    explicit OneKind(const char* wanted) : wanted_(wanted) {}

    // `kind` numbers the kinds that are wanted; -1: it is another one.
    void check(int kind, PyObject* token, Py_ssize_t i, Py_ssize_t t) {
        if (kind == first_ && kind >= 0) return;
        const std::string here = x_at(i, t) + " is " + a_kind_of(token);
        if (first_ >= 0) fail_type(here + ", but " + first_token_ + "; all tokens must be of one kind");
        if (kind < 0) fail_type(here + "; expected " + wanted_);
        first_ = kind;
        first_token_ = here;
    }

  private:
    const char* wanted_;
    int first_ = -1;
    std::string first_token_;  // where it is, and of what kind
};
