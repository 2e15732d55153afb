// models/files/hdf5_plugin.cc - libposeidon_hdf5.so: what hdf5_plugin.hpp says, filled in where HDF5's library is linked.
#include "models/files/hdf5_plugin.hpp"

extern "C" const poseidon::hdf5::table* poseidon_hdf5_plugin() {
  // Its own handler at exit prints pages about objects that a damaged file made it leave open. Refused where somebody else in
  // this process has begun the library before, and then it is for him to say.
  [[maybe_unused]] static const auto no_handler = H5dont_atexit();
  static const bool begun = H5open() >= 0;
  if (!begun) return nullptr;
  static const poseidon::hdf5::table table{
      .version = POSEIDON_VERSION,
      .bytes = sizeof(poseidon::hdf5::table),
#define POSEIDON_HDF5_VALUE(name) .name = &::name,
      POSEIDON_HDF5_FUNCTIONS(POSEIDON_HDF5_VALUE)
#undef POSEIDON_HDF5_VALUE
          .of_files = H5P_FILE_ACCESS,
      .of_links = H5P_LINK_CREATE,
      .of_datasets = H5P_DATASET_CREATE,
      .c_string = H5T_C_S1,
      .float32 = H5T_IEEE_F32LE,
      .int32 = H5T_STD_I32LE,
      .int64 = H5T_STD_I64LE,
      .our_float = H5T_NATIVE_FLOAT,
      .our_int64 = H5T_NATIVE_INT64,
      .to_read = H5F_ACC_RDONLY,
      .to_replace = H5F_ACC_TRUNC,
  };
  return &table;
}
