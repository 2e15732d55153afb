// apps/node/option_table_verb.cpp
//
// poseidon-node option-table, for tools/docs and tests, and not in the help: the table of options as JSON. With arguments it takes
// these as training would, and says as what a node would be started and what has no effect. With `-` alone it does so for each
// line of standard input, the words of a command apart by tabs: a process for each of a thousand commands would take a minute.
#include "apps/node/given_options.hpp"
#include "apps/node/train_command.hpp"
#include "apps/node/verbs.hpp"
#include "apps/run_app.hpp"
#include "models/json.hpp"
#include "models/words.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace poseidon::app {

namespace {

json_object json_of(const option_row& row, const CLI::Option& option,
                    const CLI::Formatter& formatter) {
  json_object uses;
  for (const auto role : every_role) uses.put(name_of(role), name_of(use_of(row.owner, role)));
  auto value = formatter.make_option_opts(&option);
  if (!value.empty()) value.erase(0, 1);  // a space
  return json_object()
      .put("names", std::string(row.names))
      .put("value", value)
      .put("heading", heading_of(row.group))
      .put("owner", name_of(row.owner))
      .put("help", formatter.make_option_desc(&option))
      .put("chapter", row.chapter)
      .put("idle_unless", row.idle_unless)
      .put("of_gpus", row.of_gpus)
      .put("uses", uses);
}

void print_table(const CLI::App& app) {
  const auto formatter = std::dynamic_pointer_cast<CLI::Formatter>(app.get_formatter());
  json_array options(json_layout::lines), rules(json_layout::lines);
  for (const auto& row : option_rows())
    options.put(json_of(row, *app.get_option(std::string(name_of(row))), *formatter));
  for (const auto& rule : option_rules())
    rules.put(json_object()
                  .put("one", rule.one)
                  .put("kind", name_of(rule.what))
                  .put("other", rule.other)
                  .put("unless", rule.unless)
                  .put("why", rule.why));
  std::printf("%s\n", json_object().put("options", options).put("rules", rules).text().c_str());
}

/// Empty after --help and --version, which have been printed.
json_object judged(int argc, const char* const* argv) {
  train_command command;
  if (!parsed(command, argc, argv)) return {};
  const auto options = command.taken(argc, argv);
  return json_object()
      .put("role", name_of(given_options(command).role()))
      .put("warnings", json_array::from(options.warnings));
}

/// An answer is one line, too. What would end this program is the exit code and the words on standard error that it would end with.
json_object answer_to(const std::string& line) {
  std::vector<std::string> words{"option-table"};
  std::istringstream all(line);
  for (std::string word; std::getline(all, word, '\t');) words.push_back(word);
  std::vector<const char*> argv;
  for (const auto& word : words) argv.push_back(word.c_str());
  argv.push_back(nullptr);
  try {
    return judged(static_cast<int>(words.size()), argv.data());
  } catch (const std::exception& e) {
    return json_object().put("code", exit_code_of(e)).put("error", in_words(e.what()));
  }
}

}  // namespace

int option_table_verb(int argc, char** argv) {
  if (argc == 1) {
    print_table(train_command());
    return 0;
  }
  if (argc == 2 && std::string(argv[1]) == "-") {
    for (std::string line; std::getline(std::cin, line);) {
      std::printf("%s\n", answer_to(line).text().c_str());
      std::fflush(stdout);
    }
    return 0;
  }
  if (const auto said = judged(argc, argv); !said.empty()) std::printf("%s\n", said.text().c_str());
  return 0;
}

}  // namespace poseidon::app
