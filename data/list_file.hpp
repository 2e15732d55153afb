// data/list_file.hpp - text files that list other files.
#pragma once
#include <filesystem>
#include <fstream>
#include <string>

namespace poseidon {

/// For a line that may be meant as a comment.
inline constexpr const char* no_comments =
    "A # begins no comment in a list, here as in Caffe: remove it and what it comments.";

/// `of`: what is listed, for messages. `hint`: a sentence for somebody who names a folder or a device instead.
/// Errors   std::runtime_error: there is no such file, or something else stands there.
[[nodiscard]] std::ifstream open_list(const std::filesystem::path& list, const std::string& of,
                                      const std::string& hint = {});

}  // namespace poseidon
