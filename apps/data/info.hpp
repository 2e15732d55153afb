// apps/data/info.hpp - describes a file by its kind. Each function reads the whole file, and so finds damage, too; it
// then throws std::exception with file and reason.
#pragma once
#include "apps/data/facts.hpp"
#include "data/opening.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace poseidon::app {

struct info_options {
  bool quick = false;          ///< databases: only the first record
  std::optional<shape> input;  ///< shape of an image, for nets whose data are not on this machine
  std::filesystem::path data_root;  ///< folder from which relative sources of nets start
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

/// Recognises the kind by the content, not by the name.
/// Errors   std::runtime_error: missing, empty, or of an unknown kind (the known kinds are listed).
[[nodiscard]] facts facts_of(const std::filesystem::path& path, const info_options& options);

}  // namespace poseidon::app
