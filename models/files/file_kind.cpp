#include "models/files/file_kind.hpp"

namespace poseidon {

std::string kind_if_no_file(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  switch (fs::status(path, ignored).type()) {
    case fs::file_type::directory:
      return "a folder";
    case fs::file_type::block:
    case fs::file_type::character:
      return "a device";
    case fs::file_type::fifo:
      return "a FIFO";
    case fs::file_type::socket:
      return "a socket";
    default:
      return "";
  }
}

}  // namespace poseidon
