// data/list_file.hpp - text files that list other files.
#pragma once
#include <filesystem>
#include <fstream>
#include <string>

namespace poseidon {

/// `of`: what is listed, for messages. `hint`: a sentence for somebody who names a folder or a device instead.
/// Errors   std::runtime_error: there is no such file, or something else stands there.
[[nodiscard]] std::ifstream open_list(const std::filesystem::path& list, const std::string& of,
                                      const std::string& hint = {});

}  // namespace poseidon
