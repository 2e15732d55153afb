// models/files/hdf5_storage.hpp - whether the values of a dataset can be all there, before room is made for them.
#pragma once
#include "models/shape.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace poseidon::hdf5 {

/// A dataset that is open, where it stands, and what its header says of it.
struct opened_dataset {
  std::int64_t file = -1, dataset = -1;
  std::filesystem::path path;  ///< of the file
  std::string name;
  shape extents;
  std::uint64_t value_bytes = 0;
};

/// What follows `dataset "data" `, for a user; empty: nothing is wrong. A damaged header can claim any shape. What HDF5 fills in is
/// no fault: datasets and chunks that were never written have the fill value. In a virtual dataset the library does
/// so for parts that it cannot find, too; here they are a fault.
[[nodiscard]] std::string storage_fault(const opened_dataset& d);

/// Of a dataset that the library could not read: which filter it does not have. Empty: it has all.
[[nodiscard]] std::string missing_filter(std::int64_t dataset);

}  // namespace poseidon::hdf5
