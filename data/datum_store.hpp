// data/datum_store.hpp - a database of Datum, as Caffe's tools write them, as a store of images.
#pragma once
#include "data/database.hpp"
#include "data/image_store.hpp"

namespace poseidon {

/// `colour` is what encoded Datums are decoded to.
/// Errors   std::runtime_error: no records; a first record that cannot be read.
[[nodiscard]] std::shared_ptr<const image_store> open_datums(
    std::shared_ptr<const record_reader> records, picture_colour colour);

}  // namespace poseidon
