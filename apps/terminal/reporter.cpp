#include "apps/terminal/reporter.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <utility>

namespace poseidon::app {

void add_output_options(CLI::App& app, output_words& words) {
  app.add_flag("--quiet", words.quiet, "says nothing but results and errors, and draws nothing");
  app.add_flag("--json", words.json,
               "writes an object a line for programs, and nothing else, on standard output");
}

reporter::reporter(output_words words)
    : words_(words),
      screen_(words.quiet ? std::nullopt : live_terminal(read_signs(), words.json),
              [this](std::size_t columns) {
                return tasks_.lines(columns, std::chrono::steady_clock::now());
              }) {}

void reporter::result(const std::string& line) {
  if (!words_.json) screen_.out(line);
}

void reporter::remark(const std::string& line) {
  if (!words_.json && !words_.quiet) screen_.out(line);
}

void reporter::warning(const std::string& line) {
  if (words_.json) screen_.out(json_event("warning").text("text", line).line());
  screen_.err(line);
}

void reporter::event(const json_event& e, bool is_result) {
  if (words_.json && (is_result || !words_.quiet)) screen_.out(e.line());
}

std::shared_ptr<void> reporter::working(long_task task) {
  return tasks_.begin(std::move(task), std::chrono::steady_clock::now());
}

task_display reporter::tasks() {
  return [this](long_task task) { return working(std::move(task)); };
}

void reporter::end(int exit_code, const std::string& reason) {
  if (words_.json) {
    json_event e("end");
    e.count("exit_code", static_cast<std::uint64_t>(exit_code)).text("reason", reason);
    screen_.out(e.line());
  }
  screen_.close();
}

}  // namespace poseidon::app
