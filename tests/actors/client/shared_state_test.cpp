// What programs share: which entries are equal, in what two lists differ, and when all of it has arrived.
#include "actors/client/program.hpp"
#include "messages/wire/codec.hpp"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

using namespace poseidon;
using flight_answer = state_in_flight::answer;

namespace {

shared_memory shared_as(const std::string& name, std::vector<std::byte>& bytes,
                        const std::string& kind = "buffer") {
  return {name, kind, bytes};
}

}  // namespace

TEST_CASE("shared_state: pieces of 2 MiB, the last one smaller, none of nothing") {
  CHECK(pieces_of(0).empty());
  CHECK(pieces_of(1) == std::vector<std::uint64_t>{0});
  CHECK(pieces_of(shared_piece_bytes) == std::vector<std::uint64_t>{0});
  CHECK(pieces_of(shared_piece_bytes + 1) == std::vector<std::uint64_t>{0, shared_piece_bytes});
}

TEST_CASE("shared_state: the first difference of two lists is named with both sides") {
  std::vector<std::byte> eight(8), one(1);
  const std::vector<shared_memory> here{shared_as("a", eight), shared_as("b", one)};
  const auto there = entries_of(here);
  const std::string remedy = ". All workers need the same program and model";
  CHECK(difference(here, there).empty());
  std::vector<std::byte> other(8, std::byte{3});
  CHECK(difference({shared_as("a", other), shared_as("b", one)}, there).empty());  // bytes travel
  CHECK(difference({shared_as("a", eight), shared_as("c", one)}, there) ==
        "shared state 1 is \"b\" (buffer, 1 byte) on worker 0 and \"c\" (buffer, 1 byte) here" +
            remedy);
  CHECK(difference({shared_as("a", eight, "frozen"), shared_as("b", one)}, there) ==
        "shared state 0 is \"a\" (buffer, 8 bytes) on worker 0 and \"a\" (frozen, 8 bytes) here" +
            remedy);
  CHECK(difference({shared_as("a", one), shared_as("b", one)}, there) ==
        "shared state 0 is \"a\" (buffer, 8 bytes) on worker 0 and \"a\" (buffer, 1 byte) here" +
            remedy);
  CHECK(difference({shared_as("a", eight)}, there) ==
        "worker 0 shares 2 pieces of state and this worker 1; the first that only one has is \"b\" "
        "(buffer, 1 byte)" +
            remedy);
  CHECK(difference(here, {}) ==
        "worker 0 shares 0 pieces of state and this worker 2; the first that only one has is \"a\" "
        "(buffer, 8 bytes)" +
            remedy);
}

TEST_CASE("shared_state: what is on its way is over when all has arrived, or the run is") {
  state_in_flight flight;
  const std::chrono::seconds now{0};
  CHECK(flight.wait(now) == flight_answer::over);
  flight.expect(5);
  CHECK(flight.wait(now) == flight_answer::not_yet);
  flight.arrived(2);
  CHECK(flight.wait(now) == flight_answer::not_yet);
  std::thread last([&] { flight.arrived(3); });
  CHECK(flight.wait(std::chrono::seconds{60}) == flight_answer::over);
  last.join();
  flight.expect(1);
  flight.close();
  CHECK(flight.wait(std::chrono::seconds{60}) == flight_answer::closed);
}

TEST_CASE("program: what equals worker 0's need not come, parameters and shared state") {
  std::vector<float> w{1, 2, 3}, zero{0.0f}, minus_zero{-0.0f};
  const std::vector<declared_parameter> declared{{"w", {3}}, {"b", {1}}};
  std::vector<std::byte> same(4), other(5);
  program first(declared, {w.data(), zero.data()});
  first.shared = {shared_as("s", same), shared_as("o", other)};
  const auto digests = first.first_digests();
  const auto entries = entries_of(first.shared);

  std::vector<std::byte> same_here(4), other_here(5, std::byte{1});
  program here(declared, {w.data(), minus_zero.data()});
  here.shared = {shared_as("s", same_here), shared_as("o", other_here)};
  here.take_equal(digests, entries);
  CHECK(here.has_parameters == std::vector<bool>{true, false});
  CHECK(here.has_shared == std::vector<bool>{true, false});
  CHECK(here.shared_in_flight.wait(std::chrono::seconds{0}) == flight_answer::not_yet);
  here.shared_in_flight.arrived(5);
  CHECK(here.shared_in_flight.wait(std::chrono::seconds{0}) == flight_answer::over);

  program without(declared, {nullptr, nullptr});
  without.take_equal(digests, {});
  CHECK(without.has_parameters == std::vector<bool>{false, false});
}
