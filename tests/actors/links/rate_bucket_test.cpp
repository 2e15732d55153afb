#include "actors/links/rate_bucket.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using namespace std::chrono_literals;

namespace {
// 8 Mbit/s are 1000 bytes in a millisecond; a full bucket holds those of 20 ms.
struct bucket_of_8_mbit_s : rate_bucket {
  bucket_of_8_mbit_s() : rate_bucket(8, {}) {}
  void refill_after(std::chrono::milliseconds time) { refill(now_ += time); }

 private:
  time_point now_{};
};
}  // namespace

TEST_CASE("rate_bucket: a write may go into debt, and the next one waits until it is paid") {
  bucket_of_8_mbit_s b;
  CHECK(b.wait() == 0ms);
  b.spend(256'000);
  CHECK(b.wait() == 257ms);  // rounded up
  b.refill_after(100ms);
  CHECK(b.wait() == 157ms);
  b.refill_after(157ms);
  CHECK(b.wait() == 0ms);
}

TEST_CASE("rate_bucket: 20 ms are saved up for a late wake-up, and no more") {
  bucket_of_8_mbit_s b;
  b.refill_after(1h);
  b.spend(20'000);
  CHECK(b.wait() == 0ms);
  b.spend(1000);
  CHECK(b.wait() == 2ms);
}

TEST_CASE("rate_bucket: a write that a full bucket cannot pay empties it") {
  bucket_of_8_mbit_s b;
  CHECK_FALSE(b.is_emptied_by(19'999));
  CHECK(b.is_emptied_by(20'000));
  CHECK_FALSE(rate_bucket(0.1, {}).is_emptied_by(4095));  // however slow: a small write is whole
  CHECK(rate_bucket(0.1, {}).is_emptied_by(4096));
}

TEST_CASE("rate_bucket: without a limit nothing waits") {
  rate_bucket b(0, {});
  b.spend(1'000'000'000);
  CHECK(b.wait() == 0ms);
  CHECK_FALSE(b.is_emptied_by(1'000'000'000));
}
