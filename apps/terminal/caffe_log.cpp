#include "apps/terminal/caffe_log.hpp"

#include "apps/terminal/figures.hpp"
#include "models/spec/spec_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <pwd.h>
#include <unistd.h>
#include <utility>

namespace poseidon::app {

namespace {

/// Values as Caffe's streams print them.
std::string six_digits(double v) {
  return number(v, "%.6g");
}

/// The blob's name: Caffe repeats it for each value of a larger blob, where ours are "prob[0]", "prob[1]".
std::string blob_name(const std::string& output) {
  const auto open = output.rfind('[');
  return output.ends_with(']') && open != std::string::npos ? output.substr(0, open) : output;
}

std::tm local_time(std::chrono::system_clock::time_point when) {
  const auto seconds = std::chrono::system_clock::to_time_t(when);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  return parts;
}

std::string formatted(const std::tm& time, const char* format) {
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &time)};
}

std::string host_name() {
  char name[256] = "unknown";
  (void)gethostname(name, sizeof name - 1);
  return name;
}

std::string user_name() {
  char text[1024];
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(geteuid(), &entry, text, sizeof text, &found) != 0 || found == nullptr)
    return "invalid-user";  // glog's word
  return found->pw_name;
}

}  // namespace

std::string glog_line(char severity, const std::string& text,
                      std::chrono::system_clock::time_point when,
                      const std::source_location& from) {
  using namespace std::chrono;
  const auto micros = duration_cast<microseconds>(when.time_since_epoch()).count() % 1000000;
  const std::string path = from.file_name();
  char prefix[160];
  std::snprintf(prefix, sizeof prefix, "%c%s.%06d %5d %.80s:%u] ", severity,
                formatted(local_time(when), "%m%d %H:%M:%S").c_str(), static_cast<int>(micros),
                static_cast<int>(gettid()), path.substr(path.rfind('/') + 1).c_str(),
                static_cast<unsigned>(from.line()));
  return prefix + text;
}

void caffe_log::say(char severity, const std::string& text, const std::source_location& from) {
  write_(glog_line(severity, text, std::chrono::system_clock::now(), from));
}

void caffe_log::began(const std::string& net, const std::string& policy) {
  const std::lock_guard lock(mutex_);
  say('I', "Solving " + net);
  say('I', "Learning Rate Policy: " + policy);
}

void caffe_log::say_outputs(const std::string& net, const std::vector<double>& values,
                            const std::vector<output_value>& outputs) {
  for (std::size_t o = 0; o < outputs.size() && o < values.size(); ++o) {
    auto line = "    " + net + " net output #" + std::to_string(o) + ": " +
                blob_name(outputs[o].name) + " = " + six_digits(values[o]);
    if (const auto weight = static_cast<double>(outputs[o].loss_weight); weight != 0)
      line += " (* " + six_digits(weight) + " = " + six_digits(weight * values[o]) + " loss)";
    say('I', line);
  }
}

void caffe_log::trained(const progress::iteration& i, const std::vector<output_value>& outputs) {
  const std::lock_guard lock(mutex_);
  const auto iteration = "Iteration " + std::to_string(i.clock);
  say('I', iteration + ", loss = " + six_digits(i.loss));
  say_outputs("Train", i.outputs, outputs);
  say('I', iteration + ", lr = " + six_digits(i.learning_rate));
}

void caffe_log::tested(std::size_t test_net, std::uint64_t clock, const std::vector<double>& means,
                       const std::vector<output_value>& outputs) {
  const std::lock_guard lock(mutex_);
  say('I',
      "Iteration " + std::to_string(clock) + ", Testing net (#" + std::to_string(test_net) + ")");
  say_outputs("Test", means, outputs);
}

void caffe_log::snapshot(const std::string& path, const std::string& error) {
  const std::lock_guard lock(mutex_);
  if (!error.empty()) return say('E', "a snapshot failed: " + error);
  const auto* format = path.ends_with(".h5") ? "HDF5" : "binary proto";
  say('I', std::string("Snapshotting to ") + format + " file " + path);
}

