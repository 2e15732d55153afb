#include "apps/terminal/tensorboard_file.hpp"

#include "messages/wire/checksum.hpp"
#include "models/spec/spec_file.hpp"

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <span>
#include <string_view>
#include <unistd.h>

#include "poseidon/events.pb.h"

namespace poseidon::app {

namespace {

template <class T>
void append(std::string& out, T value) {
  static_assert(std::endian::native == std::endian::little);
  const auto bytes = std::bit_cast<std::array<char, sizeof(T)>>(value);
  out.append(bytes.data(), bytes.size());
}

/// A checksum of data that hold checksums would be weak; the format therefore changes it.
std::uint32_t masked_sum(std::string_view bytes) {
  const auto sum = crc32c(std::as_bytes(std::span(bytes)));
  return std::rotr(sum, 15) + 0xa282ead8u;
}

std::string record(const std::string& message) {
  std::string out;
  append(out, std::uint64_t{message.size()});
  append(out, masked_sum(out));
  out += message;
  append(out, masked_sum(message));
  return out;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::string event_record(double wall_time, std::uint64_t iteration,
                         const std::vector<std::pair<std::string, float>>& values) {
  events::Event event;
  event.set_wall_time(wall_time);
  event.set_step(static_cast<std::int64_t>(iteration));
  auto& summary = *event.mutable_summary();
  for (const auto& [name, number] : values) {
    auto& value = *summary.add_value();
    value.set_tag(name);
    value.set_simple_value(number);
  }
  return record(event.SerializeAsString());
}

std::string version_record(double wall_time) {
  events::Event event;
  event.set_wall_time(wall_time);
  event.set_file_version("brain.Event:2");
  return record(event.SerializeAsString());
}

tensorboard_file::tensorboard_file(std::filesystem::path folder, progress& display)
    : growing_files("--tensorboard", "values", display), folder_(std::move(folder)) {
  if (const auto why = open(training_, "train"); !why.empty())
    throw spec_error("--tensorboard " + folder_.string() + ": " + training_.path.string() +
                     " cannot be written: " + why + ". Name a folder where files can be made.");
}

std::string tensorboard_file::open(growing_file& f, const std::string& run) const {
  char host[256] = {};
  (void)gethostname(host, sizeof host - 1);
  const auto folder = folder_ / run;
  const auto now = seconds_now();
  const auto name = "events.out.tfevents." + std::to_string(static_cast<std::int64_t>(now)) + "." +
                    host + "." + std::to_string(getpid());
  f.path = folder / name;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return error.message();
  // Another host of the same name, as containers may have, must not write to the same file.
  int made = ::open(f.path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  for (int n = 1; made < 0 && errno == EEXIST; ++n) {
    f.path = folder / (name + "." + std::to_string(n));
    made = ::open(f.path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  }
  if (made < 0) return reason();
  ::close(made);
  errno = 0;
  f.file.open(f.path, std::ios::binary | std::ios::app);
  f.file << version_record(now) << std::flush;
  return f.file ? "" : reason();
}

void tensorboard_file::trained(const iteration& i, const std::vector<output_value>& outputs) {
  std::vector<std::pair<std::string, float>> values;
  for (std::size_t o = 0; o < outputs.size(); ++o)
    values.emplace_back(outputs[o].name, static_cast<float>(i.outputs.at(o)));
  values.emplace_back("smoothed_loss", static_cast<float>(i.loss));
  values.emplace_back("learning_rate", static_cast<float>(i.learning_rate));
  const std::lock_guard lock(mutex_);
  append(training_, event_record(seconds_now(), i.clock, values));
}

void tensorboard_file::tested(std::size_t test_net, std::uint64_t clock,
                              const std::vector<double>& means,
                              const std::vector<output_value>& outputs) {
  std::vector<std::pair<std::string, float>> values;
  for (std::size_t o = 0; o < outputs.size(); ++o)
    values.emplace_back(outputs[o].name, static_cast<float>(means.at(o)));
  const std::lock_guard lock(mutex_);
  auto& f = tests_[test_net];
  if (f.path.empty())
    if (const auto why = open(f, "test" + std::to_string(test_net)); !why.empty())
      stop(f, "they cannot be written: " + why);
  append(f, event_record(seconds_now(), clock, values));
}

}  // namespace poseidon::app
