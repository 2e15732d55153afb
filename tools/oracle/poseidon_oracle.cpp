// poseidon-oracle - runs every case of folders with reference results of BVLC Caffe and compares.
//
//   poseidon-oracle DIR... [--only PREFIX] [--gpu N [--gpu-plugin FILE] [--nhwc]]
//
// With --gpu, GPU N computes the layers and the solvers in strict float32 through the plug-in FILE, by default
// libposeidon_gpu.so in the program's folder; with --nhwc images are NHWC on it. Cases about files are then left out,
// because they use no device.
// One line per failing case, the skipped ones counted by layer type, and at the end, alone on a
// line, "N passed, N failed, N skipped". Exit code 0 if none failed, 1 if one did, 2 for wrong use.
#include "apps/cli.hpp"
#include "apps/plugin/open_plugin.hpp"
#include "apps/run_app.hpp"
#include "cpu/cpu_device.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/oracle/cases.hpp"

namespace {

namespace fs = std::filesystem;
using poseidon::oracle::outcome;
using poseidon::oracle::result;

struct options {
  std::vector<fs::path> folders;
  std::string only;
  std::optional<int> gpu;
  fs::path plugin;
  bool nhwc = false;
};

struct tally {
  std::size_t passed = 0, failed = 0, skipped = 0;
  std::map<std::string, std::size_t> skipped_types;

  void add(const result& r) {
    switch (r.what) {
      case outcome::passed:
        ++passed;
        if (!r.detail.empty()) std::cout << "passed " << r.name << ": " << r.detail << "\n";
        break;
      case outcome::skipped:
        ++skipped, ++skipped_types[r.detail];
        break;
      case outcome::failed:
        ++failed;
        std::cout << "FAILED " << r.name << ": " << r.detail << "\n";
        break;
    }
  }
};

/// False after --help and --version.
/// Errors   spec_error for wrong use.
bool read_options(int argc, char** argv, options& to) {
  using poseidon::spec_error;
  poseidon::app::command_line app(
      "Runs every case of folders with reference results of BVLC Caffe and compares.",
      "poseidon-oracle");
  int gpu = 0;
  app.add_option("folder", to.folders, "folders with a MANIFEST.json");
  app.add_option("--only", to.only, "the beginning of the cases' names, as in layers/conv");
  app.add_option("--gpu", gpu, "the GPU that computes the layers and solvers, in strict float32")
      ->check(CLI::Range(0, 9999))
      ->default_str("the CPU computes");
  app.add_option("--gpu-plugin", to.plugin, "with --gpu: the plug-in")
      ->default_str("libposeidon_gpu.so beside this program");
  app.add_flag("--nhwc", to.nhwc, "with --gpu: images are NHWC on it");
  app.footer("Exit codes: 0 no case failed, 1 one did, 2 wrong use.");
  if (!poseidon::app::parsed(app, argc, argv)) return false;
  if (app.count("--gpu") > 0) to.gpu = gpu;
  if (to.folders.empty())
    throw spec_error("usage: poseidon-oracle FOLDER...: which folders? --help has the options.");
  if (!to.plugin.empty() && !to.gpu)
    throw spec_error("--gpu-plugin without --gpu: which of its GPUs?");
  if (to.nhwc && !to.gpu) throw spec_error("--nhwc is for GPUs: --gpu is missing.");
  if (!to.plugin.empty()) to.plugin = fs::absolute(to.plugin);  // solvers run in their own folders
  for (const auto& folder : to.folders)
    if (!fs::exists(folder / "MANIFEST.json"))
      throw spec_error(folder.string() + ": there is no MANIFEST.json in it.");
  return true;
}

bool is_wanted(const options& o, const std::string& name) {
  return name.rfind(o.only, 0) == 0;
}

/// Every case on a device of its own, as a node has one.
poseidon::oracle::device_maker maker_of(const options& o) {
  if (!o.gpu) return [] { return poseidon::make_cpu_device(); };
  poseidon::plugin_choice choice;
  choice.ordinals = {*o.gpu};
  choice.math = poseidon::device_math::fp32;
  choice.deterministic = true;
  if (o.nhwc) choice.layout = poseidon::device_layout::nhwc;
  return [o, choice] {
    return poseidon::app::open_devices(o.plugin, choice, poseidon::make_cpu_device(),
                                       "--gpu " + std::to_string(*o.gpu));
  };
}

int run(int argc, char** argv) {
  options o;
  using runner = std::function<std::vector<result>(const fs::path&)>;
  poseidon::oracle::device_maker make;
  try {
    if (!read_options(argc, argv, o)) return 0;
    make = maker_of(o);
    (void)make();  // a missing GPU is reported once
  } catch (const std::exception& e) {
    return std::cerr << e.what() << "\n", 2;
  }
  const auto with = [&](auto run) {
    return [&make, run](const fs::path& f) { return run(f, make); };
  };
  // A part is run if the prefix may name cases of it.
  const std::vector<std::pair<std::string, runner>> parts{
      {"layers/", with(poseidon::oracle::run_layer_cases)},
      {"datalayers/", poseidon::oracle::run_data_cases},
      {"solvers/", with(poseidon::oracle::run_solver_cases)},
      {"formats/", poseidon::oracle::run_format_cases},
      {"formats/errors/", poseidon::oracle::run_error_cases}};
  tally sum;
  for (const auto& folder : o.folders)
    for (const auto& [part, run] : parts) {
      if (!is_wanted(o, part) && o.only.rfind(part, 0) != 0) continue;
      if (o.gpu && part != "layers/" && part != "solvers/") continue;
      // A case runs in its own folder; the next one starts in this folder again.
      const auto here = fs::current_path();
      const auto results = run(fs::absolute(folder));
      fs::current_path(here);
      for (const auto& r : results)
        if (is_wanted(o, r.name)) sum.add(r);
    }
  for (const auto& [type, count] : sum.skipped_types)
    std::cout << "skipped " << type << ": " << count << "\n";
  std::cout << sum.passed << " passed, " << sum.failed << " failed, " << sum.skipped << " skipped"
            << std::endl;
  return sum.failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return poseidon::app::run_app(argc, argv, run);
}
