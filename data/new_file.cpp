#include "data/new_file.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace poseidon {
namespace fs = std::filesystem;

new_file::new_file(fs::path name, bool replace) : name_(std::move(name)) {
  if (fs::is_directory(name_)) throw std::runtime_error(name_.string() + ": is a folder.");
  if (fs::exists(name_) && !replace)
    throw std::runtime_error(name_.string() +
                             " exists already; choose another name or pass --force.");
  if (name_.has_parent_path()) fs::create_directories(name_.parent_path());
  file_.emplace(name_, fs::path(name_.string() + ".partial"));
  check(file_->open_error(), "create it");
}

void new_file::check(int error, const char* doing) const {
  if (error == 0) return;
  std::string text = name_.string() + ": cannot " + doing + " after " +
                     std::to_string(file_->written()) + " bytes: " + std::strerror(error) + ".";
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    std::error_code unknown;
    const auto space = fs::space(partial(), unknown);
    if (!unknown) text += " That disk has " + std::to_string(space.available >> 20) + " MiB free.";
    text += " Make room and start again; nothing was left behind.";
  }
  throw std::runtime_error(text);
}

void new_file::write(std::string_view bytes) {
  check(file_->write(bytes), "write");
}

void new_file::write(std::span<const float> values) {
  write(std::string_view(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
}

void new_file::seal() {
  if (file_->fd() < 0) return;
  check(file_->sync(), "sync");
  check(file_->close(), "close");
}

void new_file::finish() {
  seal();
  if (const int error = file_->rename(); error != 0)
    throw std::runtime_error(partial().string() + ": cannot rename it: " + std::strerror(error) +
                             ".");
}

}  // namespace poseidon
