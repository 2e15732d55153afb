// data/exif.hpp - the orientation of a camera, as its JPEG or PNG states it.
#pragma once
#include "data/picture.hpp"

namespace poseidon {

/// EXIF's orientation, 1 to 8; 1 (upright) where it is missing or damaged. `exif` begins with the byte order: II or MM.
/// Source   CIPA DC-008, "Exchangeable image file format", tag 0x0112 of IFD 0.
[[nodiscard]] int orientation_of(std::span<const std::uint8_t> exif);

/// The picture upright. Orientations 5 to 8 exchange height and width.
[[nodiscard]] picture upright(picture p, int orientation);

}  // namespace poseidon
