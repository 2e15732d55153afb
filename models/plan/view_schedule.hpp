// models/plan/view_schedule.hpp - the views of a run that are known before it begins: the value of --views.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace poseidon {

/// By the first clock of each view: how many nodes train from then on.
using view_schedule = std::map<std::uint64_t, std::size_t>;

/// A file with one `iteration nodes` a line, iterations rising; # begins a comment. Of each view the first iteration, as the
/// line `view N: ... train from iteration C on` says it. Only what follows `first_clock` is returned.
/// Errors   spec_error with file and line: no two numbers, an iteration that does not rise, no nodes, or other nodes at
///          first_clock than the run begins with.
[[nodiscard]] view_schedule read_view_schedule(const std::string& file, std::uint64_t first_clock,
                                               std::size_t nodes);

}  // namespace poseidon
