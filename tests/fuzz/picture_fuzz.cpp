// JPEG, PNG, WebP, TIFF, BMP, PPM and PGM. The first byte chooses the colours, the next two a size to resize to.
#include "data/picture.hpp"
#include "tests/fuzz/target.hpp"

using namespace poseidon;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size < 3) return 0;
  return fuzz::accept_or_refuse([&] {
    const auto colour = static_cast<picture_colour>(bytes[0] % 3);
    const auto p = decode_picture({bytes + 3, size - 3}, colour);
    if (p.height * p.width > 1 << 20) return;
    (void)resize(p, 1 + bytes[1], 1 + bytes[2]);
  });
}
