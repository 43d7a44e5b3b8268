// The exception of a step that is to be taken on numbers that are not finite.
//
// Callers check kernel values, costs and scales beforehand, so it means that products of them have overflowed. It is a
// std::domain_error, which Python sees as a ValueError.
#pragma once

#include <stdexcept>

namespace larank {

struct NotFinite : std::domain_error {
    NotFinite()
        : std::domain_error(
              "X and C must be of a size that can be computed with, but gradients have overflowed in "
              "training; scale X, and choose C, kernel parameters and weights nearer to one") {}
};

}  // namespace larank
