// IDX files, plain and packed. The first byte chooses images or labels.
#include "data/idx_file.hpp"
#include "tests/fuzz/target.hpp"

using namespace poseidon;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  return fuzz::accept_or_refuse([&] {
    const fuzz::memory_file file(bytes + 1, size - 1);
    const auto idx = read_idx(file.path(), bytes[0] % 2 == 0 ? 3 : 1);
    volatile unsigned sum = 0;
    for (const auto value : idx.values()) sum = sum + value;
  });
}
