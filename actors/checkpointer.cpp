#include "actors/checkpointer.hpp"

#include <algorithm>

namespace poseidon {

std::string snapshot_stem(const std::string& prefix, std::uint64_t iteration) {
  return prefix + "_iter_" + std::to_string(iteration);
}

checkpointer::checkpointer(actor_context context, checkpointer_setup setup)
    : actor(context), setup_(std::move(setup)) {}

void checkpointer::on(const connect_checkpointer& m) {
  neighbours_ = m;
}

void checkpointer::detail(const std::string& step) const {
  if (setup_.display) setup_.display->detail("checkpointer: " + step);
}

void checkpointer::on(const write_snapshot& m) {
  work_.emplace();
  work_->order = m;
  work_->values = setup_.store->copy(value(m.version));
  detail("copied the parameters of version " + std::to_string(value(m.version)));
  if (!m.with_state) {
    copied();
    return;
  }
  work_->state.iteration = value(m.version);
  work_->state.history.resize(setup_.history_slots);
  for (auto& slot : work_->state.history)
    for (const auto& p : work_->values) slot.emplace_back(p.size());
  work_->missing = setup_.store->cut().chunks.size() * setup_.history_slots;
  detail("waiting for " + std::to_string(work_->missing) +
         " pieces of solver state from all shards");
  tell(neighbours_.own_shard, copy_history{m.version});
  for (const auto& link : neighbours_.links)
    tell(link, send_frame{frames::gather_history{m.version}, {}, 0});
}

void checkpointer::on(const history_arrived& m) {
  if (!work_ || work_->missing == 0) return;  // of a snapshot given up when a peer was lost
  const auto& c = setup_.store->cut().chunks[value(m.chunk)];
  const auto* from = reinterpret_cast<const float*>(m.values.bytes.data());
  auto& to = work_->state.history.at(m.slot)[c.parameter];
  std::copy(from, from + c.count, to.begin() + static_cast<std::ptrdiff_t>(c.offset));
  if (--work_->missing == 0) copied();
}

void checkpointer::copied() {
  const auto w = std::move(*work_);
  work_.reset();
  tell(w.order.copied, snapshot_copied{w.order.version});
  const auto path = snapshot_stem(setup_.prefix, value(w.order.version)) + ".caffemodel";
  tell(w.order.written, snapshot_written{w.order.version, path, write(w)});
}

std::string checkpointer::write(const work& w) const {
  const std::filesystem::path stem = snapshot_stem(setup_.prefix, value(w.order.version));
  try {
    if (stem.has_parent_path()) std::filesystem::create_directories(stem.parent_path());
    const auto weights = stem.string() + ".caffemodel";
    write_file(weights, to_caffemodel(*setup_.train, w.values));
    if (!w.order.with_state) return {};
    auto state = w.state;
    state.learned_net = weights;
    write_file(stem.string() + ".solverstate", to_solverstate(*setup_.train, state));
    return {};
  } catch (const std::exception& e) {
    return e.what();
  }
}

void checkpointer::write_file(const std::filesystem::path& path,
                              const google::protobuf::Message& content) const {
  write_atomically(path, content);
  detail("wrote " + path.string() + ", " + std::to_string(content.ByteSizeLong()) + " bytes");
}

void checkpointer::on(const shut_down&) {
  neighbours_ = {};
  quit();
}

}  // namespace poseidon
