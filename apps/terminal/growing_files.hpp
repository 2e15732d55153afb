// apps/terminal/growing_files.hpp - what --csv and --tensorboard have in common: files that grow during a run.
#pragma once
#include "apps/terminal/progress_group.hpp"

#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>

namespace poseidon::app {

struct growing_file {
  std::filesystem::path path;
  std::ofstream file;
  bool broken = false;  ///< a warning has said so; nothing more is written
};

/// A file of training, and one of each test net, belong to the option that asked for them. A piece is written whole and at
/// once. If one cannot be written, a warning says so, and that file gets no more; training goes on.
class growing_files : public run_listener {
 protected:
  /// `option`: "--csv"; `pieces`: "rows". `display`: is told when a file ends early, and outlives this object.
  growing_files(std::string option, std::string pieces, progress& display);

  void append(growing_file& f, const std::string& piece);
  void stop(growing_file& f, const std::string& why);
  /// Why a call has just failed, which errno says.
  [[nodiscard]] static std::string reason();

  std::mutex mutex_;  ///< held by whoever calls append() or stop()

 private:
  std::string option_, pieces_;
  progress& display_;
};

}  // namespace poseidon::app
