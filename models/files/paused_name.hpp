// models/files/paused_name.hpp - the name of what a node leaves that hears nobody.
#pragma once
#include <string_view>

namespace poseidon {

/// Followed by the node's number. The others may train on elsewhere and write files of the run's names, so that these bear another one.
inline constexpr std::string_view paused_name = "_paused_node";

}  // namespace poseidon
