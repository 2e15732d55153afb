// A device that fails: the receivers of the error, and its words.
#include "tests/gpu/streams/rig.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace poseidon;
using namespace poseidon::test;
using gpu::simulated::fault_kind;

namespace {

/// The error of a run, "" if there is none.
std::string failure_of(const std::function<void()>& run, std::optional<gpu::error_kind> kind) {
  try {
    run();
  } catch (const gpu::error& e) {
    if (kind) CHECK(e.kind() == *kind);
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("faults: a kernel that goes wrong on the device ends the run with its reason") {
  for (const std::uint64_t after : {0, 7, 40}) {
    rig r(gpu::simulated::machine_options{});
    gpu::simulated::inject(fault_kind::kernel, after);
    CHECK(failure_of([&] { (void)r.train(5); }, gpu::error_kind::lost)
              .find("illegal memory access") != std::string::npos);
  }
}

TEST_CASE("faults: so does a copy, in either direction") {
  for (const std::uint64_t after : {0, 1, 5, 16}) {
    rig r(gpu::simulated::machine_options{});
    gpu::simulated::inject(fault_kind::copy, after);
    CHECK(failure_of([&] { (void)r.train(5); }, gpu::error_kind::lost) != "");
  }
}

TEST_CASE("faults: a lost device stays lost, and what was on it is given back all the same") {
  {
    rig r(gpu::simulated::machine_options{});
    gpu::simulated::inject(fault_kind::kernel);
    CHECK(failure_of([&] { (void)r.train(1); }, gpu::error_kind::lost) != "");
    CHECK(failure_of([&] { r.copy().finish(); }, gpu::error_kind::lost) != "");
  }
  CHECK(gpu::simulated::counted().device_bytes == 0);
  CHECK(gpu::simulated::counted().pinned_bytes == 0);
}

TEST_CASE(
    "faults: a net that does not fit says how much it wants, what there is, and what to try") {
  gpu::simulated::machine_options small;
  small.devices = {{8 << 10}};
  const auto text = failure_of([&] { rig r(small); }, gpu::error_kind::memory);
  CHECK(text.find("GPU 0 (simulated): ") != std::string::npos);
  CHECK(text.find("are wanted for the blobs of net \"small\", the largest of which is \"conv\"") !=
        std::string::npos);
  CHECK(text.find("are free. Try a smaller batch_size") != std::string::npos);
}

TEST_CASE("faults: a layer that finds no memory for itself is named") {
  std::set<std::string> said;
  for (std::uint64_t after = 0; after < 40; ++after) {
    const auto text = failure_of(
        [&] {
          gpu::simulated::configure({});
          gpu::simulated::inject(fault_kind::allocation, after);
          rig r(std::nullopt);
        },
        gpu::error_kind::memory);
    if (text.empty()) break;
    CHECK(text.find(" are wanted for ") != std::string::npos);
    CHECK(text.find(" are free. ") != std::string::npos);
    said.insert(text.substr(text.find("for ") + 4));
    CHECK(gpu::simulated::counted().device_bytes == 0);
  }
  CHECK(said.size() > 4);
}
