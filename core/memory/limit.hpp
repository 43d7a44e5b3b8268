// The error where a limit on memory does not leave room for what cannot be done without.
#pragma once

#include <stdexcept>

namespace larank {

struct MemoryLimitError : std::length_error {
    using std::length_error::length_error;
};

}  // namespace larank
