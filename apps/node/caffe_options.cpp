#include "apps/node/caffe_options.hpp"

#include "apps/node/option_binder.hpp"
#include "models/spec/spec_file.hpp"
#include "models/words.hpp"

#include <CLI/CLI.hpp>

#include <sstream>

namespace poseidon::app {

namespace {

/// Why an option of `caffe` has no effect here; as in Caffe, which says nothing.
std::string why_ignored(const std::string& option) {
  if (option == "--iterations") return "training ends after the solver's max_iter iterations.";
  if (option == "--phase") return "it belongs to the verb time.";
  if (option == "--model") return "the solver names the net.";
  if (option == "--solver") return "the verb wants a net, with --model.";
  return "it belongs to the verb train.";
}

}  // namespace

signal_effect parse_signal_effect(const std::string& option, const std::string& word) {
  if (word == "stop") return signal_effect::stop;
  if (word == "snapshot") return signal_effect::snapshot;
  if (word == "none") return signal_effect::none;
  const std::vector<std::string> known{"stop", "snapshot", "none"};
  throw spec_error(option + " " + word + ": it can be " + comma_list(known) + "." +
                   did_you_mean(word, known));
}

void add_caffe_options(option_binder& add, caffe_words& words) {
  add.value("--level", words.level);
  add.value("--stage", words.stages);
  add.value("--sigint-effect", words.sigint_effect);
  add.value("--sighup-effect", words.sighup_effect);
  add.value("--log-format", words.log_format);
  add.value("--log-dir", words.log_dir);
}

void add_ignored_options(CLI::App& app, const std::vector<std::string>& elsewhere) {
  const auto group = std::string();  // not in the help
  for (const std::string name : {"--logtostderr", "--alsologtostderr"})
    app.add_flag(name)->group(group);
  for (const std::string name : {"--minloglevel", "--stderrthreshold", "--v"})
    app.add_option(name)->group(group);
  for (const auto& name : elsewhere) app.add_option(name)->group(group);
}

std::vector<std::string> ignored_options(const CLI::App& app,
                                         const std::vector<std::string>& elsewhere) {
  std::vector<std::string> lines;
  for (const auto& name : elsewhere)
    if (app.count(name) > 0)
      lines.push_back(name + " has no effect here, as in Caffe: " + why_ignored(name));
  return lines;
}

std::vector<std::string> comma_separated(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream rest(text);
  for (std::string part; std::getline(rest, part, ',');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

}  // namespace poseidon::app
