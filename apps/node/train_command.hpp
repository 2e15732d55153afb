// apps/node/train_command.hpp - the command line of `poseidon-node train` before it is read: for its options, and for the hidden verb that lists them.
#pragma once
#include "apps/cli.hpp"
#include "apps/node/options.hpp"

#include <memory>

namespace poseidon::app {

struct option_words;

class train_command : public command_line {
 public:
  train_command();
  ~train_command();
  train_command(const train_command&) = delete;
  train_command& operator=(const train_command&) = delete;

  /// After parsed(): all options, checked against the table, each other and the files that they name.
  /// Errors   std::invalid_argument with one line.
  [[nodiscard]] node_options taken(int argc, const char* const* argv);

 private:
  node_options options_;
  std::unique_ptr<option_words> words_;
};

}  // namespace poseidon::app
