// tests/folder.hpp - a folder of its own for one test, gone when the test is.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace poseidon::test {

class temporary_folder {
 public:
  temporary_folder() {
    auto name = (place() / "poseidon-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder: " + name);
    path_ = name;
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
    return path_ / name;
  }

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }

 private:
  /// In memory, where it has room: a node waits until the disk has what it writes (fsync), and these tests write thousands of files. TMPDIR says
  /// another place.
  static std::filesystem::path place() {
    const std::filesystem::path memory = "/dev/shm";
    constexpr std::uintmax_t room = 1u << 30;  // bytes
    std::error_code error;
    const auto space = std::filesystem::space(memory, error);
    const bool is_asked = std::getenv("TMPDIR") != nullptr;
    if (is_asked || error || space.available < room || ::access(memory.c_str(), W_OK) != 0)
      return std::filesystem::temp_directory_path();
    return memory;
  }

  std::filesystem::path path_;
};

}  // namespace poseidon::test
