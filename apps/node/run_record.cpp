#include "apps/node/run_record.hpp"

#include "apps/web/view_json.hpp"
#include "models/files/atomic_file.hpp"
#include "models/files/paused_name.hpp"
#include "models/json.hpp"

#include <utility>

namespace poseidon::app {

run_record::run_record(std::filesystem::path path, std::shared_ptr<cluster_view> view,
                       progress& display)
    : path_(std::move(path)),
      view_(std::move(view)),
      display_(display),
      thread_([this] { run(); }) {}

run_record::~run_record() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    due_ = snapshots_ && !left_out_;  // with the end
  }
  changed_.notify_all();
  thread_.join();
}

void run_record::snapshot(std::uint64_t, const std::string& path, const std::string& error) {
  if (!error.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    left_out_ = path.find(paused_name) != std::string::npos;
    if (left_out_) return;
    due_ = snapshots_ = true;
  }
  changed_.notify_all();
}

void run_record::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return due_ || over_; });
    if (!due_) return;
    due_ = false;
    lock.unlock();
    write();
    lock.lock();
  }
}

void run_record::write() {
  try {
    view_->sample();
    json_object file;
    file.put("traceEvents", json_value{"[]"}).put("poseidon", json_value{recording_json(*view_)});
    write_atomically(path_, file.text());
  } catch (const std::exception& e) {
    if (!std::exchange(failed_, true))
      display_.warning("what the page shows cannot be kept beside the snapshots: " +
                       std::string(e.what()));
  }
}

}  // namespace poseidon::app
