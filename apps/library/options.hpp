// apps/library/options.hpp - what a program tells libposeidon when it joins.
#pragma once
#include "messages/wire/host_port.hpp"
#include "messages/wire/tls_context.hpp"
#include "models/device/wire_format.hpp"
#include "models/fingerprint.hpp"
#include "models/plan/routes.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon::library {

struct options {
  std::optional<host_port> listen, web;
  std::vector<host_port> join;  ///< whoever answers first; empty: this is worker 0
  /// Of a run that this worker begins; with join only where none of those is in a run. Empty: it begins none, or trains alone.
  std::optional<std::size_t> nodes;
  std::string token, web_token;
  std::shared_ptr<const tls_context> tls;  ///< of links and page; empty: nothing is encrypted
  std::chrono::milliseconds silence_limit{2000};
  /// Longer than poseidon-node's: a program may test, write files or download for minutes while the others wait.
  std::chrono::milliseconds progress_limit{std::chrono::minutes{30}};
  double link_mbit_s = 0;
  bool outlives_losses = false;  ///< the others go on without a worker that is lost
  /// Others may join later: it gives them its state, and takes theirs.
  bool takes_newcomers = false;
  route_option routes;  ///< none from a file
  std::optional<wire_format> wire;
  /// For benchmarks in which other layers sleep, too: making a gradient from factors takes as long as on a device of that
  /// rate, and makes no values. 0: it is made.
  double replay_gflops = 0;
  std::filesystem::path trace, graph;
  /// By what the program's gradients may differ from another worker's.
  fingerprint traits;
};

/// As a program writes them, "token-file".
[[nodiscard]] std::vector<std::string> option_names();

/// One "name=value" a line; empty lines are skipped.
/// Errors   std::invalid_argument: an unknown name, a value that is none, options that contradict each other;
///          std::runtime_error: a file that cannot be read, an address that wants a token
///          (web/open_doors.hpp). The texts name options as poseidon-node does: in_program_words() puts them as the program has them.
[[nodiscard]] options parse_options(std::string_view text);

}  // namespace poseidon::library
