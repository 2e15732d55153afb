// apps/node/run_record.hpp - keeps what the page of a run shows beside its snapshots, for `poseidon-graph view` after the end.
#pragma once
#include "actors/telemetry/cluster_view.hpp"
#include "apps/terminal/progress_group.hpp"

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

namespace poseidon::app {

/// Writes the file when a snapshot has been written, and after the end if there was one. Whoever reports a snapshot does not
/// wait for the disk: a thread writes. If it cannot, a warning says so, once; training goes on.
class run_record : public run_listener {
 public:
  /// `display`: is told of errors, and outlives this object.
  run_record(std::filesystem::path path, std::shared_ptr<cluster_view> view, progress& display);
  ~run_record() override;
  run_record(const run_record&) = delete;
  run_record& operator=(const run_record&) = delete;

  void snapshot(std::uint64_t clock, const std::string& path, const std::string& error) override;

 private:
  void run();
  void write();

  std::filesystem::path path_;
  std::shared_ptr<cluster_view> view_;
  progress& display_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool due_ = false, snapshots_ = false, over_ = false, failed_ = false;
  bool left_out_ = false;  // the last snapshot was that of a node that hears nobody
  std::thread thread_;     // last: it uses all of the others
};

}  // namespace poseidon::app
