// The waits of streams for each other: every order that the events permit gives the same bits. The simulated device can
// delay the copies or the kernels until a thread or stream waits for them, so a missing wait shows in every run.
#include "tests/gpu/streams/rig.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using namespace poseidon::test;
using gpu::simulated::lateness;

namespace {

/// One pass after the other, with everything waited for.
struct plain_run {
  std::vector<float> losses;
  std::vector<std::vector<float>> parameters;
};

plain_run train_step_by_step(std::uint64_t clocks) {
  rig r(machine(lateness::none));
  plain_run out;
  for (std::uint64_t c = 0; c < clocks; ++c) out.losses.push_back(r.step(c));
  for (const auto& p : r.parameters()) out.parameters.emplace_back(p.begin(), p.end());
  return out;
}

}  // namespace

TEST_CASE("streams: training gives the same bits in every order that the events permit") {
  const auto wanted = train_step_by_step(6);
  for (const lateness late : every_lateness) {
    CAPTURE(static_cast<int>(late));
    rig r(machine(late));
    CHECK(r.train(6) == wanted.losses);
    for (std::size_t p = 0; p < wanted.parameters.size(); ++p)
      CHECK(std::equal(r.parameters()[p].begin(), r.parameters()[p].end(),
                       wanted.parameters[p].begin()));
  }
}

TEST_CASE(
    "streams: a pass computes with its parameters and its batch, however far the host is ahead") {
  std::vector<double> wanted;
  for (const lateness late : every_lateness) {
    CAPTURE(static_cast<int>(late));
    rig r(machine(late));
    const auto sums = r.run_ahead(5);
    for (const double s : sums) CHECK(s > 0);  // and no NaN of a batch that was let go
    if (wanted.empty()) wanted = sums;
    CHECK(sums == wanted);
  }
}

TEST_CASE(
    "streams: training copies nothing that is not pinned, and no thread waits for the device") {
  rig r(machine(lateness::none));
  (void)r.train(1);
  const auto before = gpu::simulated::counted();
  (void)r.train(5, 1);
  const auto after = gpu::simulated::counted();
  CHECK(after.copies_in > before.copies_in);
  CHECK(after.pageable_copies == before.pageable_copies);
  // In each pass: the gradients of three layers, the loss, and the batch that is released.
  CHECK(after.moments_seen - before.moments_seen == 4 * 5);
  CHECK(after.host_waits == before.host_waits);
}

TEST_CASE("streams: a batch stays in the device's memory until its pass has taken it") {
  std::vector<float> wanted;
  for (const lateness late : every_lateness) {
    CAPTURE(static_cast<int>(late));
    rig r(machine(late));
    const auto losses = r.test(6);
    CHECK(losses[0] != losses[2]);
    if (wanted.empty()) wanted = losses;
    CHECK(losses == wanted);
  }
}

TEST_CASE("streams: everything is given back") {
  { rig(machine(lateness::none)).train(2); }
  const auto now = gpu::simulated::counted();
  CHECK(now.device_bytes == 0);
  CHECK(now.pinned_bytes == 0);
  CHECK(now.streams == 0);
  CHECK(now.events == 0);
}
