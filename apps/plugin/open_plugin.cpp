#include "apps/plugin/open_plugin.hpp"

#include <dlfcn.h>
#include <stdexcept>
#include <string>

namespace poseidon::app {
namespace {

constexpr const char* library_name = "libposeidon_gpu.so";
constexpr const char* or_cpu = " Or train with --devices cpu.";

std::string last_error() {
  const char* text = dlerror();
  return text == nullptr ? "unknown error" : text;
}

/// Without this check the process would spend half a second and 200 MB on libraries that then find no driver.
void require_driver() {
  if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr) return;
  throw std::runtime_error("this machine has no NVIDIA driver (" + last_error() +
                           "). Install one for CUDA 13 or newer." + or_cpu);
}

std::filesystem::path find_library() {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::filesystem::path places[] = {here / library_name,
                                          here / ".." / "lib" / "poseidon" / library_name};
  std::string looked;
  for (const auto& place : places) {
    std::error_code ignored;
    if (std::filesystem::exists(place, ignored)) return place;
    looked += (looked.empty() ? "" : ", ") + place.lexically_normal().string();
  }
  throw std::runtime_error(
      "this build has no GPU plug-in: looked for " + looked +
      ". Build it where CUDA 12.8 or newer, cuBLAS and cuDNN 9.8 or newer are installed (cmake "
      "-DPOSEIDON_GPU=ON says what is missing)." +
      or_cpu);
}

}  // namespace

const device_plugin& open_plugin(const std::filesystem::path& file) {
  if (file.empty()) require_driver();
  const auto path = std::filesystem::absolute(file.empty() ? find_library() : file);
  // Never closed: CUDA registers functions that run when threads end.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const auto why = last_error();
    const bool missing = why.find("cannot open shared object file") != std::string::npos;
    throw std::runtime_error(
        "the GPU plug-in " + path.string() + " does not load: " + why +
        (missing ? ". Put the folders of CUDA's libraries (libcublas, libcudnn) into "
                   "LD_LIBRARY_PATH."
                 : ". Is it of another build than this program?") +
        or_cpu);
  }
  auto* const entry = reinterpret_cast<device_plugin_entry*>(dlsym(library, device_plugin_symbol));
  if (entry == nullptr)
    throw std::runtime_error(path.string() + " is no GPU plug-in of Poseidon: it has no symbol " +
                             device_plugin_symbol + ".");
  const device_plugin* const plugin = entry();
  if (plugin->contract != device_contract || std::string(plugin->version) != POSEIDON_VERSION)
    throw std::runtime_error("the GPU plug-in " + path.string() + " is of Poseidon " +
                             plugin->version + ", contract " + std::to_string(plugin->contract) +
                             "; this program is " + POSEIDON_VERSION + ", contract " +
                             std::to_string(device_contract) + ". Take both from one build.");
  return *plugin;
}

std::shared_ptr<device> open_devices(const std::filesystem::path& file, const plugin_choice& choice,
                                     std::shared_ptr<device> host, const std::string& asked) {
  try {
    return open_plugin(file).make(choice, std::move(host));
  } catch (const std::runtime_error& e) {
    throw std::runtime_error(asked + ": " + e.what());
  }
}

}  // namespace poseidon::app
