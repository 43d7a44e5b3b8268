// A linear model that is worse than w = 0 is shrunk until it is not: the classes that it decides for stay the same.
//
// The objective is convex along the model, so a factor that is small enough is as good as 0, and one that is 16 times
// too small still has a sixteenth of what can be gained.
#pragma once

#include <cstddef>

namespace larank {

constexpr double shrinking = 1.0 / 16;
constexpr std::size_t most_shrinkings = 16;
constexpr double shrinking_rounding = 1e-12;  // a factor whose objective is above that of 0 by this much is as good

}  // namespace larank
