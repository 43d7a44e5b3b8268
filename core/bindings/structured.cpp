// The working sets of structured SVMs.
#include <stdexcept>
#include <string>

#include "bindings/arrays.hpp"
#include "structured/workingset.hpp"

namespace {

using larank::FeatureRows;
using larank::GramRows;
template <class Rows>
using Set = larank::StructuredWorkingSet<Rows>;
using Weights = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

// Column `read` of what the last look has found, pattern by pattern.
template <class Rows, class Value>
auto column(const Set<Rows>& set, Value larank::PatternLook::* read) {
    std::vector<Value> values;
    for (const larank::PatternLook& look : set.seen()) values.push_back(look.*read);
    return to_numpy(std::move(values));
}

template <class Rows>
void check_pattern(const Set<Rows>& set, int64_t pattern) {
    require(pattern >= 0 && pattern < set.patterns(), "there is no such pattern");
}

void check_numbers(double loss, double beta) {
    require(std::isfinite(loss) && std::isfinite(beta), "loss and beta must be finite");
}

// What both kinds have; `use` lends the set the arrays that it works on.
template <class Rows, class Use, class... Arrays, class... Names>
void bind_working_set(nb::class_<Set<Rows>>& bound, Use use, void (*)(Arrays...), Names... names) {
    using Bound = Set<Rows>;
    bound
        .def(
            "add_pattern",
            [](Bound& self, double cost) {
                require(cost >= 0 && std::isfinite(cost), "cost must be finite and not negative");
                return self.add_pattern(cost), self.patterns() - 1;
            },
            "cost"_a)
        .def(
            "advance",
            [use](Bound& self, double accuracy, double small, int64_t work, Arrays... arrays) {
                use(self, arrays...);
                const nb::gil_scoped_release release;
                return self.advance(accuracy, small, work);
            },
            "accuracy"_a, "small"_a, "work"_a, names...)
        .def(
            "look",
            [use](Bound& self, Arrays... arrays) {
                use(self, arrays...);
                const nb::gil_scoped_release release;
                self.look(0.0);
            },
            names...)
        .def_prop_ro(
            "coefficients", [](const Bound& self) { return to_numpy(std::vector<double>(self.beta())); },
            nb::rv_policy::move)
        .def_prop_ro(
            "truths", [](const Bound& self) { return column(self, &larank::PatternLook::truth); }, nb::rv_policy::move)
        .def_prop_ro(
            "best", [](const Bound& self) { return column(self, &larank::PatternLook::best); }, nb::rv_policy::move)
        .def_prop_ro(
            "worst", [](const Bound& self) { return column(self, &larank::PatternLook::worst); }, nb::rv_policy::move)
        .def_prop_ro(
            "worst_vectors", [](const Bound& self) { return column(self, &larank::PatternLook::worst_vector); },
            nb::rv_policy::move)
        .def_prop_ro("gap", &Bound::gap)
        .def_prop_ro("linear", &Bound::linear)
        .def_prop_ro("looks", &Bound::looks)
        .def_prop_ro("steps", &Bound::steps);
}

// A pattern is looked at through its vectors.
template <class Rows>
void check_vectors(const Set<Rows>& self) {
    for (int64_t p = 0; p < self.patterns(); ++p) require(!self.vectors_of(p).empty(), "every pattern needs a vector");
}

void use_weights(Set<FeatureRows>& self, Weights w) {
    check_vectors(self);
    require(int64_t(w.shape(0)) == self.rows().length(), "w must have one entry per joint feature");
    self.rows().work_on(w.data());
}

void use_scores(Set<GramRows>& self, Table<double> K, Weights scores) {
    check_vectors(self);
    require(K.shape(0) == K.shape(1) && K.shape(0) == scores.shape(0) &&
                self.rows().end_of_slots() <= int64_t(scores.shape(0)),
            "K and scores must have one row per slot");
    self.rows().work_on(K.data(), scores.data(), int64_t(scores.shape(0)));
}

int64_t add_row(Set<FeatureRows>& self, int64_t pattern, double loss, double beta, Vector<double> values,
                Vector<int64_t> columns) {
    check_pattern(self, pattern);
    check_numbers(loss, beta);
    require(are_finite(values), "values must be finite");
    require(values.shape(0) == columns.shape(0), "values and columns must be equally long");
    for (std::size_t j = 0; j < columns.shape(0); ++j)
        require(columns(j) >= 0 && columns(j) < self.rows().length(), "there is no such column");
    self.rows().add(values.data(), columns.data(), int64_t(values.shape(0)));
    self.add_vector(pattern, loss, beta);
    return self.vectors() - 1;
}

int64_t add_slot(Set<GramRows>& self, int64_t pattern, double loss, double beta, int64_t slot) {
    check_pattern(self, pattern);
    check_numbers(loss, beta);
    require(slot >= 0, "slot must not be negative");
    self.rows().add(slot);
    self.add_vector(pattern, loss, beta);
    return self.vectors() - 1;
}

}  // namespace

void bind_structured(nb::module_& m) {
    nb::class_<Set<FeatureRows>> features(m, "FeatureWorkingSet");
    features.def(nb::init<uint64_t, int64_t>(), "seed"_a, "length"_a)
        .def("add", &add_row, "pattern"_a, "loss"_a, "beta"_a, "values"_a.noconvert(), "columns"_a.noconvert())
        .def(
            "sum_up", [](Set<FeatureRows>& self, Weights w) { use_weights(self, w), self.sum_up(); },
            "w"_a.noconvert());
    bind_working_set(features, use_weights, static_cast<void (*)(Weights)>(nullptr), "w"_a.noconvert());

    nb::class_<Set<GramRows>> products(m, "GramWorkingSet");
    products.def(nb::init<uint64_t>(), "seed"_a).def("add", &add_slot, "pattern"_a, "loss"_a, "beta"_a, "slot"_a);
    bind_working_set(products, use_scores, static_cast<void (*)(Table<double>, Weights)>(nullptr), "K"_a.noconvert(),
                     "scores"_a.noconvert());
}
