// The support table as Python sees it, out of every session and into one; and the error of the limit on memory.
#include <stdexcept>

#include "bindings/arrays.hpp"
#include "kernel/support.hpp"
#include "memory/limit.hpp"

namespace {

using larank::SupportArrays;

template <class Iterator>
void check_different(Iterator first, Iterator last, const char* otherwise) {
    std::vector<typename Iterator::value_type> sorted(first, last);
    std::sort(sorted.begin(), sorted.end());
    if (!sorted.empty() && (sorted.front() < 0 || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()))
        throw std::invalid_argument(otherwise);
}

void check(const SupportArrays& table) {
    const std::size_t patterns = table.ids.size();
    for (const std::size_t length : {table.labels.size(), table.costs.size(), table.diagonal.size()})
        if (length != patterns) throw std::invalid_argument("ids, labels, costs and diagonal must be equally long");
    bool is_ordered = table.starts.size() == patterns + 1 && table.starts.front() == 0;
    for (std::size_t n = 0; is_ordered && n < patterns; ++n) is_ordered = table.starts[n] <= table.starts[n + 1];
    if (!is_ordered || table.starts.back() != int64_t(table.coefficients.size()) ||
        table.columns.size() != table.coefficients.size())
        throw std::invalid_argument("starts must ascend from 0 to the number of coefficients and columns");
    for (const int32_t label : table.labels)
        if (label < 0) throw std::invalid_argument("labels must not be negative");
    if (!are_finite(table.costs) || !are_finite(table.diagonal) || !are_finite(table.coefficients))
        throw std::invalid_argument("costs, diagonal and coefficients must be finite");
    if (std::any_of(table.costs.begin(), table.costs.end(), [](double cost) { return cost < 0; }))
        throw std::invalid_argument("costs must not be negative");
    check_different(table.ids.begin(), table.ids.end(), "ids must be different and not negative");
    for (std::size_t n = 0; n < patterns; ++n)
        check_different(table.columns.begin() + table.starts[n], table.columns.begin() + table.starts[n + 1],
                        "the columns of a pattern must be different and not negative");
}

template <class T>
void bind_array(nb::class_<SupportArrays>& bound, const char* name, std::vector<T> SupportArrays::* member) {
    bound.def_prop_ro(
        name,
        [member](SupportArrays& table) {
            std::vector<T>& values = table.*member;
            return nb::ndarray<nb::numpy, T, nb::ndim<1>>(values.data(), {values.size()});
        },
        nb::rv_policy::reference_internal);
}

}  // namespace

void bind_support(nb::module_& m) {
    nb::exception<larank::MemoryLimitError>(m, "MemoryLimitError", PyExc_ValueError);
    nb::class_<SupportArrays> bound(m, "SupportTable");
    bound.def(
        "__init__",
        [](SupportArrays* self, Vector<int64_t> ids, Vector<int32_t> labels, Vector<double> costs,
           Vector<double> diagonal, Vector<double> coefficients, Vector<int32_t> columns, Vector<int64_t> starts) {
            SupportArrays table{{},
                                copied(ids),
                                copied(labels),
                                copied(costs),
                                copied(diagonal),
                                copied(coefficients),
                                copied(columns),
                                copied(starts)};
            check(table);
            for (std::size_t n = 0; n < table.ids.size(); ++n) table.slots.push_back(int32_t(n));
            new (self) SupportArrays(std::move(table));
        },
        nb::kw_only(), "ids"_a.noconvert(), "labels"_a.noconvert(), "costs"_a.noconvert(), "diagonal"_a.noconvert(),
        "coefficients"_a.noconvert(), "columns"_a.noconvert(), "starts"_a.noconvert());
    bind_array(bound, "slots", &SupportArrays::slots);
    bind_array(bound, "ids", &SupportArrays::ids);
    bind_array(bound, "labels", &SupportArrays::labels);
    bind_array(bound, "costs", &SupportArrays::costs);
    bind_array(bound, "diagonal", &SupportArrays::diagonal);
    bind_array(bound, "coefficients", &SupportArrays::coefficients);
    bind_array(bound, "columns", &SupportArrays::columns);
    bind_array(bound, "starts", &SupportArrays::starts);
}
