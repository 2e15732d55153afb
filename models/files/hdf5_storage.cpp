#include "models/files/hdf5_storage.hpp"

#include "models/files/hdf5_library.hpp"

#include <array>
#include <cstdlib>
#include <set>
#include <unistd.h>
#include <utility>
#include <vector>

namespace poseidon::hdf5 {

namespace {

namespace fs = std::filesystem;

hdf5_handle properties_of(std::int64_t dataset) {
  return hold<&table::H5Pclose>(library().H5Dget_create_plist(dataset));
}

/// Where the library looks for a file of parts.
std::vector<fs::path> candidates(const std::string& name, const fs::path& around) {
  const fs::path file(name);
  if (file.is_absolute()) return {file, around.parent_path() / file.filename()};
  std::vector<fs::path> all{around.parent_path() / file, file};
  if (const char* prefix = std::getenv("HDF5_VDS_PREFIX")) all.insert(all.begin(), prefix / file);
  return all;
}

/// The parts of a virtual dataset, and the parts of these.
class virtual_parts {
 public:
  std::string fault(std::int64_t file, std::int64_t dataset, const fs::path& path,
                    const std::string& name) {
    const auto properties = properties_of(dataset);
    if (library().H5Pget_layout(properties.get()) != H5D_VIRTUAL) return "";
    const auto me = std::pair(path.string(), name);
    if (!around_.insert(me).second) return "is virtual and a part of itself.";
    std::size_t parts = 0;
    library().H5Pget_virtual_count(properties.get(), &parts);
    std::string found;
    for (std::size_t i = 0; i < parts && found.empty(); ++i)
      found = of_part(file, path, text_of(library().H5Pget_virtual_filename, properties.get(), i),
                      text_of(library().H5Pget_virtual_dsetname, properties.get(), i));
    around_.erase(me);
    return found;
  }

 private:
  using getter = ssize_t (*)(hid_t, std::size_t, char*, std::size_t);
  static std::string text_of(getter get, std::int64_t properties, std::size_t i) {
    const auto size = get(properties, i, nullptr, 0);
    if (size <= 0) return "";
    std::string text(static_cast<std::size_t>(size) + 1, '\0');
    get(properties, i, text.data(), text.size());
    text.pop_back();
    return text;
  }

  std::string of_part(std::int64_t file, const fs::path& path, const std::string& part,
                      const std::string& dataset) {
    // "%b" is a number: as many files or datasets as there are.
    if (part.find('%') != std::string::npos || dataset.find('%') != std::string::npos) return "";
    if (part == ".") return of_dataset(file, path, dataset);
    std::error_code ignored;
    for (const auto& at : candidates(part, path)) {
      if (!fs::exists(at, ignored)) continue;
      const auto key = std::pair(at.string(), dataset);
      if (seen_.count(key) > 0) return "";
      const auto access = without_locks();
      const auto held =
          hold<&table::H5Fclose>(library().H5Fopen(at.c_str(), library().to_read, access.get()));
      if (held.get() < 0)
        return "is virtual, and the file of a part of it, " + at.string() +
               ", cannot be opened: " + innermost_reason() + ".";
      auto fault = of_dataset(held.get(), at, dataset);
      if (fault.empty()) seen_.insert(key);
      return fault;
    }
    return "is virtual, and the file of a part of it, \"" + part +
           "\", is not there: it belongs into " +
           (path.has_parent_path() ? path.parent_path().string()
                                   : std::string("the current folder")) +
           ".";
  }

  std::string of_dataset(std::int64_t file, const fs::path& path, const std::string& name) {
    const auto held = hold<&table::H5Dclose>(library().H5Dopen2(file, name.c_str(), H5P_DEFAULT));
    if (held.get() < 0)
      return "is virtual, and a part of it, dataset \"" + name + "\" of " + path.string() +
             ", cannot be opened: " + innermost_reason() + ".";
    return fault(file, held.get(), path, name);
  }

  std::set<std::pair<std::string, std::string>> around_, seen_;
};

std::uint64_t machine_memory() {
  const auto pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGE_SIZE);
  return pages > 0 && page > 0
             ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page)
             : std::uint64_t{1} << 30;
}

}  // namespace

std::string storage_fault(const opened_dataset& d) {
  // No filter of HDF5 packs better than deflate, whose limit is 1032 to 1.
  constexpr std::uint64_t best_packing = 1032;
  std::uint64_t bytes = d.value_bytes, floats = sizeof(float);
  bool fits = true;
  for (const auto extent : d.extents) {
    fits = fits && !__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes);
    fits = fits && !__builtin_mul_overflow(floats, static_cast<std::uint64_t>(extent), &floats);
  }
  const auto properties = properties_of(d.dataset);
  const auto layout = library().H5Pget_layout(properties.get());
  if (layout == H5D_VIRTUAL)
    if (auto fault = virtual_parts().fault(d.file, d.dataset, d.path, d.name); !fault.empty())
      return fault;
  const std::uint64_t stored = library().H5Dget_storage_size(d.dataset);
  // More is not filled in: a machine whose memory is full ends programs. A virtual dataset has its values elsewhere.
  const std::uint64_t share = layout == H5D_VIRTUAL ? 1 : 4;
  const bool may_fill = layout == H5D_VIRTUAL || layout == H5D_CHUNKED || stored == 0;
  if (fits && may_fill && floats <= machine_memory() / share) return "";
  const auto most =
      library().H5Pget_nfilters(properties.get()) > 0 ? stored * best_packing : stored;
  if (fits && bytes <= most) return "";
  return "says it is " + to_string(d.extents) + " but only " + std::to_string(stored) +
         " bytes of it are stored. The file is damaged, or was not written to its end.";
}

std::string missing_filter(std::int64_t dataset) {
  const auto properties = properties_of(dataset);
  const int filters = library().H5Pget_nfilters(properties.get());
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0, config = 0;
    std::size_t values = 0;
    std::array<char, 64> name{};
    const auto id = library().H5Pget_filter2(properties.get(), static_cast<unsigned>(i), &flags,
                                             &values, nullptr, name.size(), name.data(), &config);
    if (id < 0 || library().H5Zfilter_avail(id) > 0) continue;
    name.back() = '\0';
    return "is packed with the filter " + std::to_string(id) +
           (name[0] != '\0' ? " (" + std::string(name.data()) + ")" : std::string()) +
           ", which this HDF5 library does not have. Write it again with gzip, as h5py does with "
           "compression=\"gzip\", or name a folder with the filter's plugin in HDF5_PLUGIN_PATH.";
  }
  return "";
}

}  // namespace poseidon::hdf5
