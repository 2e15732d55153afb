// models/files/snapshot.hpp - .caffemodel and .solverstate, read and written as Caffe does.
#pragma once
#include "models/caffe.hpp"
#include "models/net/net.hpp"
#include "models/solver/solver_rule.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace poseidon {

/// One array per net parameter (or per layer blob), Caffe's layout.
using parameter_arrays = std::vector<std::vector<float>>;

/// Extents of a stored blob: its shape, or the four numbers of older files.
[[nodiscard]] shape shape_of(const ::caffe::BlobProto& blob);

/// Reads a .caffemodel, V1 or V2, with 4-D or free shapes, or a .caffemodel.h5: by its content.
///
/// Errors   spec_error: missing, truncated (with the bytes there and needed), not a net.
[[nodiscard]] ::caffe::NetParameter read_caffemodel(const std::filesystem::path& path);

/// Copies weights by layer name into `values` (by index into n.parameters, each of its size), as Caffe's
/// CopyTrainedLayersFrom: layers missing on either side are skipped, and so are shared parameters
/// that a file leaves to their owner (HDF5).
///
/// Errors   spec_error: another number of blobs or another shape in a layer of the same name, both
///          given.
/// Returns  the names of the layers that were copied.
std::vector<std::string> copy_weights(const ::caffe::NetParameter& from,
                                      const std::string& file_name, const net& n,
                                      std::span<const std::span<float>> values);
/// Copies into arrays, which take the size of the copied blobs.
std::vector<std::string> copy_weights(const ::caffe::NetParameter& from,
                                      const std::string& file_name, const net& n,
                                      parameter_arrays& values);

/// The .caffemodel message of a net: every layer with its blobs; shared parameters in every layer
/// that uses them.
[[nodiscard]] ::caffe::NetParameter to_caffemodel(const net& n, const parameter_arrays& values);

/// The position of a run in its data. Caffe's files have none: after them reading starts at the first record.
struct data_position {
  std::uint64_t samples = 0;      ///< the next one to train on, over all epochs and nodes
  std::uint64_t test_phases = 0;  ///< number of test phases that have been run
};

struct solver_state {
  std::uint64_t iteration = 0;
  std::uint64_t current_step = 0;
  std::string learned_net;                ///< path of the .caffemodel written with it
  std::vector<parameter_arrays> history;  ///< by slot (Adam: first, second moment), by parameter
  data_position data;
  /// Samples per clock over all nodes, which the run keeps in every view; 0: each node takes the net's batch.
  std::uint64_t global_batch = 0;
  std::string rule{};  ///< type of the solver that wrote it; empty: not known, as in Caffe's files
  /// Iterations of a node in each outer step of the run that wrote it: `history` is that of these steps. 0: it made none.
  std::uint32_t outer_steps = 0;
};

/// The iteration at which a .solverstate resumes, read before its net is known.
/// Errors   spec_error: missing, truncated.
struct resume_point {
  std::uint64_t iteration = 0;
  std::string learned_net;  ///< empty: the file names none
  data_position data;
  std::uint64_t global_batch = 0;  ///< as in solver_state
  std::uint32_t outer_steps = 0;   ///< as in solver_state
};
[[nodiscard]] resume_point read_resume_point(const std::filesystem::path& path);

/// Errors   spec_error: missing, truncated, another number of history blobs than net and rule need, and what
///          state_rule.hpp refuses.
[[nodiscard]] solver_state read_solverstate(const std::filesystem::path& path, const net& n,
                                            rule_kind rule);
[[nodiscard]] ::caffe::SolverState to_solverstate(const net& n, const solver_state& state);

/// As atomic_file.hpp's.   Errors   also std::runtime_error: more than 2 GiB.
void write_atomically(const std::filesystem::path& path, const google::protobuf::Message& message);

/// The solver's snapshot_format, which is also the file names' suffix: none, or ".h5".
using snapshot_format = ::caffe::SolverParameter::SnapshotFormat;

/// `stem`.caffemodel or `stem`.caffemodel.h5; `stem`.solverstate or `stem`.solverstate.h5
[[nodiscard]] std::string weights_path(const std::string& stem, snapshot_format format);
[[nodiscard]] std::string state_path(const std::string& stem, snapshot_format format);

/// Write weights_path() and state_path(), as Caffe does.
/// Errors   as write_atomically.
void write_weights(const std::string& stem, snapshot_format format, const net& n,
                   const parameter_arrays& values);
void write_state(const std::string& stem, snapshot_format format, const net& n,
                 const solver_state& state);

}  // namespace poseidon
