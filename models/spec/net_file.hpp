// models/spec/net_file.hpp
//
// A net specification as its file states it: parsed, upgraded to V2, every layer with its place in
// the file. Reading never needs data or devices; net_builder.hpp resolves it for a phase.
#pragma once
#include "models/caffe.hpp"
#include "models/spec/spec_file.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

struct net_file {
  ::caffe::NetParameter spec;               ///< V2 only, as Caffe's own upgrade would make it
  std::vector<spec_position> layer_places;  ///< by spec.layer(i)
  std::filesystem::path directory;  ///< where relative sources start when no --data-root is given
};

/// Errors   spec_error with file and line for what the text format, the upgrade or a missing file
///          refuses; an unknown field or enum word is answered with the nearest known one.
[[nodiscard]] net_file read_net(const std::filesystem::path& path);
[[nodiscard]] net_file parse_net(std::string_view text, const std::string& file_name);

}  // namespace poseidon
