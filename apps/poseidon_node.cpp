// apps/poseidon_node.cpp - poseidon-node's verbs.
#include "apps/cli.hpp"
#include "apps/node/signals.hpp"
#include "apps/node/verbs.hpp"
#include "apps/run_app.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace poseidon::app {

namespace {

constexpr verb of_tools{"option-table", "no user needs it", option_table_verb};

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// Before the libraries begin, which takes most of the time until main(). A sanitizer has to begin first.
[[gnu::used, gnu::section(".preinit_array")]] void (*const before_all)() = end_early_with_a_word;
#endif

/// The verb is the first argument, as with Caffe's tool; the default is train.
int run(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return train_verb(argc, argv);
  std::string word = argv[1];
  std::replace(word.begin(), word.end(), '_', '-');  // Caffe's device_query
  std::vector<std::string> names;
  for (const auto& one : all_verbs()) {
    if (word == one.name) {
      if (one.run != train_verb) end_as_any_program();
      return one.run(argc - 1, argv + 1);
    }
    names.emplace_back(one.name);
  }
  if (word == of_tools.name) return of_tools.run(argc - 1, argv + 1);
  refuse_verb("poseidon-node", argv[1], names);
}

}  // namespace

}  // namespace poseidon::app

int main(int argc, char** argv) {
  return poseidon::app::run_app(argc, argv, poseidon::app::run);
}
