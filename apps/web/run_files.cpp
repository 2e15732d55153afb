#include "apps/web/run_files.hpp"

#include "models/files/file_kind.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <stdexcept>

namespace poseidon::web {

namespace {

namespace fs = std::filesystem;

struct found_file {
  fs::path path;
  std::string prefix;
  std::uint64_t first_clock = 0;
  fs::file_time_type written;
};

/// "lenet" and 500 of "lenet_run_from_500.json"; the clock is 0 for "lenet_run.json".
std::optional<found_file> read_name(const fs::path& path) {
  auto name = path.filename().string();
  constexpr std::string_view end = ".json", whole = "_run", part = "_run_from_";
  if (!name.ends_with(end)) return std::nullopt;
  name.resize(name.size() - end.size());
  if (name.ends_with(whole))
    return found_file{path, name.substr(0, name.size() - whole.size()), 0, {}};
  const auto at = name.rfind(part);
  if (at == std::string::npos) return std::nullopt;
  found_file found{path, name.substr(0, at), 0, {}};
  const auto* begin = name.data() + at + part.size();
  const auto* const last = name.data() + name.size();
  const auto read = std::from_chars(begin, last, found.first_clock);
  return read.ec == std::errc{} && read.ptr == last ? std::optional(found) : std::nullopt;
}

}  // namespace

fs::path run_file(const std::string& prefix, std::uint64_t first_clock) {
  return prefix + "_run" + (first_clock > 0 ? "_from_" + std::to_string(first_clock) : "") +
         ".json";
}

std::vector<fs::path> newest_run_in(const fs::path& folder) {
  std::vector<found_file> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (auto found = read_name(entry.path()); found && kind_if_no_file(entry.path()).empty()) {
      found->written = fs::last_write_time(entry.path(), ignored);
      files.push_back(std::move(*found));
    }
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.written > b.written; });
  std::vector<fs::path> paths;
  const found_file* later = nullptr;
  for (const auto& f : files) {
    if (later != nullptr && (f.prefix != later->prefix || f.first_clock >= later->first_clock))
      continue;
    paths.insert(paths.begin(), f.path);
    later = &f;
  }
  if (paths.empty())
    throw std::invalid_argument(folder.string() +
                                " has no file PREFIX_run.json. poseidon-node writes it beside the "
                                "snapshots of a run; give their folder.");
  return paths;
}

}  // namespace poseidon::web
