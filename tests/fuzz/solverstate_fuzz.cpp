// Solver states that a user gives.
#include "models/files/hdf5_file.hpp"
#include "models/files/snapshot.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/models/nets.hpp"

using namespace poseidon;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const net n =
      test::build(test::input("x", {2, 4}) +
                  test::layer("a", "InnerProduct", "x", "a",
                              "inner_product_param { num_output: 1 bias_term: false }"));
  return fuzz::accept_or_refuse([&] {
    const fuzz::memory_file file(bytes, size);
    if (is_hdf5(file.path())) return;  // libhdf5 has crashes of its own
    (void)read_solverstate(file.path(), n, rule_kind::sgd);
  });
}
