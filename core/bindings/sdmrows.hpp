// What the sessions on the rows of a linear multiclass SVM share: labels, options, and coefficients in and out.
#pragma once

#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "bindings/arrays.hpp"
#include "bindings/choices.hpp"
#include "linear/sdmrows.hpp"

// Values, classes and where those of each example begin.
using CoefficientArrays =
    std::tuple<nb::ndarray<nb::numpy, double>, nb::ndarray<nb::numpy, int32_t>, nb::ndarray<nb::numpy, int64_t>>;

// `entries(i)` is the list of example i.
template <class Entries>
CoefficientArrays coefficient_arrays(int64_t examples, Entries entries) {
    std::vector<int64_t> starts{0};
    std::vector<int32_t> classes;
    std::vector<double> values;
    for (int64_t i = 0; i < examples; ++i) {
        for (const auto& entry : entries(i)) {
            classes.push_back(entry.label);
            values.push_back(double(entry.value));
        }
        starts.push_back(int64_t(classes.size()));
    }
    return {to_numpy(std::move(values)), to_numpy(std::move(classes)), to_numpy(std::move(starts))};
}

template <class Solver>
void seed_rows(Solver& solver, Vector<double> values, Vector<int32_t> classes, Vector<int64_t> starts) {
    const int64_t rows = solver.coefficients().examples();
    const int64_t* const first = starts.data();
    if (int64_t(starts.shape(0)) != rows + 1 || classes.shape(0) != values.shape(0) || first[0] != 0 ||
        first[rows] != int64_t(values.shape(0)) || !std::is_sorted(first, first + rows + 1))
        throw std::invalid_argument("starts must ascend from 0 to the number of values, one per example and one more");
    if (std::any_of(classes.data(), classes.data() + classes.shape(0),
                    [&](int32_t label) { return label < 0 || label >= solver.options().classes; }))
        throw std::invalid_argument("classes must count from 0 to the number of classes less one");
    for (int64_t i = 0; i < rows; ++i) {
        const int64_t from = first[i];
        solver.seed(i, classes.data() + from, values.data() + from, first[i + 1] - from);
    }
}

inline const int32_t* checked_labels(Vector<int32_t> labels, Vector<double> costs, Vector<double> rest_costs,
                                     int64_t rows, const larank::SdmOptions& options) {
    if (int64_t(labels.shape(0)) != rows || int64_t(costs.shape(0)) != rows || int64_t(rest_costs.shape(0)) != rows)
        throw std::invalid_argument("labels and costs must have one entry per row of X");
    for (int64_t i = 0; i < rows; ++i)
        if (labels.data()[i] < 0 || labels.data()[i] >= options.classes)
            throw std::invalid_argument("labels must count from 0 to the number of classes less one");
    return labels.data();
}

inline larank::SdmOptions sdm_options(const std::string& formulation, int64_t classes, double epsilon, bool shrinking,
                                      bool cooling, uint64_t seed, int64_t threads = 1) {
    if (threads < 1) throw std::invalid_argument("threads must be at least 1, got " + std::to_string(threads));
    return {named<larank::Formulation>(formulation), classes, epsilon, shrinking, cooling, seed, threads};
}
