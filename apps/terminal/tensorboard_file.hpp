// apps/terminal/tensorboard_file.hpp - --tensorboard: the outputs of a run as event files, which TensorBoard draws while it
// goes on. TensorBoard shows each folder of files as a run, and lays the curves of the same name over each other.
#pragma once
#include "apps/terminal/growing_files.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace poseidon::app {

/// The bytes of one record of an event file: the values of an iteration.
///   u64 length, u32 masked CRC-32C of the length, the message `Event`, u32 masked CRC-32C of the message; little-endian.
/// `wall_time`: seconds since 1970.
/// Source   TensorFlow: core/util/event.proto, core/framework/summary.proto, lib/io/record_writer.
[[nodiscard]] std::string event_record(double wall_time, std::uint64_t iteration,
                                       const std::vector<std::pair<std::string, float>>& values);

/// The first record of each file.
[[nodiscard]] std::string version_record(double wall_time);

/// Writes a record for each display interval to FOLDER/train/, and one for each test of test net T to FOLDER/testT/. A file
/// that is there already is never touched: a resumed run begins another one, and TensorBoard joins them. Any thread.
class tensorboard_file : public growing_files {
 public:
  /// `display`: outlives this object.
  /// Errors   spec_error: nothing can be written there.
  tensorboard_file(std::filesystem::path folder, progress& display);

  void trained(const iteration& i, const std::vector<output_value>& outputs) override;
  void tested(std::size_t test_net, std::uint64_t clock, const std::vector<double>& means,
              const std::vector<output_value>& outputs) override;

 private:
  /// Returns  why it cannot be opened, or nothing.
  [[nodiscard]] std::string open(growing_file& f, const std::string& run) const;

  std::filesystem::path folder_;
  growing_file training_;
  std::map<std::size_t, growing_file> tests_;  // by test net
};

}  // namespace poseidon::app
