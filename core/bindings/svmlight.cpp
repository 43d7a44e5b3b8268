// Reading and writing the svmlight format, and decimal numbers.
#include "bindings/arrays.hpp"

#include <nanobind/stl/string.h>

#include "data/svmlight.hpp"

namespace {

larank::IndexBase index_base_named(const std::string& name) {
    if (name == "zero") return larank::IndexBase::zero;
    if (name == "one") return larank::IndexBase::one;
    if (name == "detect") return larank::IndexBase::detect;
    throw std::invalid_argument("unknown index base '" + name + "'");
}

std::string_view view_of(const nb::bytes& text) { return {text.c_str(), text.size()}; }

template <class T>
nb::ndarray<nb::numpy, T> handed_over(larank::Growing<T>& values) {
    const std::size_t size = values.size();
    T* block = values.release();
    return nb::ndarray<nb::numpy, T>(block, {size}, nb::capsule(block, [](void* p) noexcept { std::free(p); }));
}

template <class T>
void bind_svmlight_of(nb::module_& m, const char* reader_name) {
    using Reader = larank::SvmlightReader<T>;
    nb::class_<Reader>(m, reader_name)
        .def(
            "__init__",
            [](Reader* self, const std::string& base, int64_t features) {
                new (self) Reader(index_base_named(base), features);
            },
            nb::kw_only(), "base"_a, "features"_a)
        .def_prop_ro("lines", &Reader::lines)
        .def(
            "feed",
            [](Reader& self, const nb::bytes& text) {
                const std::string_view view = view_of(text);
                nb::gil_scoped_release release;
                self.feed(view);
            },
            "text"_a)
        .def("finish", [](Reader& self) {
            self.finish();
            const std::size_t starts = self.starts().size(), rows = self.row_lines().size();
            return nb::make_tuple(handed_over(self.values()), handed_over(self.indices()),
                                  to_numpy(std::move(self.starts()), {starts}), self.features(),
                                  nb::bytes(self.labels().data(), self.labels().size()),
                                  to_numpy(std::move(self.row_lines()), {rows}));
        });
    m.def(
        "svmlight_text",
        [](Vector<T> values, Vector<int32_t> indices, Vector<int64_t> starts, int64_t first, int64_t last,
           const nb::bytes& labels, int32_t base) {
            std::string text;
            {
                const std::string_view view = view_of(labels);
                nb::gil_scoped_release release;
                text = larank::svmlight_text(values.data(), indices.data(), starts.data(), first, last, view, base);
            }
            return nb::bytes(text.data(), text.size());
        },
        "values"_a.noconvert(), "indices"_a.noconvert(), "starts"_a.noconvert(), "first"_a, "last"_a, "labels"_a,
        "base"_a);
}

template <class T>
nb::object decimals(const nb::bytes& text) {
    std::vector<T> numbers;
    const std::string_view view = view_of(text);
    {
        nb::gil_scoped_release release;
        if (!larank::read_decimals(view, numbers)) numbers.clear();
    }
    const std::size_t count = numbers.size();
    if (count == 0 && !view.empty()) return nb::none();
    return nb::cast(to_numpy(std::move(numbers), {count}));
}

nb::object label_numbers(const nb::bytes& text) {
    larank::LabelNumbers labels;
    if (!labels.read(view_of(text))) return nb::none();
    const std::size_t integers = labels.integers.size(), reals = labels.reals.size();
    if (reals) return nb::cast(to_numpy(std::move(labels.reals), {reals}));
    return nb::cast(to_numpy(std::move(labels.integers), {integers}));
}

}  // namespace

void bind_svmlight(nb::module_& m) {
    bind_svmlight_of<float>(m, "SvmlightReader32");
    bind_svmlight_of<double>(m, "SvmlightReader64");
    m.def("decimals32", &decimals<float>, "text"_a);
    m.def("decimals64", &decimals<double>, "text"_a);
    m.def("label_numbers", &label_numbers, "text"_a);
}
