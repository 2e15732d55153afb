#include "apps/terminal/csv_file.hpp"

#include "apps/terminal/figures.hpp"
#include "models/spec/spec_file.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

namespace poseidon::app {

namespace {

std::string digits(double v) {
  return number(v, "%.9g");
}

/// A name with a comma or a quote in it, as RFC 4180 has it.
std::string field(const std::string& name) {
  if (name.find_first_of(",\"\n") == std::string::npos) return name;
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

csv_file::csv_file(std::filesystem::path path, bool resumed, progress& display)
    : path_(std::move(path)), resumed_(resumed), display_(display) {
  training_.path = path_;
  open(training_);
  if (training_.broken)
    throw spec_error("--csv " + path_.string() + " cannot be written: " + std::strerror(errno) +
                     ". Create its folder, or name another file.");
}

void csv_file::open(table& t) const {
  std::error_code none;
  const auto size = std::filesystem::file_size(t.path, none);
  t.has_rows = resumed_ && !none && size > 0;
  t.file.open(t.path, t.has_rows ? std::ios::app : std::ios::trunc);
  t.broken = !t.file;
}

double csv_file::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

void csv_file::write(table& t, const std::string& header, const std::string& row) {
  if (t.broken) return;
  errno = 0;
  t.file << (t.has_rows ? row : header + row) << std::flush;
  t.has_rows = true;
  if (t.file) return;
  t.broken = true;
  display_.warning("--csv " + t.path.string() +
                   " gets no more rows, because one cannot be written: " + std::strerror(errno));
}

void csv_file::trained(const iteration& i, const std::vector<output_value>& outputs) {
  const std::lock_guard lock(mutex_);
  std::string header = "NumIters,Seconds,LearningRate",
              row =
                  std::to_string(i.clock) + "," + digits(seconds()) + "," + digits(i.learning_rate);
  for (const auto& o : outputs) header += "," + field(o.name);
  for (const double v : i.outputs) row += "," + digits(v);
  write(training_, header + ",smoothed_loss\n", row + "," + digits(i.loss) + "\n");
}

void csv_file::tested(std::size_t test_net, std::uint64_t clock, const std::vector<double>& means,
                      const std::vector<output_value>& outputs) {
  const std::lock_guard lock(mutex_);
  auto& t = tests_[test_net];
  if (t.path.empty()) {
    t.path = path_;
    t.path.replace_extension(".test" + std::to_string(test_net) + path_.extension().string());
    open(t);
  }
  std::string header = "NumIters,Seconds", row = std::to_string(clock) + "," + digits(seconds());
  for (const auto& o : outputs) header += "," + field(o.name);
  for (const double v : means) row += "," + digits(v);
  write(t, header + "\n", row + "\n");
}

}  // namespace poseidon::app
