#include "data/source_path.hpp"

namespace poseidon {
namespace {
namespace fs = std::filesystem;

fs::path start_of(const source_options& options) {
  if (!options.data_root.empty()) return options.data_root;
  return options.directory.empty() ? fs::path(".") : options.directory;
}
}  // namespace

fs::path locate(const std::string& name, const source_options& options) {
  const fs::path path(name);
  return path.is_absolute() ? path : start_of(options) / path;
}

std::string where_it_starts(const std::string& name, const source_options& options) {
  if (fs::path(name).is_absolute() || fs::exists(locate(name, options))) return "";
  return " Relative names start at \"" +
         fs::absolute(start_of(options)).lexically_normal().string() +
         "\" (--data-root changes that). poseidon-data makes data sets and mean images.";
}

}  // namespace poseidon
