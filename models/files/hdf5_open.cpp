// models/files/hdf5_open.cpp - finds and opens libposeidon_hdf5.so: part of hdf5_plugin.hpp and of hdf5_file.hpp.
#include "models/files/hdf5_file.hpp"
#include "models/files/hdf5_plugin.hpp"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace poseidon::hdf5 {

namespace {

namespace fs = std::filesystem;

constexpr const char* what_to_do =
    " It belongs to each build and each package of Poseidon (tools/build makes it): install this "
    "one again, whole.";

/// Of the program or library that this code is linked into. The kernel knows its path, wherever the process is now; the dynamic linker
/// knows that which it was given.
fs::path own_folder() {
  const auto here = reinterpret_cast<std::uintptr_t>(&own_folder);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    int path = 0;
    const auto read = std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n",
                                  &begin, &end, &path);
    if (read == 2 && begin <= here && here < end)
      return fs::path(line.substr(static_cast<std::size_t>(path))).parent_path();
  }
  return fs::read_symlink("/proc/self/exe").parent_path();
}

/// Beside what uses it or in lib/ beside bin/ as in builds, wheels and bundles, and in a folder of plug-ins where it is installed.
fs::path find_plugin() {
  const auto here = own_folder();
  std::string looked;
  for (const auto* place : {".", "../lib", "poseidon", "../lib/poseidon"}) {
    const auto file = (here / place / plugin_name).lexically_normal();
    std::error_code ignored;
    if (fs::exists(file, ignored)) return file;
    looked += (looked.empty() ? "" : ", ") + file.string();
  }
  throw std::runtime_error(std::string("HDF5 files need the plug-in ") + plugin_name +
                           ", which is not there: looked for " + looked + "." + what_to_do);
}

const table& open_plugin() {
  const auto path = find_plugin();
  const auto fail = [&path](const std::string& why) {
    throw std::runtime_error("HDF5 files need the plug-in " + path.string() + ", which " + why);
  };
  void* const opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    const char* why = dlerror();
    fail(std::string("does not load: ") + (why == nullptr ? "unknown error" : why) +
         ". Is a library missing that comes with HDF5 (Debian: libhdf5-103-1)?" + what_to_do);
  }
  auto* const entry = reinterpret_cast<plugin_entry*>(dlsym(opened, plugin_symbol));
  if (entry == nullptr) fail(std::string("has no symbol ") + plugin_symbol + "." + what_to_do);
  const auto* const given = entry();
  if (given == nullptr) fail("could not begin HDF5's library. Is memory missing?");
  if (given->bytes != sizeof(table) || std::string(given->version) != POSEIDON_VERSION)
    fail(std::string("is of Poseidon ") + given->version + " with a table of " +
         std::to_string(given->bytes) + " bytes; this program is of " + POSEIDON_VERSION +
         " with one of " + std::to_string(sizeof(table)) + "." + what_to_do);
  return *given;
}

}  // namespace

const table& library() {
  static const table& opened = open_plugin();  // tried again where it failed
  return opened;
}

}  // namespace poseidon::hdf5

namespace poseidon {

void need_hdf5(const std::string& whose) {
  try {
    (void)hdf5::library();
  } catch (const std::runtime_error& e) {
    throw std::runtime_error(whose + ": " + e.what());
  }
}

}  // namespace poseidon
