// Replicas whose gradients a device adds (device::join_gradients()): the bits, the bytes, and what goes wrong.
#include "tests/gpu/streams/several_replicas.hpp"

using namespace poseidon;
using namespace poseidon::test;
using gpu::simulated::lateness;
using nets = several_replicas;

TEST_CASE("sums: replicas give the host's bits, and those without peers are left to the host") {
  const struct {
    std::vector<int> ordinals;
    std::size_t joined;
  } cases[] = {{{0, 1}, 2}, {{0, 0}, 2}, {{0, 1, 3, 1}, 4}, {{0, 3, 0, 3}, 4},
               {{0, 2}, 1}, {{2, 0}, 1}, {{2, 2}, 2},       {{0, 1, 2, 3}, 2}};
  for (const auto& c : cases) {
    std::vector<std::vector<std::vector<float>>> wanted;
    {
      nets host(with_a_stranger(lateness::none), c.ordinals, false);
      for (std::uint64_t clock = 0; clock < 3; ++clock) {
        host.train(clock);
        wanted.push_back(host.sums());
      }
    }
    for (const lateness late : every_lateness) {
      CAPTURE(static_cast<int>(late));
      nets device(with_a_stranger(late), c.ordinals, true);
      CHECK(device.joined == c.joined);
      for (std::uint64_t clock = 0; clock < 3; ++clock) {
        device.train(clock);
        CHECK(device.sums() == wanted[clock]);
      }
    }
  }
}

TEST_CASE("sums: the bytes to the host do not grow with the number of replicas") {
  const std::vector<int> four = {0, 1, 2, 0};
  for (const std::size_t replicas : {1, 2, 3, 4}) {
    nets n(machine(lateness::none),
           {four.begin(), four.begin() + static_cast<std::ptrdiff_t>(replicas)}, true);
    n.train(0);
    const auto before = gpu::simulated::counted();
    n.train(1);
    const auto after = gpu::simulated::counted();
    CHECK(after.bytes_out - before.bytes_out == n.gradient_bytes());
    // The fourth lies on the first one's device: it is read there.
    CHECK(after.bytes_between - before.bytes_between ==
          (std::min<std::size_t>(replicas, 3) - 1) * n.gradient_bytes());
    CHECK(after.pageable_copies == before.pageable_copies);
  }
}

TEST_CASE("sums: with keep_all_diffs each replica has its own gradients") {
  replica_options all;
  all.keep_all_diffs = true;
  nets n(machine(lateness::none), {0, 1}, true, all);
  CHECK(n.joined == 1);
  n.train(0);
  (void)n.sums();
}

TEST_CASE("sums: the memory for them is asked of the first device, which may not have it") {
  auto m = machine(lateness::none);
  for (std::size_t bytes = 1 << 10; bytes < 400 << 10; bytes += 256) {
    m.devices[0].bytes = bytes;
    std::string said;
    try {
      nets n(m, {0, 1}, true);
    } catch (const gpu::error& e) {
      CHECK(e.kind() == gpu::error_kind::memory);
      said = e.what();
    }
    REQUIRE_FALSE(said.empty());
    if (said.find("that GPU 1 sends") == std::string::npos) continue;  // the net itself
    CHECK(said.find("GPU 0 (simulated): ") != std::string::npos);
    CHECK(said.find("are wanted for gradients that GPU 1 sends there, of net \"small\"") !=
          std::string::npos);
    CHECK(said.find("are free. Name a GPU with more memory first in --devices") !=
          std::string::npos);
    CHECK(gpu::simulated::counted().device_bytes == 0);
    return;
  }
  FAIL("there is no memory in which the net fits alone");
}

TEST_CASE("sums: a device that is lost says so itself, and the others end") {
  for (const std::uint64_t kernel : {3, 40, 60, 80})
    for (const std::size_t lost : {0, 1}) {
      auto m = machine(lateness::none);
      m.devices[lost].lost_at_kernel = kernel;
      std::string said;
      try {
        nets n(m, {0, 1}, true);
        for (std::uint64_t clock = 0; clock < 8; ++clock) n.train(clock);
      } catch (const gpu::error& e) {
        CHECK(e.kind() == gpu::error_kind::lost);
        said = e.what();
      }
      CHECK(said.find("simulated GPU " + std::to_string(lost)) != std::string::npos);
      CHECK(gpu::simulated::counted().device_bytes == 0);
      CHECK(gpu::simulated::counted().pinned_bytes == 0);
    }
}

TEST_CASE(
    "sums: where a replica has left, each gradient that waits for it is answered with an error, "
    "once") {
  for (const std::size_t waits : {0, 1}) {
    nets n(machine(lateness::none), {0, 1}, true);
    std::mutex mutex;
    std::vector<std::exception_ptr> answers;
    const auto done = [&](const std::exception_ptr& failed) {
      const std::lock_guard lock(mutex);
      answers.push_back(failed);
    };
    std::size_t asked = n.issue_one(waits, 0, done);
    n.end(1);
    if (waits == 0) asked += n.issue_one(0, 1, done);
    n.end(0);
    CHECK(answers.size() == asked);
    for (const auto& failed : answers) {
      REQUIRE(failed);
      CHECK_THROWS_WITH_AS(std::rethrow_exception(failed), doctest::Contains("has ended"),
                           std::runtime_error);
    }
  }
}

TEST_CASE("sums: everything is given back") {
  { nets(machine(lateness::all), {0, 1, 0}, true).train(0); }
  const auto now = gpu::simulated::counted();
  CHECK(now.device_bytes == 0);
  CHECK(now.pinned_bytes == 0);
  CHECK(now.streams == 0);
  CHECK(now.events == 0);
}
