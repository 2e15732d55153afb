#include "apps/terminal/csv_file.hpp"

#include "apps/terminal/figures.hpp"
#include "models/files/atomic_file.hpp"
#include "models/spec/spec_file.hpp"

#include <charconv>
#include <fstream>
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

std::string without_end(const std::string& line) {
  return line.substr(0, line.size() - 1);
}

}  // namespace

csv_file::csv_file(std::filesystem::path path, std::optional<std::uint64_t> resumed_at,
                   progress& display)
    : growing_files("--csv", "rows", display), path_(std::move(path)), resumed_at_(resumed_at) {
  training_.path = path_;
  open(training_);
  if (training_.broken)
    throw spec_error("--csv " + path_.string() + " cannot be written: " + reason() +
                     ". Create its folder, or name another file.");
}

void csv_file::open(table& t) const {
  if (resumed_at_) keep_rows(t);
  t.file.open(t.path, t.header.empty() ? std::ios::trunc : std::ios::app);
  t.broken = !t.file;
}

/// Drops the rows that the resumed run repeats, and one that a power cut has broken.
void csv_file::keep_rows(table& t) const {
  std::ifstream before(t.path);
  std::string kept, line;
  while (std::getline(before, line) && !before.eof()) {
    line += '\n';
    if (t.header.empty()) {
      t.header = kept = line;
      continue;
    }
    std::uint64_t clock = 0;
    const auto* const end = line.data() + line.size();
    const auto read = std::from_chars(line.data(), end, clock);
    if (read.ec != std::errc{} || clock >= *resumed_at_) continue;
    if (*read.ptr == ',') std::from_chars(read.ptr + 1, end, t.seconds);
    kept += line;
  }
  before.close();
  if (!t.header.empty()) write_atomically(t.path, kept);
}

double csv_file::seconds() const {
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - began_;
  return training_.seconds + since.count();
}

void csv_file::write(table& t, const std::string& header, const std::string& row) {
  if (t.broken) return;
  if (!t.header.empty() && t.header != header)
    return stop(t, "its columns are " + without_end(t.header) + ", and those of this run are " +
                       without_end(header) + ". Name another file.");
  append(t, t.header.empty() ? header + row : row);
  t.header = header;
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
