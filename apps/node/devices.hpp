// apps/node/devices.hpp - command line options that poseidon-node's verbs share.
#pragma once
#include "models/device/device.hpp"
#include "models/spec/spec_file.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace poseidon::app {

class option_binder;

/// GPUs of this machine. `logical`: number of devices to show; 0: the number of GPUs.
struct gpu_request {
  std::vector<int> ordinals;
  std::uint32_t logical = 0;
  std::filesystem::path plugin;  ///< empty: libposeidon_gpu.so beside the program
  std::string math = "auto";     ///< also of processors, see make_processor()
  std::string layout = "auto";
  bool autotune = false;
  std::string text;  ///< as the user wrote it
};

/// --devices, the options for GPUs, and the number of reading threads.
struct device_words {
  std::string devices = "cpu";
  std::string gpu;            ///< Caffe's --gpu: "all", or as --devices names GPUs
  std::uint32_t readers = 0;  ///< 0: chosen for the device and the cores
  gpu_request gpus;
};
void add_device_options(option_binder& add, device_words& words);
/// The requested GPUs; nothing for other devices.
/// Errors   spec_error: an option of GPUs without any, options that exclude each other, fewer logical devices than GPUs, and parse_gpus()'s.
[[nodiscard]] std::optional<gpu_request> gpus_of(const CLI::App& app, const device_words& words);

/// The first option that only GPUs have, if one was given, and what is said of it where there is no GPU.
[[nodiscard]] std::string gpu_option_of(const CLI::App& app);
[[nodiscard]] spec_error belongs_to_gpus(const std::string& option);

/// These GPUs with the options in `gpus`. `text`: as the user wrote them.
/// Errors   spec_error: options that contradict each other.
[[nodiscard]] gpu_request gpus_from(gpu_request gpus, const std::vector<int>& ordinals,
                                    const std::string& text);

/// The GPUs of "0,1"; nothing for other devices.
/// Errors   spec_error for a list that is none, or names one twice.
[[nodiscard]] std::optional<std::vector<int>> parse_gpus(const std::string& text);

/// The GPUs as one device, with the CPU for what remains on the host.
/// Errors   std::runtime_error with one line that says what is missing.
[[nodiscard]] std::shared_ptr<device> make_gpu_device(const gpu_request& request,
                                                      std::shared_ptr<device> cpu);

/// This machine's processors as a device. `math`: as --math has it.
/// Errors   spec_error: only GPUs have it. std::runtime_error: this processor does not.
[[nodiscard]] std::shared_ptr<device> make_processor(const std::string& math);

/// Replicas; 0 for "cpu", which chooses for the net and the cores.
/// Errors   spec_error for anything but cpu and cpu:R.
[[nodiscard]] std::uint32_t parse_devices(const std::string& text);

/// Kernels that sleep as a profile says. The scales are of the whole cluster: the first node sends its own to the others.
struct replay_request {
  std::filesystem::path profile;
  /// Factor by which each layer takes longer than recorded.
  double times = 1;
  /// Share of each learned blob's values that is kept.
  double bytes = 1;
  /// Values are sent in the order in which they are made, and iterations do not overlap.
  bool fifo = false;
};

/// The words of replay:FILE,time=X,bytes=S,fifo; nothing for other devices.
/// Errors   spec_error: replay without a file, a word that is none, a number out of its range.
[[nodiscard]] std::optional<replay_request> parse_replay(const std::string& text);

}  // namespace poseidon::app
