#include "apps/node/devices.hpp"

#include "apps/node/given_options.hpp"
#include "apps/node/option_binder.hpp"
#include "apps/plugin/open_plugin.hpp"
#include "cpu/cpu_device.hpp"
#include "models/spec/spec_file.hpp"
#include "models/words.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>

namespace poseidon::app {

std::uint32_t parse_devices(const std::string& text) {
  if (text == "cpu") return 0;
  if (text.rfind("cpu:", 0) == 0) {
    try {
      const auto n = std::stoul(text.substr(4));
      if (n >= 1 && n <= 1024) return static_cast<std::uint32_t>(n);
    } catch (const std::exception&) {
    }
  }
  throw spec_error(
      "--devices " + text +
      ": expected cpu, cpu:R with R replicas from 1 to 1024, or GPUs by number (0,1); to train "
      "also replay:FILE.");
}

namespace {

/// "a,,b" as "a", "", "b".
std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

}  // namespace

std::optional<std::vector<int>> parse_gpus(const std::string& text) {
  if (text.find_first_not_of("0123456789,") != std::string::npos || text.empty())
    return std::nullopt;
  std::vector<int> out;
  for (const auto& part : split(text, ',')) {
    int ordinal = -1;
    const auto [end, failed] = std::from_chars(part.data(), part.data() + part.size(), ordinal);
    if (failed != std::errc{} || end != part.data() + part.size())
      throw spec_error("--devices " + text +
                       ": expected the numbers of GPUs with commas between them, as in 0,1.");
    if (std::find(out.begin(), out.end(), ordinal) != out.end())
      throw spec_error("--devices " + text + ": GPU " + std::to_string(ordinal) +
                       " is named twice. --logical-devices N makes N devices of the GPUs that "
                       "are named.");
    out.push_back(ordinal);
  }
  return out;
}

void add_device_options(option_binder& add, device_words& words) {
  add.value("--devices", words.devices);
  add.value("--gpu", words.gpu);
  add.value("--readers", words.readers)->check(CLI::Range(1, 256));
  add.value("--logical-devices", words.gpus.logical)->check(CLI::Range(1, 64));
  add.value("--math", words.gpus.math);
  add.value("--layout", words.gpus.layout);
  add.flag("--autotune", words.gpus.autotune);
  add.value("--gpu-plugin", words.gpus.plugin);
}

namespace {

/// --gpu in the words of --devices.
std::string devices_of_gpu(const device_words& words) {
  if (words.gpu != "all") {
    if (!parse_gpus(words.gpu))
      throw spec_error("--gpu " + words.gpu +
                       ": expected all, or GPUs by number, as in 0,1. Without --gpu the CPU "
                       "computes.");
    return words.gpu;
  }
  try {
    std::string all;
    for (std::size_t g = 0; g < open_plugin(words.gpus.plugin).list().size(); ++g)
      all += (g == 0 ? "" : ",") + std::to_string(g);
    if (!all.empty()) return all;
  } catch (const std::runtime_error& e) {
    throw std::runtime_error(std::string("--gpu all: ") + e.what());
  }
  throw std::runtime_error("--gpu all: this machine has no GPU.");
}

}  // namespace

std::string gpu_option_of(const CLI::App& app) {
  for (const auto& row : option_rows()) {
    const std::string name(name_of(row));
    if (row.of_gpus && app.count(name) > 0) return name;
  }
  return {};
}

spec_error belongs_to_gpus(const std::string& option) {
  return spec_error(option + " belongs to GPUs, as in --devices 0.");
}

namespace {

void require_math_of_processors(const std::string& math) {
  if (math == "tf32") throw belongs_to_gpus("--math tf32");
}

}  // namespace

gpu_request gpus_from(gpu_request gpus, const std::vector<int>& ordinals, const std::string& text) {
  gpus.ordinals = ordinals;
  gpus.text = text;
  if (gpus.logical != 0 && gpus.logical < gpus.ordinals.size())
    throw spec_error("--logical-devices " + std::to_string(gpus.logical) + " are fewer than the " +
                     std::to_string(gpus.ordinals.size()) + " GPUs of --devices.");
  return gpus;
}

std::optional<gpu_request> gpus_of(const CLI::App& app, const device_words& words) {
  given_options(app).require_rules();
  const auto devices = app.count("--gpu") > 0 ? devices_of_gpu(words) : words.devices;
  const auto ordinals = parse_gpus(devices);
  if (ordinals) return gpus_from(words.gpus, *ordinals, devices);
  if (const auto option = gpu_option_of(app); !option.empty()) throw belongs_to_gpus(option);
  require_math_of_processors(words.gpus.math);
  return std::nullopt;
}

std::shared_ptr<device> make_processor(const std::string& math) {
  require_math_of_processors(math);
  return make_cpu_device(math == "bf16" ? cpu_math::bf16 : cpu_math::fp32);
}

std::shared_ptr<device> make_gpu_device(const gpu_request& request, std::shared_ptr<device> cpu) {
  plugin_choice choice;
  const auto devices = request.logical != 0 ? request.logical : request.ordinals.size();
  for (std::size_t i = 0; i < devices; ++i)
    choice.ordinals.push_back(request.ordinals[i % request.ordinals.size()]);
  choice.math = request.math == "fp32"   ? device_math::fp32
                : request.math == "bf16" ? device_math::bf16
                                         : device_math::tf32;
  choice.deterministic = choice.math == device_math::fp32;
  choice.layout = request.layout == "nchw"   ? device_layout::nchw
                  : request.layout == "nhwc" ? device_layout::nhwc
                                             : device_layout::automatic;
  choice.autotune = request.autotune;
  return open_devices(request.plugin, choice, std::move(cpu), "--devices " + request.text);
}

namespace {

double number_of(const std::string& devices, const std::string& word, const char* what,
                 double least, double most) {
  const auto text = word.substr(word.find('=') + 1);
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = failed == std::errc{} && end == text.data() + text.size();
  if (is_number && value >= least && value <= most) return value;
  throw spec_error("--devices " + devices + ": " + word + " is no " + what + ".");
}

void take_replay_word(replay_request& r, const std::string& devices, const std::string& word) {
  if (word == "fifo") {
    r.fifo = true;
  } else if (word.starts_with("time=")) {
    r.times =
        number_of(devices, word,
                  "factor by which layers take longer than recorded, a number above 0", 1e-9, 1e9);
  } else if (word.starts_with("bytes=")) {
    r.bytes = number_of(devices, word,
                        "share of the values that is kept, a number from 0.000001 to 1", 1e-6, 1);
  } else {
    const std::vector<std::string> known{"time", "bytes", "fifo"};
    throw spec_error("--devices " + devices + ": behind the profile there may be time=X, bytes=S " +
                     "and fifo, with commas, and \"" + word + "\" is none of them." +
                     did_you_mean(word.substr(0, word.find('=')), known));
  }
}

}  // namespace

std::optional<replay_request> parse_replay(const std::string& text) {
  const std::string kind = "replay";
  if (!text.starts_with(kind)) return std::nullopt;
  auto words = split(text.substr(kind.size()), ',');
  if (words.front().size() < 2 || words.front()[0] != ':')
    throw spec_error("--devices " + text +
                     ": which profile? Give --devices replay:FILE, a file that poseidon-node time "
                     "--profile-out writes; models/zoo has some.");
  replay_request r;
  r.profile = words.front().substr(1);
  for (auto word = words.begin() + 1; word != words.end(); ++word) take_replay_word(r, text, *word);
  return r;
}

}  // namespace poseidon::app
