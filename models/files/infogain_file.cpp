#include "models/files/infogain_file.hpp"

#include "models/files/snapshot_io.hpp"
#include "models/net/refusal.hpp"

#include <filesystem>

namespace poseidon {

std::vector<float> read_infogain(const net_layer& layer, std::size_t classes) {
  namespace fs = std::filesystem;
  const fs::path named = layer.spec.infogain_loss_param().source();
  fs::path path = named;
  std::error_code ignored;
  if (named.is_relative() && !fs::exists(named, ignored))
    path = fs::path(layer.where.file).parent_path() / named;
  ::caffe::BlobProto matrix;
  read_message(path, "the infogain matrix of layer \"" + layer.name + "\"", matrix);
  const auto values = static_cast<std::size_t>(matrix.data_size());
  if (values != classes * classes)
    refuse_layer(layer, "the infogain matrix of \"" + path.string() + "\" has " +
                            std::to_string(values) + " values, " + std::to_string(classes) +
                            " classes need " + std::to_string(classes * classes) + ".");
  return {matrix.data().begin(), matrix.data().end()};
}

}  // namespace poseidon
