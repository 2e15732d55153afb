#include "cpu/kernels/unpack_weights.hpp"

#include "tests/cpu/hand_net.hpp"

using namespace poseidon;
using namespace poseidon::test;

TEST_CASE("unpack_weights: each value comes to its row and column") {
  for (const auto& [out, in] : {std::pair<std::size_t, std::size_t>{16, 16}, {48, 32}, {16, 80}}) {
    const auto blocks = noise(out * in, 1);
    std::vector<float> rows(out * in, 7.0f);
    cpu::unpack_weights(blocks.data(), out, in, rows.data());
    for (std::size_t o = 0; o < out; ++o)
      for (std::size_t i = 0; i < in; ++i)
        REQUIRE(rows[o * in + i] ==
                blocks[((o / 16 * (in / 16) + i / 16) * 16 + i % 16) * 16 + o % 16]);
  }
}

TEST_CASE("unpack_weights: a convolution of one tap has the gradient that its places say") {
  constexpr std::size_t in = 1024, out = 32;  // rows of a page each
  hand_net h;
  h.all_diffs = true;
  h.input("x", {2, in, 3, 3});
  h.layer(
      "name: 'c' type: 'Convolution' bottom: 'x' top: 'y' convolution_param { num_output: 32 "
      "kernel_size: 1 bias_term: false }",
      {{2, out, 3, 3}}, {{out, in, 1, 1}});
  running_net r(h.n, {1, true});
  const auto x = noise(2 * in * 9, 2), dy = noise(2 * out * 9, 3);
  r.set("x", x);
  r.forward();
  r.set_diff("y", dy);
  r.backward();
  std::vector<float> wanted(out * in);
  for (std::size_t o = 0; o < out; ++o)
    for (std::size_t i = 0; i < in; ++i)
      for (std::size_t n = 0; n < 2; ++n)
        for (std::size_t p = 0; p < 9; ++p)
          wanted[o * in + i] += dy[(n * out + o) * 9 + p] * x[(n * in + i) * 9 + p];
  CHECK(deviation(r.gradient(0), wanted) < 1e-5);
}
