// Sentences of text, from Python and from files.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings/arrays.hpp"
#include "bindings/walking.hpp"
#include "text/conll.hpp"

namespace {

using larank::Dictionary;
using larank::Sentences;

// Sentences of str (one column) or of tuples of str.
class TextTokens {
  public:
    explicit TextTokens(std::size_t columns) : block(columns) {}

    Sentences block;

    void read(nb::handle X) {
        OneKind kind("a str or a tuple of str");
        walk(
            X,
            [&](PyObject* token, Py_ssize_t i, Py_ssize_t t) {
                const bool is_text = PyUnicode_Check(token);
                kind.check(is_text ? 0 : PyTuple_Check(token) ? 1 : -1, token, i, t);
                is_text ? add_text(token, i, t) : add_tuple(token, i, t);
            },
            [&] { block.end_sentence(); });
    }

  private:
    void add_text(PyObject* token, Py_ssize_t i, Py_ssize_t t) {
        if (block.columns != 1) fail_value(x_at(i, t) + " is a str, which is one column; " + expected());
        block.append_cell(utf8_of(token, [&] { return x_at(i, t); }));
    }
    void add_tuple(PyObject* token, Py_ssize_t i, Py_ssize_t t) {
        const Py_ssize_t size = PyTuple_GET_SIZE(token);
        if (std::size_t(size) != block.columns)
            fail_value(x_at(i, t) + " is a tuple of length " + std::to_string(size) + "; " + expected());
        for (Py_ssize_t c = 0; c < size; ++c) {
            PyObject* cell = PyTuple_GET_ITEM(token, c);
            const auto where = [&] { return x_at(i, t) + "[" + std::to_string(c) + "]"; };
            if (!PyUnicode_Check(cell)) fail_type(where() + " is " + a_kind_of(cell) + "; expected a str");
            block.append_cell(utf8_of(cell, where));
        }
    }
    std::string expected() const {
        if (block.columns == 1) return "expected a str, or a tuple of one str";
        return "expected a tuple of " + std::to_string(block.columns) + " str, one per column";
    }
};

Sentences sentences_of(nb::handle X, std::size_t columns) {
    if (columns == 0) throw std::invalid_argument("columns must be at least 1");
    TextTokens tokens(columns);
    tokens.read(X);
    return std::move(tokens.block);
}

// Equal cells share one str.
nb::list lists_of(const Sentences& block) {
    Dictionary cells;
    std::vector<nb::object> made;
    const auto text = [&](std::size_t token, std::size_t column) {
        const std::string_view cell = block.cell(token, column);
        const uint32_t number = cells.insert(cell);
        if (number == made.size()) made.push_back(nb::str(cell.data(), cell.size()));
        return made[number];
    };
    nb::list out;
    for (std::size_t i = 0; i < block.size(); ++i) {
        nb::list sentence;
        for (std::size_t t = std::size_t(block.starts[i]); t < std::size_t(block.starts[i + 1]); ++t) {
            if (block.columns == 1) {
                sentence.append(text(t, 0));
                continue;
            }
            nb::object token = nb::steal(PyTuple_New(Py_ssize_t(block.columns)));
            for (std::size_t c = 0; c < block.columns; ++c)
                PyTuple_SET_ITEM(token.ptr(), Py_ssize_t(c), text(t, c).release().ptr());
            sentence.append(token);
        }
        out.append(sentence);
    }
    return out;
}

void bind_sentences(nb::module_& m) {
    nb::class_<Sentences>(m, "Sentences")
        .def("__len__", &Sentences::size)
        .def_ro("n_columns", &Sentences::columns)
        .def_prop_ro("n_tokens", &Sentences::tokens)
        .def_prop_ro(
            "starts", [](const Sentences& self) { return to_numpy(std::vector(self.starts)); }, nb::rv_policy::move)
        .def_prop_ro(
            "labels", [](const Sentences& self) { return to_numpy(std::vector(self.labels)); }, nb::rv_policy::move)
        .def_prop_ro(
            "lines", [](const Sentences& self) { return to_numpy(std::vector(self.lines)); }, nb::rv_policy::move)
        .def("sentences", &lists_of);
    m.def("sentences_of", &sentences_of, "X"_a, "columns"_a);
}

// Reads on, without the GIL, and gives the blocks that are complete.
template <class Step>
std::vector<Sentences> blocks_after(larank::ConllReader& reader, const Step& step) {
    nb::gil_scoped_release release;
    step();
    return reader.take();
}

void bind_conll(nb::module_& m) {
    using Reader = larank::ConllReader;
    nb::class_<Reader>(m, "ConllReader")
        .def(
            "__init__",
            [](Reader* self, Dictionary& labels, std::optional<int> label, bool splits_at_tabs,
               const std::string& comment, std::size_t expected_cells, std::size_t most_cells,
               std::size_t block_tokens) {
                new (self) Reader({label, splits_at_tabs, comment, expected_cells, most_cells}, block_tokens, labels);
            },
            nb::keep_alive<1, 2>(), "labels"_a, nb::kw_only(), "label"_a.none(), "splits_at_tabs"_a, "comment"_a,
            "expected_cells"_a, "most_cells"_a, "block_tokens"_a)
        .def_prop_ro("lines", &Reader::lines)
        .def(
            "feed",
            [](Reader& self, const nb::bytes& bytes) {
                const std::string_view view(bytes.c_str(), bytes.size());
                return blocks_after(self, [&] { self.feed(view); });
            },
            "bytes"_a)
        .def("finish", [](Reader& self) { return blocks_after(self, [&] { self.finish(); }); });
}

}  // namespace

void bind_tokens(nb::module_& m) {
    bind_sentences(m);
    bind_conll(m);
}
