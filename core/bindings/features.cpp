// Features made by templates.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/choices.hpp"
#include "bindings/dictionaries.hpp"
#include "bindings/lists.hpp"
#include "text/templates.hpp"

template <>
struct Choices<larank::Form> {
    static constexpr const char* argument = "form";
    static constexpr std::array names{
        std::pair{"whole", larank::Form::whole},   std::pair{"lower", larank::Form::lower},
        std::pair{"prefix", larank::Form::prefix}, std::pair{"suffix", larank::Form::suffix},
        std::pair{"shape", larank::Form::shape},   std::pair{"shortshape", larank::Form::short_shape}};
};

namespace {

using larank::Dictionary;
using larank::Sentences;
using larank::TemplateTable;

const larank::CharacterTables python_characters{
    [](uint32_t c) { return Py_UNICODE_ISUPPER(Py_UCS4(c)) != 0; },
    [](uint32_t c) { return Py_UNICODE_ISALPHA(Py_UCS4(c)) != 0; },
    [](uint32_t c) { return Py_UNICODE_ISDECIMAL(Py_UCS4(c)) != 0; },
    [](uint32_t c) { return uint32_t(Py_UNICODE_TOLOWER(Py_UCS4(c))); },
};

using ViewSpec = std::tuple<std::string, std::size_t, std::size_t>;
using AtomSpec = std::pair<std::size_t, int>;

TemplateTable template_table(const nb::sequence& views, const nb::sequence& templates, std::size_t columns) {
    std::vector<larank::View> seen;
    for (const auto& [form, length, column] : items_of<ViewSpec>(views))
        seen.push_back({named<larank::Form>(form), length, column});
    std::vector<std::vector<larank::Atom>> made;
    for (const nb::sequence& atoms : items_of<nb::sequence>(templates)) {
        made.emplace_back();
        for (const auto& [view, offset] : items_of<AtomSpec>(atoms)) made.back().push_back({view, offset});
    }
    return TemplateTable(std::move(seen), std::move(made), columns, python_characters);
}

// What `read` finds, which may wait for another thread that learns, without the GIL.
template <class Read>
auto in_turn(Read read) {
    const nb::gil_scoped_release release;
    return read();
}

nb::list template_origins(const TemplateTable& table, Vector<int64_t> features) {
    nb::list out;
    const std::vector<int64_t> wanted(features.data(), features.data() + features.shape(0));
    for (const TemplateTable::Origin& origin : in_turn([&] { return table.origins(wanted); }))
        out.append(nb::make_tuple(origin.template_number, nb::cast(origin.values)));
    return out;
}

nb::tuple template_state(const TemplateTable& table) {
    TemplateTable::State state = in_turn([&] { return table.state(); });
    nb::list words, values;
    for (const Dictionary& dictionary : state.words) words.append(dictionary_arrays(dictionary));
    for (const Dictionary& dictionary : state.values) values.append(dictionary_arrays(dictionary));
    return nb::make_tuple(words, values, to_numpy(std::move(state.templates)), to_numpy(std::move(state.tuples)));
}

using DictionaryArrays = std::pair<Vector<uint8_t>, Vector<int64_t>>;

void restore_templates(TemplateTable& table, const nb::sequence& words, const nb::sequence& values,
                       Vector<uint16_t> templates, Vector<uint32_t> tuples) {
    TemplateTable::State state;
    for (const auto& [text, ends] : items_of<DictionaryArrays>(words)) state.words.push_back(dictionary_of(text, ends));
    for (const auto& [text, ends] : items_of<DictionaryArrays>(values))
        state.values.push_back(dictionary_of(text, ends));
    state.templates.assign(templates.data(), templates.data() + templates.shape(0));
    state.tuples.assign(tuples.data(), tuples.data() + tuples.shape(0));
    table.restore(std::move(state));
}

template <class Table, class Method>
nb::tuple expand(Table& table, const Sentences& block, Method method) {
    return rows_tuple(in_turn([&] { return (table.*method)(block); }));
}

}  // namespace

void bind_features(nb::module_& m) {
    nb::class_<TemplateTable>(m, "TemplateTable")
        .def(
            "__init__",
            [](TemplateTable* self, const nb::sequence& views, const nb::sequence& templates, std::size_t columns) {
                new (self) TemplateTable(template_table(views, templates, columns));
            },
            "views"_a, "templates"_a, "columns"_a)
        .def_prop_ro("n_features", [](const TemplateTable& self) { return in_turn([&] { return self.features(); }); })
        .def(
            "learn",
            [](TemplateTable& self, const Sentences& block) { return expand(self, block, &TemplateTable::learn); },
            "block"_a)
        .def(
            "encode",
            [](const TemplateTable& self, const Sentences& block) {
                return expand(self, block, &TemplateTable::encode);
            },
            "block"_a)
        .def("origins", &template_origins, "features"_a.noconvert())
        .def("state", &template_state)
        .def("restore", &restore_templates, "words"_a, "values"_a, "templates"_a.noconvert(), "tuples"_a.noconvert());
}
