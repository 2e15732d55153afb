#include "models/files/hdf5_append.hpp"

#include "models/files/hdf5_library.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace poseidon {

using namespace hdf5;

hdf5_appender::hdf5_appender(const std::filesystem::path& path) : name_(path.string()) {
  const silence quiet;
  const auto access = without_locks();
  file_ = hold<H5Fclose>(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
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
  const auto properties = hold<H5Pclose>(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data());
  const auto space =
      hold<H5Sclose>(H5Screate_simple(static_cast<int>(chunk.size()), first.data(), most.data()));
  grown made{hold<H5Dclose>(H5Dcreate2(file_.get(), dataset.c_str(), H5T_IEEE_F32LE, space.get(),
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
  if (H5Dset_extent(held.get(), all.data()) < 0) fail(dataset);
  const auto file_space = hold<H5Sclose>(H5Dget_space(held.get()));
  H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, start.data(), nullptr, added.data(),
                      nullptr);
  const auto memory =
      hold<H5Sclose>(H5Screate_simple(static_cast<int>(added.size()), added.data(), nullptr));
  if (H5Dwrite(held.get(), H5T_NATIVE_FLOAT, memory.get(), file_space.get(), H5P_DEFAULT,
               values.data()) < 0 ||
      H5Fflush(file_.get(), H5F_SCOPE_LOCAL) < 0)
    fail(dataset);
}

}  // namespace poseidon
