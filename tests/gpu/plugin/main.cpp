// tests/gpu/plugin/main.cpp - the tests of tests/gpu/layers on the GPU that a plug-in brings.
//
//   test_gpu_plugin [--gpu-plugin FILE] [DOCTEST OPTION ...]
//
// FILE: libposeidon_gpu.so beside the program, unless something else is said. Nothing of CUDA is linked. Where the
// plug-in or a GPU is missing the reason is printed and the exit code is 77, which ctest counts as skipped; with
// POSEIDON_REQUIRE_GPU=1 in the environment it is 1.
#define DOCTEST_CONFIG_IMPLEMENT
#include "apps/plugin/open_plugin.hpp"
#include "tests/gpu/layers/both_backends.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string_view>

namespace {
std::filesystem::path plugin_file;
}  // namespace

namespace poseidon::test {

std::shared_ptr<device> make_gpu(const plugin_choice& choice) {
  return app::open_devices(plugin_file, choice, make_cpu_device(), "GPU 0");
}

}  // namespace poseidon::test

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) == "--gpu-plugin") plugin_file = argv[i + 1];
  }
  try {
    (void)poseidon::test::strict_gpu({});
  } catch (const std::exception& e) {
    const char* required = std::getenv("POSEIDON_REQUIRE_GPU");
    const bool fails = required != nullptr && *required != '\0';
    std::fprintf(stderr, "%s: %s\n", fails ? "failed" : "skipped", e.what());
    return fails ? 1 : 77;
  }
  return doctest::Context(argc, argv).run();
}
