// apps/data/info.hpp - what is in a file, by kind. Each function reads the whole of it, so that it also says whether
// all of it can be read, and throws std::exception with file and reason if not.
#pragma once
#include "apps/data/facts.hpp"
#include "data/opening.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace poseidon::app {

struct info_options {
  bool quick = false;               ///< databases: only the first record
  std::optional<shape> input;       ///< of an image, for nets whose data are not here
  std::filesystem::path data_root;  ///< where relative sources of nets start
  opening_progress opening, progress;
};

// info_data.cpp
[[nodiscard]] facts database_facts(const std::filesystem::path& path, const info_options& options);
[[nodiscard]] facts idx_facts(const std::filesystem::path& path);
[[nodiscard]] facts cifar_facts(const std::filesystem::path& path);
[[nodiscard]] facts picture_facts(const std::filesystem::path& path);
[[nodiscard]] facts array_facts(const std::filesystem::path& path);  ///< .npy
/// HDF5: a snapshot of either kind by its groups, or datasets.
[[nodiscard]] facts hdf5_facts(const std::filesystem::path& path);

// info_models.cpp: a binary file is one of the messages of Caffe that have files: NetParameter, SolverState, BlobProto.
[[nodiscard]] facts message_facts(const std::filesystem::path& path);
[[nodiscard]] facts weights_facts(const std::filesystem::path& path);
[[nodiscard]] facts state_facts(const std::filesystem::path& path);

// info_text.cpp: net, solver, profile, routes, list of images.
[[nodiscard]] facts text_facts(const std::filesystem::path& path, const info_options& options);

/// Finds out which it is by what is in it, not by its name.
/// Errors   std::runtime_error: nothing there, empty, of no kind that is known (with the kinds that are).
[[nodiscard]] facts facts_of(const std::filesystem::path& path, const info_options& options);

}  // namespace poseidon::app
