// Records of a database, encoded ones too. The first byte chooses the colours.
#include "data/datum.hpp"
#include "tests/fuzz/target.hpp"

using namespace poseidon;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  return fuzz::accept_or_refuse([&] {
    image_scratch scratch;
    const auto colour = static_cast<picture_colour>(bytes[0] % 3);
    const auto one = parse_datum({bytes + 1, size - 1}, scratch, colour);
    if (static_cast<std::int64_t>(one.bytes.size() + one.floats.size()) != count(shape_of(one)))
      throw std::logic_error("another number of values than the shape says");
  });
}
