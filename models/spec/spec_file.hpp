// models/spec/spec_file.hpp - a place in a file, and the error that names it.
#pragma once
#include <stdexcept>
#include <string>

namespace poseidon {

struct spec_position {
  std::string file;
  int line = 0;  ///< from 1; 0: unknown, or made by the program
};

/// "lenet.prototxt:12"; the bare file when the line is unknown.
[[nodiscard]] std::string to_string(const spec_position& p);

/// A mistake of the user in a file: what(), where, both values, what to do. Apps print it and
/// exit 2.
struct spec_error : std::invalid_argument {
  spec_error(const spec_position& where, const std::string& text);
  explicit spec_error(const std::string& text);
};

/// A layer type of Caffe's for which Poseidon has no rule or no kernel yet: the file is correct. An unknown word is a
/// plain spec_error.
struct unsupported_layer : spec_error {
  unsupported_layer(const spec_position& where, const std::string& text, std::string layer_type);
  std::string type;
};

}  // namespace poseidon
