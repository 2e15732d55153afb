#include "actors/links/frame_queue.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

void frame_queue::push(send_frame f) {
  bytes_ += f.data.bytes.size();
  ++frames_;
  const auto priority = f.priority;
  waiting_[priority].push_back(std::make_shared<entry>(entry{std::move(f)}));
}

// A frame waits behind the one begun last unless it is more urgent. When the peer can open no more
// frames (max_open_frames), only one that is complete in a single piece may still go between.
bool frame_queue::starts_new() const {
  if (waiting_.empty()) return false;
  if (begun_.empty()) return true;
  const auto& [priority, line] = *waiting_.begin();
  if (priority >= begun_.back()->frame.priority) return false;
  return begun_.size() < max_open_frames || line.front()->frame.data.bytes.size() <= piece_bytes;
}

frame_queue::piece frame_queue::cut(const shared_entry& e) {
  const auto all = e->frame.data.bytes;
  const auto size = std::min(piece_bytes, all.size() - e->sent);
  piece p{e, all.subspan(e->sent, size), e->sent == 0, e->sent + size == all.size()};
  e->sent += size;
  bytes_ -= size;
  return p;
}

std::optional<frame_queue::piece> frame_queue::take_without_payload() {
  if (!starts_new() || !waiting_.begin()->second.front()->frame.data.bytes.empty())
    return std::nullopt;
  return take();
}

std::optional<frame_queue::piece> frame_queue::take() {
  if (!starts_new()) {
    if (begun_.empty()) return std::nullopt;
    auto p = cut(begun_.back());
    if (p.last) begun_.pop_back();
    return p;
  }
  const auto line = waiting_.begin();
  const auto next = std::move(line->second.front());
  line->second.pop_front();
  if (line->second.empty()) waiting_.erase(line);
  --frames_;
  auto p = cut(next);
  if (!p.last) begun_.push_back(next);
  return p;
}

}  // namespace poseidon
