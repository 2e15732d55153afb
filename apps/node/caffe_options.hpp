// apps/node/caffe_options.hpp - options that poseidon-node accepts because Caffe's program `caffe` has them.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace poseidon::app {

class option_binder;

/// What a signal does to training.
enum class signal_effect { stop, snapshot, none };

/// The words of --sigint_effect and --sighup_effect.
/// Errors   spec_error, naming `option`.
[[nodiscard]] signal_effect parse_signal_effect(const std::string& option, const std::string& word);

/// Options of `caffe train` beyond --solver, --snapshot, --weights and --gpu.
struct caffe_words {
  std::string sigint_effect = "stop", sighup_effect = "snapshot";
  int level = 0;
  std::string stages;
  std::filesystem::path log_dir;
  std::string log_format = "text";
};
void add_caffe_options(option_binder& add, caffe_words& words);

/// glog's switches, and options that belong to other verbs of `caffe`: they are accepted, because gflags accepts each for
/// every verb. `elsewhere`: those that this verb does not have.
void add_ignored_options(CLI::App& app, const std::vector<std::string>& elsewhere);
/// A line for each option of another verb that was given.
[[nodiscard]] std::vector<std::string> ignored_options(const CLI::App& app,
                                                       const std::vector<std::string>& elsewhere);

/// The words of --stage: "A,B" as two.
[[nodiscard]] std::vector<std::string> comma_separated(const std::string& text);

}  // namespace poseidon::app
