// apps/terminal/reporter.hpp
//
// How a command that is not a training speaks: lines for people, a bar for what takes long, or with --json an object a
// line for programs. poseidon-data's commands, and poseidon-node's test and time.
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

  /// What the command was called for: also with --quiet, not with --json.
  void result(const std::string& line);
  /// What people like to see on the way: neither with --quiet nor with --json.
  void remark(const std::string& line);
  /// Something is wrong, and the work goes on: on standard error, and the event "warning".
  void warning(const std::string& line);
  /// With --json alone. With --quiet too, where `is_result`.
  void event(const json_event& e, bool is_result = true);
  /// A bar while the result lives; not with --quiet.
  [[nodiscard]] std::shared_ptr<void> working(long_task task);
  [[nodiscard]] task_display tasks();

  /// Takes the bars away; with --json the event "end". Nothing is to be said after it.
  void end(int exit_code, const std::string& reason);
  /// Runs `run`, then end() with what it returned or threw; what was thrown goes on.
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
