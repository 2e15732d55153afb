// LMDB files: every page that the walk reaches, and every byte of every record.
#include "data/lmdb_file.hpp"
#include "tests/fuzz/target.hpp"

using namespace poseidon;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  return fuzz::accept_or_refuse([&] {
    const fuzz::memory_file input(bytes, size);
    const lmdb_file file(input.path());
    volatile unsigned sum = 0;
    for (std::size_t n = 0; n < file.size(); ++n) {
      const auto record = file.at(n);
      for (const auto byte : record.value) sum = sum + byte;
      for (const char byte : record.key) sum = sum + static_cast<unsigned char>(byte);
    }
  });
}
