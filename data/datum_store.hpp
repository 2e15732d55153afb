// data/datum_store.hpp - databases of Datum, as Caffe's tools write them, as stores of images.
#pragma once
#include "data/image_store.hpp"

namespace poseidon {

/// `colour` is what encoded Datums are decoded to.
/// Errors   std::runtime_error: what lmdb_file and leveldb_file say; no records; a first record that
///          cannot be read.
[[nodiscard]] std::shared_ptr<const image_store> open_lmdb(const std::filesystem::path& path,
                                                           picture_colour colour);
[[nodiscard]] std::shared_ptr<const image_store> open_leveldb(const std::filesystem::path& path,
                                                              picture_colour colour);

}  // namespace poseidon
