// poseidon-oracle - runs every case of folders with reference results of BVLC Caffe and compares.
//
//   poseidon-oracle DIR... [--only PREFIX] [--gpu N [--gpu-plugin FILE] [--nhwc]]
//
// With --gpu, GPU N computes the layers and the solvers in strict float32 through the plug-in FILE, by default
// libposeidon_gpu.so in the program's folder; with --nhwc images are NHWC on it. Cases about files are then left out,
// because they use no device.
// One line per failing case, the skipped ones counted by layer type, and at the end, alone on a
// line, "N passed, N failed, N skipped". Exit code 0 if none failed, 1 if one did, 2 for wrong use.
#include "apps/oracle/cases.hpp"
#include "apps/plugin/open_plugin.hpp"
#include "cpu/cpu_device.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

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

constexpr const char* usage =
    "usage: poseidon-oracle DIR... [--only PREFIX] [--gpu N [--gpu-plugin FILE] [--nhwc]]\n";

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

/// Returns  false for wrong use, after printing what is wrong.
bool read_options(int argc, char** argv, options& to) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--only") {
      if (++i == argc)
        return std::cerr << "--only needs the beginning of case names, as in layers/conv\n", false;
      to.only = argv[i];
    } else if (word == "--gpu") {
      const std::string number = ++i == argc ? "" : argv[i];
      if (number.empty() || number.size() > 4 ||
          number.find_first_not_of("0123456789") != std::string::npos)
        return std::cerr << "--gpu needs the number of a GPU, as in --gpu 0\n", false;
      to.gpu = std::stoi(number);
    } else if (word == "--gpu-plugin") {
      if (++i == argc) return std::cerr << "--gpu-plugin needs a file\n", false;
      to.plugin = fs::absolute(argv[i]);  // solvers run in their own folders
    } else if (word == "--nhwc") {
      to.nhwc = true;
    } else if (word.rfind("--", 0) == 0) {
      return std::cerr << "unknown option " << word << "\n" << usage, false;
    } else {
      to.folders.emplace_back(word);
    }
  }
  if (to.folders.empty()) return std::cerr << usage, false;
  if (!to.plugin.empty() && !to.gpu)
    return std::cerr << "--gpu-plugin without --gpu: which of its GPUs?\n", false;
  if (to.nhwc && !to.gpu) return std::cerr << "--nhwc is for GPUs: --gpu is missing\n", false;
  for (const auto& folder : to.folders)
    if (!fs::exists(folder / "MANIFEST.json"))
      return std::cerr << folder.string() << ": there is no MANIFEST.json in it\n", false;
  return true;
}

bool is_wanted(const options& o, const std::string& name) {
  return name.rfind(o.only, 0) == 0;
}

/// Every case on a device of its own, as a node has one.
poseidon::oracle::device_maker maker_of(const options& o) {
  if (!o.gpu) return poseidon::make_cpu_device;
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

}  // namespace

int main(int argc, char** argv) {
  options o;
  if (!read_options(argc, argv, o)) return 2;
  using runner = std::function<std::vector<result>(const fs::path&)>;
  poseidon::oracle::device_maker make;
  try {
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
