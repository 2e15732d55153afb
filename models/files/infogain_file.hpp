// models/files/infogain_file.hpp - the matrix of an InfogainLoss that a file holds.
#pragma once
#include "models/net/net.hpp"

#include <cstddef>
#include <vector>

namespace poseidon {

/// Reads the file that infogain_loss_param names: [classes, classes]. A relative path starts at the working directory, as
/// in Caffe, or else beside the file that names it.
///
/// Errors   spec_error: see read_message(), and a matrix of another size.
[[nodiscard]] std::vector<float> read_infogain(const net_layer& layer, std::size_t classes);

}  // namespace poseidon
