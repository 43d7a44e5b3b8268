// Reading and writing the svmlight format, and decimal numbers.
#include "bindings/arrays.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <optional>
#include <tuple>
#include <variant>

#include "bindings/choices.hpp"
#include "data/svmlight.hpp"

template <>
struct Choices<larank::IndexBase> {
    static constexpr const char* argument = "base";
    static constexpr std::array names{std::pair{"zero", larank::IndexBase::zero},
                                      std::pair{"one", larank::IndexBase::one},
                                      std::pair{"detect", larank::IndexBase::detect}};
};

namespace {

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
            [](Reader* self, const std::string& base, int64_t features, std::optional<int64_t> block_bytes) {
                new (self) Reader(named<larank::IndexBase>(base), features, block_bytes);
            },
            nb::kw_only(), "base"_a, "features"_a, "block_bytes"_a = nb::none())
        .def_prop_ro("lines", &Reader::lines)
        .def(
            "feed",
            [](Reader& self, const nb::bytes& text, std::size_t start) {
                const std::string_view view = view_of(text);
                nb::gil_scoped_release release;
                return start + self.feed(view.substr(start));
            },
            "text"_a, "start"_a = 0)
        .def("take", [](Reader& self) {
            larank::SvmlightRows<T> rows;
            {
                nb::gil_scoped_release release;
                rows = self.take();
            }
            return std::tuple{handed_over(rows.values),
                              handed_over(rows.indices),
                              to_numpy(std::move(rows.starts)),
                              rows.features,
                              nb::bytes(rows.labels.data(), rows.labels.size()),
                              to_numpy(std::move(rows.lines))};
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
std::optional<nb::ndarray<nb::numpy, T>> decimals(const nb::bytes& text) {
    std::vector<T> numbers;
    const std::string_view view = view_of(text);
    {
        nb::gil_scoped_release release;
        if (!larank::read_decimals(view, numbers)) numbers.clear();
    }
    if (numbers.empty() && !view.empty()) return std::nullopt;
    return to_numpy(std::move(numbers));
}

using Numbers = std::variant<nb::ndarray<nb::numpy, int64_t>, nb::ndarray<nb::numpy, double>>;

std::optional<Numbers> label_numbers(const nb::bytes& text) {
    larank::LabelNumbers labels;
    const std::string_view view = view_of(text);
    bool are_numbers;
    {
        nb::gil_scoped_release release;
        are_numbers = labels.read(view);
    }
    if (!are_numbers) return std::nullopt;
    if (!labels.reals.empty()) return to_numpy(std::move(labels.reals));
    return to_numpy(std::move(labels.integers));
}

}  // namespace

void bind_svmlight(nb::module_& m) {
    bind_svmlight_of<float>(m, "SvmlightReader32");
    bind_svmlight_of<double>(m, "SvmlightReader64");
    m.def("decimals32", &decimals<float>, "text"_a);
    m.def("decimals64", &decimals<double>, "text"_a);
    m.def("label_numbers", &label_numbers, "text"_a);
}
