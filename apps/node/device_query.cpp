// apps/node/device_query.cpp - poseidon-node device-query: what this machine offers to --devices.
#include "apps/node/devices.hpp"
#include "apps/node/verbs.hpp"
#include "apps/plugin/open_plugin.hpp"
#include "cpu/cpu_device.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace poseidon::app {

namespace {

/// What follows `key` and a colon in a file like /proc/cpuinfo; empty if it is not there.
std::string field(const char* path, const std::string& key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const auto from = line.find_first_not_of(" \t", line.find(':') + 1);
    return from == std::string::npos ? "" : line.substr(from);
  }
  return "";
}

}  // namespace

int device_query_verb(int argc, char** argv) {
  CLI::App app("Says which devices --devices can name on this machine.",
               "poseidon-node device-query");
  std::filesystem::path plugin;
  app.add_option("--gpu-plugin", plugin,
                 "the plug-in that brings GPUs, if not libposeidon_gpu.so beside this program")
      ->check(CLI::ExistingFile);
  if (!parsed(app, argc, argv)) return 0;
  std::printf("%s\n", make_cpu_device()->describe().c_str());
  std::printf("  processor  %s\n", field("/proc/cpuinfo", "model name").c_str());
  std::printf("  memory     %s, available %s\n", field("/proc/meminfo", "MemTotal").c_str(),
              field("/proc/meminfo", "MemAvailable").c_str());
  std::printf("  replicas   cpu:1 to cpu:%u make sense; cpu alone chooses for the net\n",
              std::max(1u, std::thread::hardware_concurrency()));
  try {
    for (const auto& line : open_plugin(plugin).list()) std::printf("%s\n", line.c_str());
  } catch (const std::runtime_error& e) {
    std::printf("no GPU: %s\n", e.what());
  }
  return 0;
}

}  // namespace poseidon::app
