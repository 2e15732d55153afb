// models/files/hdf5_plugin.hpp
//
// What our code uses of HDF5's library, as a table that a plug-in of ours fills in (hdf5_plugin.cc). Debian's HDF5 brings
// 29 libraries, a third of the time that a program takes to start, so only programs that meet an HDF5 file load it
// (docs/decisions/067-hdf5-plug-in.md). The plug-in is C to its users: it throws nothing and needs nothing of ours.
#pragma once
#include <cstdint>
#include <hdf5.h>

namespace poseidon::hdf5 {

// Formatted, each line of it would begin behind the end of the one before.
// clang-format off
#define POSEIDON_HDF5_FUNCTIONS(each) \
  each(H5Dclose) each(H5Dcreate2) each(H5Dget_create_plist) each(H5Dget_space) \
  each(H5Dget_storage_size) each(H5Dget_type) each(H5Dopen2) each(H5Dread) each(H5Dset_extent) \
  each(H5Dwrite) each(H5Eget_auto2) each(H5Eset_auto2) each(H5Ewalk2) each(H5Fclose) \
  each(H5Fcreate) each(H5Fflush) each(H5Fget_file_image) each(H5Fopen) each(H5Gclose) \
  each(H5Gcreate2) each(H5Gopen2) each(H5Iget_type) each(H5Lexists) each(H5Literate) \
  each(H5Oclose) each(H5Oopen) each(H5Pclose) each(H5Pcreate) each(H5Pget_filter2) \
  each(H5Pget_layout) each(H5Pget_nfilters) each(H5Pget_virtual_count) \
  each(H5Pget_virtual_dsetname) each(H5Pget_virtual_filename) each(H5Pset_chunk) \
  each(H5Pset_create_intermediate_group) each(H5Pset_fapl_core) each(H5Pset_file_image) \
  each(H5Pset_file_locking) each(H5Sclose) each(H5Screate) each(H5Screate_simple) \
  each(H5Sget_simple_extent_dims) each(H5Sget_simple_extent_npoints) each(H5Sselect_hyperslab) \
  each(H5Tclose) each(H5Tcopy) each(H5Tget_class) each(H5Tget_size) each(H5Tis_variable_str) \
  each(H5Tset_size) each(H5Zfilter_avail)
// clang-format on

/// Functions have the library's names. Types and classes of properties are variables there, which exist once it has begun.
struct table {
  const char* version;  ///< POSEIDON_VERSION of its build
  std::uint64_t bytes;  ///< of this table in its build
#define POSEIDON_HDF5_MEMBER(name) decltype(&::name) name;
  POSEIDON_HDF5_FUNCTIONS(POSEIDON_HDF5_MEMBER)
#undef POSEIDON_HDF5_MEMBER
  hid_t of_files, of_links, of_datasets;  ///< H5P_FILE_ACCESS, H5P_LINK_CREATE, H5P_DATASET_CREATE
  hid_t c_string, float32, int32, int64;  ///< in files
  hid_t our_float, our_int64;             ///< in memory
  /// H5F_ACC_RDONLY, H5F_ACC_TRUNC: macros that call the library, too.
  unsigned to_read, to_replace;
};

/// Null: the library could not begin.
using plugin_entry = const table*();
inline constexpr const char* plugin_symbol = "poseidon_hdf5_plugin";
inline constexpr const char* plugin_name = "libposeidon_hdf5.so";

/// Opens the plug-in when it is first called, and for all of the process. It is never closed, since HDF5 keeps what threads own.
/// Errors   std::runtime_error with one line: it is not there, does not load, or is of another build.
[[nodiscard]] const table& library();

}  // namespace poseidon::hdf5
