// HDF5 snapshots. The library below has crashes of its own on damaged files; those that it had on
// ours are in the corpus, and hdf5_file.cpp checks what it can before the library reads.
#include "models/snapshot_hdf5.hpp"
#include "tests/fuzz/target.hpp"

using namespace poseidon;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  fuzz::accept_or_refuse([&] { (void)hdf5_weights(hdf5_reader({bytes, size}, "input")); });
  return fuzz::accept_or_refuse([&] { (void)hdf5_state(hdf5_reader({bytes, size}, "input")); });
}
