// The shared libraries of this process, among them those that multiply matrices.
#pragma once

#include <string>
#include <vector>

#if defined(__linux__)
#include <link.h>
#endif

namespace larank {

// Their paths as the loader knows them; empty where it cannot be asked. Nothing of Python is called while it holds its
// lock.
inline std::vector<std::string> loaded_libraries() {
    std::vector<std::string> paths;
#if defined(__linux__)
    dl_iterate_phdr(
        [](dl_phdr_info* library, std::size_t, void* found) {
            if (library->dlpi_name && *library->dlpi_name)
                static_cast<std::vector<std::string>*>(found)->push_back(library->dlpi_name);
            return 0;
        },
        &paths);
#endif
    return paths;
}

}  // namespace larank
