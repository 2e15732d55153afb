#include "cpu/layout.hpp"

#include "tests/cpu/hand_net.hpp"

using namespace poseidon;
using namespace poseidon::test;
using poseidon::cpu::layout;

TEST_CASE("layout: values survive every way there and back, and padding is zero") {
  for (const shape& s :
       {shape{1, 1, 1, 1}, shape{2, 8, 3, 2}, shape{2, 17, 1, 5}, shape{1, 50, 4, 4}}) {
    const auto plain = noise(static_cast<std::size_t>(count(s)), 1);
    for (const layout form : {layout::c8, layout::c16}) {
      std::vector<float> blocked(cpu::stored_size(s, form), 7.0f), back(plain.size());
      cpu::relayout(s, layout::plain, plain.data(), form, blocked.data());
      cpu::relayout(s, form, blocked.data(), layout::plain, back.data());
      CHECK(back == plain);
      double kept = 0, all = 0;
      for (const float v : plain) kept += std::abs(double{v});
      for (const float v : blocked) all += std::abs(double{v});
      CHECK(all == doctest::Approx(kept));  // nothing but zeros beside the values
      const layout other = form == layout::c8 ? layout::c16 : layout::c8;
      std::vector<float> third(cpu::stored_size(s, other), 7.0f);
      cpu::relayout(s, form, blocked.data(), other, third.data());
      cpu::relayout(s, other, third.data(), layout::plain, back.data());
      CHECK(back == plain);
    }
  }
}

TEST_CASE("layout: values lie where oneDNN's nChw8c has them") {
  const shape s{1, 9, 1, 2};
  const auto plain = noise(18, 1);
  std::vector<float> blocked(cpu::stored_size(s, layout::c8));
  REQUIRE(blocked.size() == 32);
  cpu::relayout(s, layout::plain, plain.data(), layout::c8, blocked.data());
  CHECK(blocked[8 + 3] == plain[3 * 2 + 1]);   // channel 3, second pixel
  CHECK(blocked[16 + 8] == plain[8 * 2 + 1]);  // channel 8 opens the second block
}
