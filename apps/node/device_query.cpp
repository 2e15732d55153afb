// apps/node/device_query.cpp - poseidon-node device-query: what this machine offers to --devices.
#include "apps/cli.hpp"
#include "apps/node/caffe_options.hpp"
#include "apps/node/devices.hpp"
#include "apps/node/verbs.hpp"
#include "apps/plugin/open_plugin.hpp"
#include "apps/run_app.hpp"
#include "apps/terminal/reporter.hpp"
#include "cpu/cpu_device.hpp"
#include "models/words.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace poseidon::app {

namespace {

/// `caffe` has these for other verbs.
const std::vector<std::string> not_for_query{"--solver",        "--model",         "--weights",
                                             "--snapshot",      "--iterations",    "--phase",
                                             "--sigint-effect", "--sighup-effect", "--log-dir"};

/// The text behind `key` and a colon in a file like /proc/cpuinfo; empty if the key is missing.
std::string field(const char* path, const std::string& key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const auto from = line.find_first_not_of(" \t", line.find(':') + 1);
    return from == std::string::npos ? "" : line.substr(from);
  }
  return "";
}

/// The lines of the GPUs in `asked`, as --devices takes them; all for "all".
std::vector<std::string> only(const std::string& asked, const std::vector<std::string>& all) {
  if (asked == "all") return all;
  const auto ordinals = parse_gpus(asked);
  if (!ordinals)
    throw spec_error("--gpu " + asked + ": expected all, or GPUs by number, as in 0,1.");
  std::vector<std::string> lines;
  for (const auto g : *ordinals) {
    if (static_cast<std::size_t>(g) >= all.size())
      throw std::runtime_error("--gpu " + asked + ": there is no GPU " + std::to_string(g) +
                               "; this machine has " + plural(all.size(), "GPU") + ".");
    lines.push_back(all[static_cast<std::size_t>(g)]);
  }
  return lines;
}

void query(const std::filesystem::path& plugin, const std::string& asked, reporter& out) {
  const auto cpu = make_cpu_device()->describe();
  const auto processor = field("/proc/cpuinfo", "model name");
  const auto memory = field("/proc/meminfo", "MemTotal");
  const auto available = field("/proc/meminfo", "MemAvailable");
  const auto cores = std::max(1u, std::thread::hardware_concurrency());
  out.result(cpu);
  out.result("  processor  " + processor);
  out.result(std::string("  --math     ") +
             (multiplies_bf16_tiles() ? "fp32, bf16, in tiles (AMX)"
              : multiplies_bf16()     ? "fp32, bf16"
                                      : "fp32; this processor does not multiply bfloat16"));
  out.result("  memory     " + memory + ", available " + available);
  out.result("  replicas   cpu:1 to cpu:" + std::to_string(cores) +
             " make sense; cpu alone chooses for the net");
  std::vector<std::string> gpus;
  std::string no_gpu;
  try {
    gpus = open_plugin(plugin).list();
  } catch (const std::runtime_error& e) {
    no_gpu = e.what();
    out.result("no GPU: " + no_gpu);
  }
  gpus = only(asked, gpus);
  for (const auto& line : gpus) out.result(line);
  json_event e("devices");
  e.text("cpu", cpu).text("processor", processor).count("cores", cores);
  e.text("memory", memory).text("memory_available", available);
  out.event(e.texts("gpus", gpus).text("no_gpu", no_gpu));
}

}  // namespace

int device_query_verb(int argc, char** argv) {
  command_line app("Says which devices --devices can name on this machine.",
                   "poseidon-node device-query");
  std::filesystem::path plugin;
  app.add_option("--gpu-plugin", plugin, "the plug-in that brings GPUs")
      ->check(CLI::ExistingFile)
      ->default_str("libposeidon_gpu.so beside this program");
  std::string asked = "all";
  app.add_option("--gpu", asked, "as in Caffe: all GPUs, or only these, by number, as in 0,1");
  output_words words;
  app.add_flag("--json", words.json, "an object for programs instead of text for people");
  add_ignored_options(app, not_for_query);
  if (!parsed(app, argc, argv)) return 0;
  reporter out(words);
  out.until_end([&] { query(plugin, asked, out); }, exit_code_of);
  return 0;
}

}  // namespace poseidon::app
