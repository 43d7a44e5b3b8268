// A linear model that is worse than w = 0 is shrunk until it is not: the classes that it predicts stay the same.
//
// The objective is convex along the model, so a factor that is small enough is as good as 0, and one that is 16 times
// too small still has a sixteenth of what can be gained.
#pragma once

#include <cstddef>

namespace larank {

constexpr double shrinking = 1.0 / 16;
constexpr std::size_t most_shrinkings = 16;
constexpr double shrinking_rounding = 1e-12;  // relative difference to the objective of w = 0 that is rounding

}  // namespace larank
