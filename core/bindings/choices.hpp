// The names by which Python chooses among the values of an enum, and the error for a name that is none of them.
#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "linear/losses.hpp"
#include "simd/units.hpp"

// A specialisation has the argument's name and the names of its values.
template <class Choice>
struct Choices;

template <>
struct Choices<larank::Formulation> {
    static constexpr const char* argument = "formulation";
    static constexpr std::array names{std::pair{"crammer-singer", larank::Formulation::crammer_singer},
                                      std::pair{"weston-watkins", larank::Formulation::weston_watkins},
                                      std::pair{"one-vs-rest", larank::Formulation::one_vs_rest}};
};

template <>
struct Choices<larank::Loss> {
    static constexpr const char* argument = "loss";
    static constexpr std::array names{
        std::pair{"hinge", larank::Loss::hinge}, std::pair{"squared_hinge", larank::Loss::squared_hinge},
        std::pair{"smoothed_hinge", larank::Loss::smoothed_hinge}, std::pair{"log_loss", larank::Loss::log_loss},
        std::pair{"modified_huber", larank::Loss::modified_huber}};
};

template <>
struct Choices<larank::LatticeNumber> {
    static constexpr const char* argument = "number";
    static constexpr std::array names{std::pair{"byte", larank::LatticeNumber::byte},
                                      std::pair{"half-word", larank::LatticeNumber::half_word}};
};

template <class Choice>
Choice named(const std::string& name) {
    std::string known;
    for (const auto& [text, choice] : Choices<Choice>::names) {
        if (name == text) return choice;
        known += (known.empty() ? "'" : ", '") + std::string(text) + "'";
    }
    throw std::invalid_argument(std::string(Choices<Choice>::argument) + " must be one of " + known + ", got '" + name +
                                "'");
}
