// apps/terminal/reporter.hpp
//
// Output of commands other than training: lines for people and a bar for long work, or with --json one object per line
// for programs. poseidon-data's commands, and poseidon-node's test and time.
#pragma once
#include "actors/core/long_task.hpp"
#include "apps/terminal/json_event.hpp"
#include "apps/terminal/screen.hpp"
#include "apps/terminal/task_list.hpp"

#include <exception>
#include <memory>
#include <string>

namespace CLI {
class App;
}

namespace poseidon::app {

struct output_words {
  bool quiet = false, json = false;
};
/// --quiet and --json.
void add_output_options(CLI::App& app, output_words& words);

class reporter {
 public:
  explicit reporter(output_words words);

  /// The command's result: printed also with --quiet, not with --json.
  void result(const std::string& line);
  /// Additional information: printed neither with --quiet nor with --json.
  void remark(const std::string& line);
  /// A problem that does not end the work: a line on standard error and the event "warning".
  void warning(const std::string& line);
  /// Only with --json; with --quiet, too, if `is_result`.
  void event(const json_event& e, bool is_result = true);
  /// Shows a bar while the result lives; not with --quiet.
  [[nodiscard]] std::shared_ptr<void> working(long_task task);
  [[nodiscard]] task_display tasks();

  /// Removes the bars; with --json writes the event "end". The last call.
  void end(int exit_code, const std::string& reason);
  /// Runs `run`, then end() with its result or exception; rethrows the exception.
  /// `code_of`: the exit code that an exception will have.
  template <class Run, class CodeOf>
  void until_end(Run run, CodeOf code_of) {
    try {
      run();
      end(0, {});
    } catch (const std::exception& e) {
      end(code_of(e), e.what());
      throw;
    }
  }

 private:
  output_words words_;
  task_list tasks_;
  screen screen_;
};

}  // namespace poseidon::app