void caffe_log::note(const std::string& text) {
  const std::lock_guard lock(mutex_);
  say('I', text);
}

void caffe_log::warning(const std::string& text) {
  const std::lock_guard lock(mutex_);
  say('W', text);
}

void caffe_log::ended(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (reason.empty()) return say('I', "Optimization Done.");
  say('E', reason);
}

// -- on standard error ----------------------------------------------------------------------------------

caffe_console::caffe_console(verbosity level, std::size_t nodes)
    : run_display(level, nodes, live_terminal(read_signs(), false)),
      log_([this](const std::string& line) { lines().err(line); }) {}

void caffe_console::began(const std::string& net, const std::string& policy) {
  if (level() != verbosity::quiet) log_.began(net, policy);
}

void caffe_console::interval(const iteration& i, const std::vector<output_value>& outputs,
                             const run_meter::interval&) {
  if (level() != verbosity::quiet) log_.trained(i, outputs);
}

void caffe_console::tested(std::size_t test_net, std::uint64_t clock,
                           const std::vector<double>& means,
                           const std::vector<output_value>& outputs) {
  log_.tested(test_net, clock, means, outputs);
}

void caffe_console::snapshot(std::uint64_t, const std::string& path, const std::string& error) {
  log_.snapshot(path, error);
}

void caffe_console::note(const std::string& line) {
  if (level() != verbosity::quiet) log_.note(line);
}

void caffe_console::warning(const std::string& line) {
  log_.warning(line);
}

void caffe_console::detail(const std::string& line) {
  if (level() == verbosity::debug) log_.note(line);
}

void caffe_console::ended(int, const std::string& reason) {
  if (level() != verbosity::quiet || !reason.empty()) log_.ended(reason);
  lines().close();
}

// -- in a file ------------------------------------------------------------------------------------------

log_file::log_file(const std::filesystem::path& folder, verbosity level)
    : level_(level), log_([this](const std::string& line) {
        file_ << line << std::endl;  // flushed: the log is read while training runs
      }) {
  const auto now = local_time(std::chrono::system_clock::now());
  const auto host = host_name();
  const auto name = "poseidon-node." + host + "." + user_name() + ".log.INFO." +
                    formatted(now, "%Y%m%d-%H%M%S") + "." + std::to_string(getpid());
  file_.open(folder / name);
  if (!file_)
    throw spec_error("--log-dir " + folder.string() + ": " + name + " cannot be written there: " +
                     std::strerror(errno) + ". Create the folder, or name another one.");
  file_ << "Log file created at: " << formatted(now, "%Y/%m/%d %H:%M:%S")
        << "\nRunning on machine: " << host
        << "\nLog line format: [IWE]mmdd hh:mm:ss.uuuuuu threadid file:line] msg" << std::endl;
  std::error_code ignored;  // not every file system has links
  const auto link = folder / "poseidon-node.INFO";
  std::filesystem::remove(link, ignored);
  std::filesystem::create_symlink(name, link, ignored);
}

void log_file::trained(const iteration& i, const std::vector<output_value>& outputs) {
  log_.trained(i, outputs);
}

void log_file::tested(std::size_t test_net, std::uint64_t clock, const std::vector<double>& means,
                      const std::vector<output_value>& outputs) {
  log_.tested(test_net, clock, means, outputs);
}

void log_file::snapshot(std::uint64_t, const std::string& path, const std::string& error) {
  log_.snapshot(path, error);
}

void log_file::note(const std::string& line) {
  log_.note(line);
}

void log_file::warning(const std::string& line) {
  log_.warning(line);
}

void log_file::detail(const std::string& line) {
  if (level_ == verbosity::debug) log_.note(line);
}

}  // namespace poseidon::app
