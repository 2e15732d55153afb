#include "cpu/kernels/gather.hpp"

#include "tests/cpu/hand_net.hpp"

using namespace poseidon;
using namespace poseidon::test;
using poseidon::cpu::row_block;
using poseidon::cpu::sparse_term;

namespace {

std::vector<float> gathered(bool wide, const row_block& b, const std::vector<sparse_term>& terms) {
  const auto from = noise(b.rows * b.from_step + 4000, 1);
  auto into = noise(b.rows * b.into_step + b.length + 8, 2);
  poseidon::cpu::gatherer(b, wide)(terms.data(), terms.size(), from.data(), into.data());
  // Values behind a row may change; the values in a row are the same for every way to compute them.
  std::vector<float> rows;
  for (std::size_t r = 0; r < b.rows; ++r) {
    const float* row = into.data() + r * b.into_step;
    rows.insert(rows.end(), row, row + b.length);
  }
  return rows;
}

std::vector<double> naive(const row_block& b, const std::vector<sparse_term>& terms) {
  const auto from = noise(b.rows * b.from_step + 4000, 1);
  const auto into = noise(b.rows * b.into_step + b.length + 8, 2);
  std::vector<double> rows;
  for (std::size_t r = 0; r < b.rows; ++r) {
    for (std::size_t i = 0; i < b.length; ++i) {
      double sum = into[r * b.into_step + i];
      for (const sparse_term& t : terms) {
        sum += double{t.scale} *
               double{from[static_cast<std::size_t>(t.offset) + r * b.from_step + i]};
      }
      rows.push_back(sum);
    }
  }
  return rows;
}

}  // namespace

TEST_CASE(
    "gather: equals the naive sum for every row length, and both versions give the same bits") {
  const bool wide = __builtin_cpu_supports("avx512f") != 0;
  const auto scales = noise(40, 3);
  for (const std::size_t length :
       {1u, 5u, 8u, 15u, 16u, 17u, 100u, 104u, 105u, 160u, 208u, 320u, 340u, 500u}) {
    for (const std::size_t rows : {1u, 3u, 5u}) {
      for (const std::size_t count : {0u, 1u, 40u}) {
        CAPTURE(length);
        CAPTURE(rows);
        CAPTURE(count);
        const row_block b{rows, length, (length + 7) / 8 * 8, length + 3};
        std::vector<sparse_term> terms;
        for (std::size_t i = 0; i < count; ++i)
          terms.push_back({static_cast<std::int32_t>(i * 37 % 997), scales[i]});
        const auto narrow = gathered(false, b, terms);
        CHECK(deviation(narrow, naive(b, terms)) < 1e-5);
        if (wide) CHECK(gathered(true, b, terms) == narrow);
      }
    }
  }
}
