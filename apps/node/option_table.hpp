// apps/node/option_table.hpp
//
// The options of `poseidon-node train`, each once: what it is called, what is said of it, to which nodes it belongs, and what it needs
// and excludes. From here come what CLI11 knows (option_binder.hpp), the checks (option_checks.hpp), --help with the manual page and
// the completions, and the table in docs/user-guide.md, which tools/docs writes from the hidden verb `option-table`
// (docs/decisions/056-option-table.md).
#pragma once
#include <array>
#include <span>
#include <string_view>
#include <vector>

namespace poseidon::app {

/// What a node is to its run.
enum class node_role { alone, first, joiner, witness };
inline constexpr std::array every_role{node_role::alone, node_role::first, node_role::joiner,
                                       node_role::witness};
[[nodiscard]] const char* name_of(node_role role);

/// What becomes of an option that a node of some role is given. An idle one has no effect, and a warning says so.
enum class option_use { taken, idle, refused };
[[nodiscard]] const char* name_of(option_use use);

/// To whom an option belongs.
enum class option_owner {
  everyone,
  trainers,               ///< all but a witness
  members,                ///< everyone but a node that trains alone, where it is idle
  trainers_of_several,    ///< trainers, and idle for a node that trains alone
  first_node,             ///< and a node that trains alone; its choice holds for all
  first_of_several,       ///< the first node, and idle for a node that trains alone
  reader_of_all_outputs,  ///< as first_node, because only the first node knows the outputs of all
};
[[nodiscard]] const char* name_of(option_owner owner);
[[nodiscard]] option_use use_of(option_owner owner, node_role role);

/// In the order in which --help and the guide have them.
enum class option_group { training, data, devices, cluster, values, display, caffe, tests };
inline constexpr std::array every_group{
    option_group::training, option_group::data,    option_group::devices, option_group::cluster,
    option_group::values,   option_group::display, option_group::caffe,   option_group::tests};
/// The heading in --help; empty for options that it does not show.
[[nodiscard]] const char* heading_of(option_group group);

struct option_row {
  const char* names;  ///< as CLI11 takes them: "--snapshot,--resume"
  /// What --help calls its value. Empty: a flag. "[X]": it may be left out. "{a,b}": it is one of these.
  const char* value = "";
  option_group group;
  option_owner owner;
  const char* help;
  /// The default in words, where the value itself says too little.
  const char* otherwise = "";
  /// Of docs/user-guide.md, as a link has it.
  const char* chapter = "";
  /// An option beside which it is not idle for a node that trains alone.
  const char* idle_unless = "";
  /// Refused where no GPU trains.
  bool of_gpus = false;
};

/// The first of its names, without which messages do not name it.
[[nodiscard]] std::string_view name_of(const option_row& row);

/// All options, by group.
[[nodiscard]] std::span<const option_row> option_rows();

/// Throws   logic_error: there is no such option.
[[nodiscard]] const option_row& row_of(std::string_view name);

/// Options that contradict each other, or need each other. A condition is "--option" (it was given), "--option=PATTERN" or
/// "--option!=PATTERN" (it was given, and its text does or does not match, as file names do); several, with spaces, hold together.
struct option_rule {
  enum class kind { excludes, needs, is_idle_without };
  const char* one;  ///< conditions
  kind what;
  const char* other;        ///< a condition; with `needs` conditions of which each has to hold
  const char* why;          ///< why, and what to do: whole sentences behind a colon
  const char* unless = "";  ///< a condition under which the rule does not hold
};
[[nodiscard]] const char* name_of(option_rule::kind kind);
[[nodiscard]] std::span<const option_rule> option_rules();

/// The rows of some groups each, for option_rows().
namespace rows {
[[nodiscard]] std::span<const option_row> of_training();  ///< training, data, devices
[[nodiscard]] std::span<const option_row> of_clusters();  ///< cluster, values
[[nodiscard]] std::span<const option_row> of_display();   ///< display, caffe, tests
}  // namespace rows

}  // namespace poseidon::app
