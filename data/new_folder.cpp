#include "data/record_writer.hpp"
#include "models/files/atomic_file.hpp"

#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace poseidon {
namespace {
namespace fs = std::filesystem;

/// --force may delete only a folder that holds a database and nothing else.
void require_replaceable(const fs::path& folder, new_folder::file_test is_ours) {
  if (!fs::exists(fs::symlink_status(folder))) return;
  bool ours = fs::is_directory(fs::symlink_status(folder));
  if (ours)
    for (const auto& file : fs::directory_iterator(folder))
      ours = ours && is_ours(file.path().filename());
  if (!ours)
    throw std::runtime_error(
        folder.string() +
        " holds more than a database, so it is not replaced. Choose another name.");
}
}  // namespace

new_folder::new_folder(fs::path name, bool replace, file_test is_ours)
    : name_(std::move(name)), replace_(replace) {
  while (!name_.has_filename() && name_.has_parent_path()) name_ = name_.parent_path();
  partial_ = name_.string() + ".partial";
  if (fs::exists(name_) && !replace_)
    throw std::runtime_error(name_.string() +
                             " exists already; choose another name or pass --force.");
  require_replaceable(name_, is_ours);
  require_replaceable(partial_, is_ours);
  require_replaceable(name_.string() + ".old", is_ours);
  std::error_code ignored;
  fs::remove_all(partial_, ignored);  // left by an earlier writer that was killed
  if (name_.has_parent_path()) fs::create_directories(name_.parent_path());
  fs::create_directory(partial_);
}

new_folder::~new_folder() {
  std::error_code ignored;
  fs::remove_all(partial_, ignored);
}

void new_folder::give_name() {
  std::error_code error;
  // A folder cannot be renamed onto a full one: the old one steps aside first and is deleted last.
  const fs::path old = name_.string() + ".old";
  if (replace_ && fs::exists(name_)) {
    fs::remove_all(old, error);
    fs::rename(name_, old, error);
    if (error) throw std::runtime_error(name_.string() + ": cannot replace it: " + error.message());
  }
  if (const int why = rename_durably(partial_, name_); why != 0) {
    fs::rename(old, name_, error);
    throw std::runtime_error(partial_.string() + ": cannot rename it: " + std::strerror(why));
  }
  fs::remove_all(old, error);
}

}  // namespace poseidon
