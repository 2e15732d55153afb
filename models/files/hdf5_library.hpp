// models/files/hdf5_library.hpp - handles of HDF5's types, its errors, and how it is kept from printing.
#pragma once
#include "models/files/hdf5_file.hpp"
#include "models/files/hdf5_plugin.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <hdf5.h>
#include <string>

namespace poseidon::hdf5 {

static_assert(sizeof(hid_t) == sizeof(std::int64_t), "handles of HDF5 1.10 and later");

template <auto Close>
hdf5_handle hold(hid_t id) {
  return {id, [](std::int64_t held) -> int { return (library().*Close)(held); }};
}

/// By default the library prints every error of its stack to stderr, separately for each thread. Its own handler at exit
/// would print, too (hdf5_plugin.cc); hdf5_handle closes the objects that we opened.
class silence {
 public:
  silence() {
    library().H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    library().H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  silence(const silence&) = delete;
  silence& operator=(const silence&) = delete;
  ~silence() { library().H5Eset_auto2(H5E_DEFAULT, function_, data_); }

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

/// The innermost entry of the library's last error.
inline std::string innermost_reason() {
  std::string reason;
  const auto take = [](unsigned n, const H5E_error2_t* error, void* to) -> herr_t {
    if (n == 0 && error->desc != nullptr) *static_cast<std::string*>(to) = error->desc;
    return 0;
  };
  library().H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take, &reason);
  std::erase(reason, '\n');  // it ends the time of day in the middle of a reason
  return reason.empty() ? "no reason given" : reason;
}

/// Several nodes of a machine read one file, and some file systems have no locks.
inline hdf5_handle without_locks() {
  auto access = hold<&table::H5Pclose>(library().H5Pcreate(library().of_files));
  library().H5Pset_file_locking(access.get(), /*use_file_locking=*/false,
                                /*ignore_when_disabled=*/true);
  return access;
}

/// For a file in memory.
inline hdf5_handle in_memory(std::size_t grows_by) {
  auto access = hold<&table::H5Pclose>(library().H5Pcreate(library().of_files));
  library().H5Pset_fapl_core(access.get(), grows_by, /*backing_store=*/0);
  return access;
}

/// The library takes two open files in memory with the same name for one file.
inline std::string unused_name() {
  static std::atomic<std::uint64_t> files{0};
  return "in memory " + std::to_string(files++);
}

}  // namespace poseidon::hdf5
