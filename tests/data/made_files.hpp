// tests/data/made_files.hpp - files and folders that a test makes for itself.
#pragma once
#include "data/datum.hpp"
#include "data/lmdb_writer.hpp"
#include "data/source.hpp"
#include "tests/folder.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace poseidon::test {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

inline std::string key_of(std::size_t n) {
  char text[32];
  std::snprintf(text, sizeof text, "%08zu", n);
  return text;
}

/// The value that made images have: different for every image and place.
inline std::uint8_t pixel(std::size_t image, std::size_t i) {
  return static_cast<std::uint8_t>(image * 31 + i * 7 + (i >> 8));
}

inline std::vector<std::uint8_t> made_image(std::size_t n, std::size_t values) {
  std::vector<std::uint8_t> result(values);
  for (std::size_t i = 0; i < values; ++i) result[i] = pixel(n, i);
  return result;
}

/// An LMDB of the given records, keys 00000000, 00000001, ...
inline void make_lmdb(const std::filesystem::path& folder,
                      const std::vector<std::string>& records) {
  std::size_t bytes = 0;
  for (const auto& r : records) bytes += r.size() + 8;
  lmdb_writer writer(folder, records.size(), bytes, false);
  for (std::size_t n = 0; n < records.size(); ++n) writer.put(key_of(n), records[n]);
  writer.finish();
}

/// Made images as Datum; label n % 10.
inline void make_image_lmdb(const std::filesystem::path& folder, std::size_t images,
                            const shape& s) {
  std::vector<std::string> records;
  for (std::size_t n = 0; n < images; ++n)
    records.push_back(make_datum(s, made_image(n, static_cast<std::size_t>(count(s))), n % 10));
  make_lmdb(folder, records);
}

inline std::string big_endian(std::uint32_t word) {
  return {static_cast<char>(word >> 24), static_cast<char>(word >> 16),
          static_cast<char>(word >> 8), static_cast<char>(word)};
}

inline std::string idx_images(std::size_t images, std::size_t rows, std::size_t columns) {
  auto text = big_endian(0x803) + big_endian(images) + big_endian(rows) + big_endian(columns);
  for (std::size_t n = 0; n < images; ++n)
    for (const auto value : made_image(n, rows * columns)) text += static_cast<char>(value);
  return text;
}

inline std::string idx_labels(std::size_t labels) {
  auto text = big_endian(0x801) + big_endian(labels);
  for (std::size_t n = 0; n < labels; ++n) text += static_cast<char>(n % 10);
  return text;
}

/// f()'s error; "" if there is none.
template <class Function>
std::string complaint(Function f) {
  try {
    f();
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

/// A Data layer named "data" with tops data and label.
inline ::caffe::LayerParameter data_layer(const std::string& source) {
  ::caffe::LayerParameter layer;
  layer.set_name("data");
  layer.set_type("Data");
  layer.add_top("data");
  layer.add_top("label");
  layer.mutable_data_param()->set_source(source);
  layer.mutable_data_param()->set_batch_size(4);
  return layer;
}

inline const spec_position& here() {
  static const spec_position where{"net.prototxt", 7};
  return where;
}

/// Reference values from BVLC Caffe; the tests that need them are skipped where they are not.
inline std::filesystem::path oracle() {
  const char* set = std::getenv("POSEIDON_ORACLE");
  return set != nullptr ? set : "../shared/oracle";
}
inline bool oracle_is_missing() {
  return !std::filesystem::exists(oracle() / "MANIFEST.json");
}

}  // namespace poseidon::test
