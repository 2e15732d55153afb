#include "models/files/hdf5_append.hpp"

#include "models/files/hdf5_library.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace poseidon {

using namespace hdf5;

hdf5_appender::hdf5_appender(const std::filesystem::path& path) : name_(path.string()) {
  need_hdf5(name_);
  const silence quiet;
  const auto access = without_locks();
  file_ = hold<&table::H5Fclose>(
      library().H5Fcreate(path.c_str(), library().to_replace, H5P_DEFAULT, access.get()));
  if (file_.get() < 0)
    throw std::runtime_error(name_ + ": cannot make this HDF5 file: " + innermost_reason() + ".");
}

void hdf5_appender::fail(const std::string& dataset) const {
  throw std::runtime_error(name_ + ": cannot write dataset \"" + dataset +
                           "\": " + innermost_reason() + ". Is the disk full?");
}

hdf5_appender::grown hdf5_appender::make(const std::string& dataset, const shape& extents) const {
  // A chunk holds the rows of one append, so that each chunk is written once.
  const std::vector<hsize_t> chunk(extents.begin(), extents.end());
  auto first = chunk, most = chunk;
  first[0] = 0;
  most[0] = H5S_UNLIMITED;
  const auto properties = hold<&table::H5Pclose>(library().H5Pcreate(library().of_datasets));
  library().H5Pset_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data());
  const auto space = hold<&table::H5Sclose>(
      library().H5Screate_simple(static_cast<int>(chunk.size()), first.data(), most.data()));
  grown made{hold<&table::H5Dclose>(
                 library().H5Dcreate2(file_.get(), dataset.c_str(), library().float32, space.get(),
                                      H5P_DEFAULT, properties.get(), H5P_DEFAULT)),
             extents};
  if (made.dataset.get() < 0) fail(dataset);
  made.extents[0] = 0;
  return made;
}

void hdf5_appender::append(const std::string& dataset, const shape& extents,
                           std::span<const float> values) {
  const silence quiet;
  if (extents.empty() || count(extents) < 1 ||
      count(extents) != static_cast<std::int64_t>(values.size()))
    throw std::invalid_argument(name_ + ": rows of " + to_string(extents) + " are not " +
                                std::to_string(values.size()) + " values");
  auto found = datasets_.find(dataset);
  if (found == datasets_.end()) found = datasets_.emplace(dataset, make(dataset, extents)).first;
  auto& [held, has] = found->second;
  if (!std::equal(has.begin() + 1, has.end(), extents.begin() + 1, extents.end()))
    throw std::invalid_argument(name_ + ": dataset \"" + dataset + "\" is " + to_string(has) +
                                " and cannot grow by " + to_string(extents));
  std::vector<hsize_t> start(extents.size(), 0);
  start[0] = static_cast<hsize_t>(has[0]);
  has[0] += extents[0];
  const std::vector<hsize_t> all(has.begin(), has.end()), added(extents.begin(), extents.end());
  if (library().H5Dset_extent(held.get(), all.data()) < 0) fail(dataset);
  const auto file_space = hold<&table::H5Sclose>(library().H5Dget_space(held.get()));
  library().H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, start.data(), nullptr,
                                added.data(), nullptr);
  const auto memory = hold<&table::H5Sclose>(
      library().H5Screate_simple(static_cast<int>(added.size()), added.data(), nullptr));
  if (library().H5Dwrite(held.get(), library().our_float, memory.get(), file_space.get(),
                         H5P_DEFAULT, values.data()) < 0 ||
      library().H5Fflush(file_.get(), H5F_SCOPE_LOCAL) < 0)
    fail(dataset);
}

}  // namespace poseidon
