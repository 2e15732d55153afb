// models/files/hdf5_library.hpp - handles of HDF5's types, its errors, and how it is kept from printing.
#pragma once
#include "models/files/hdf5_file.hpp"

#include <cstdint>
#include <hdf5.h>
#include <string>

namespace poseidon::hdf5 {

static_assert(sizeof(hid_t) == sizeof(std::int64_t), "handles of HDF5 1.10 and later");

template <herr_t (*Close)(hid_t)>
hdf5_handle hold(hid_t id) {
  return {id, [](std::int64_t held) -> int { return Close(held); }};
}

/// By default the library prints every error of its stack to stderr, separately for each thread. Its own handler at exit
/// prints pages about objects that a damaged file made it leave open. hdf5_handle closes the objects that we opened.
class silence {
 public:
  silence() {
    [[maybe_unused]] static const auto once = H5dont_atexit();
    H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  silence(const silence&) = delete;
  silence& operator=(const silence&) = delete;
  ~silence() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }

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
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take, &reason);
  std::erase(reason, '\n');  // it ends the time of day in the middle of a reason
  return reason.empty() ? "no reason given" : reason;
}

/// Several nodes of a machine read one file, and some file systems have no locks.
inline hdf5_handle without_locks() {
  auto access = hold<H5Pclose>(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_file_locking(access.get(), /*use_file_locking=*/false, /*ignore_when_disabled=*/true);
  return access;
}

}  // namespace poseidon::hdf5
