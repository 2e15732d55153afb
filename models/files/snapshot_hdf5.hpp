// models/files/snapshot_hdf5.hpp
//
// Caffe's HDF5 snapshots, to and from the messages that its binary ones hold.
//   weights  /data/<layer>/<index>, float32 with the blob's shape. A shared parameter is stored once,
//            in the layer that owns it. Gradients, which some files have in /diff, are not read.
//   state    /iter, /current_step: {1} integers; /learned_net: a string; /history/<index>
// A layer whose name has slashes (GoogLeNet's "conv1/7x7_s2") becomes nested groups. Caffe itself
// can neither write nor read these; its binary snapshots have no such limit.
#pragma once
#include "models/files/hdf5_file.hpp"
#include "models/files/snapshot.hpp"

#include <vector>

namespace poseidon {

/// Layers with their names and blobs, nothing else. A blob that its layer leaves to the owner of a
/// shared parameter has neither shape nor values.
/// Errors   spec_error: as hdf5_reader's, no /data, names that are no indices.
[[nodiscard]] ::caffe::NetParameter hdf5_weights(const hdf5_reader& file);
[[nodiscard]] ::caffe::SolverState hdf5_state(const hdf5_reader& file);

/// The bytes of a file.   Errors   std::invalid_argument: layer names that exclude each other, as
/// "a" with two blobs and "a/1".
[[nodiscard]] std::vector<char> to_hdf5_weights(const net& n, const parameter_arrays& values);
[[nodiscard]] std::vector<char> to_hdf5_state(const net& n, const solver_state& state);

}  // namespace poseidon
