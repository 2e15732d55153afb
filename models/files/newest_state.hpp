// models/files/newest_state.hpp - for --resume auto: which of a run's snapshots can training go on from?
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

/// The path that the state names, as in Caffe; or the same name in the state's folder, if both files have been moved.
[[nodiscard]] std::filesystem::path weights_beside(const std::filesystem::path& state,
                                                   const std::filesystem::path& named);

struct found_state {
  std::optional<std::filesystem::path> path;  ///< empty: there is none
  std::vector<std::string> passed_over;       ///< newer ones, with why: lines for the user
};

/// The state PREFIX_iter_N.solverstate (or .solverstate.h5) with the largest N that can be read and whose weights are there.
[[nodiscard]] found_state newest_state(const std::filesystem::path& prefix);

}  // namespace poseidon
