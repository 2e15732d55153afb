// apps/cli.hpp - what every program and verb does with its arguments.
#pragma once
#include "models/spec/spec_file.hpp"

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace poseidon::app {

/// A program or verb with --help and --version; its help shows each option's default.
class command_line : public CLI::App {
 public:
  command_line(const std::string& description, const std::string& name);
};

/// For an option's check(): says what is wrong with 0 and less in a few words; CLI11's own check prints the largest double.
extern const CLI::Validator positive_number;

/// The arguments as CLI11 reads them. Options may be written as Caffe's programs accept them (gflags): with one dash, with
/// underscores, and a switch as --noshuffle or --shuffle=false.
/// Errors   spec_error: an option or a verb that the program does not have, with the one that was probably meant.
[[nodiscard]] std::vector<std::string> usual_words(const CLI::App& app, int argc,
                                                   const char* const* argv);

/// Throws   spec_error: `program` has no such verb, with the one that was probably meant.
[[noreturn]] void refuse_verb(const std::string& program, const std::string& word,
                              const std::vector<std::string>& verbs);

/// Reads the arguments of a program or verb. False: --help or --version has been printed.
/// Errors   spec_error with one line.
[[nodiscard]] bool parsed(CLI::App& app, int argc, const char* const* argv);

}  // namespace poseidon::app
