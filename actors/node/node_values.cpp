// actors/node/node_values.cpp - the fourth part of node: what parameters and solver state begin with, at the first clock of a
// run and of changed routes.
#include "actors/node/node.hpp"

#include <algorithm>

namespace poseidon {

/// The first node sends all parameters, and what solver state there is, to the others; each of them gets as much. Shown
/// until all of it is there.
void node::show_first_values() {
  if (links_.empty() || change_) return;
  const bool first = self_ == leader_;
  const auto& cut = compiled_->store->cut();
  const auto slots =
      setup_.run->first_clock == 0 ? 0 : history_count(rule_of(setup_.run->solver.spec).kind);
  long_task task;
  task.what = first ? "sending the parameters" : "receiving the parameters";
  task.in = long_task::unit::bytes;
  const auto receivers = first ? links_.size() : 1;
  for (const auto& c : cut.chunks) {
    const auto bytes = c.count * sizeof(float);
    task.total += bytes * receivers;
    // Solver state goes to whoever keeps it.
    if (c.owner == every_worker)
      task.total += bytes * slots * receivers;
    else if (first ? c.owner != 0 : c.owner == value(self_))
      task.total += bytes * slots;
  }
  const auto before = setup_.view->own().carried();
  task.done = [view = setup_.view, before, first] {
    const auto now = view->own().carried();
    return first ? now.bytes_out - before.bytes_out : now.bytes_in - before.bytes_in;
  };
  first_values_shown_ = setup_.display->working(std::move(task));
}

void node::give_first_values() {
  const auto& net = compiled_->train.graph;
  const auto version = version_id{setup_.run->first_clock};
  std::shared_ptr<void> reading;
  if (!setup_.weights.empty()) {
    const auto& file = setup_.resume.empty() ? setup_.weights.front() : setup_.resume;
    reading = show(shown(), {"reading " + file.string(), 0, {}});
  }
  write_first_values(net, setup_.run->seed, setup_.weights, value(version), *compiled_->store);
  std::vector<std::shared_ptr<parameter_arrays>> history;
  if (!setup_.resume.empty()) {
    const auto slots = history_count(rule_of(setup_.run->solver.spec).kind);
    for (auto& slot : read_solverstate(setup_.resume, net, slots).history)
      history.push_back(std::make_shared<parameter_arrays>(std::move(slot)));
  }
  reading.reset();
  const auto& cut = compiled_->store->cut();
  for (std::size_t id = 0; id < cut.chunks.size(); ++id) {
    const auto& c = cut.chunks[id];
    const auto chunk = chunk_id{static_cast<std::uint32_t>(id)};
    const auto part = [&c](const std::shared_ptr<parameter_arrays>& of) {
      return payload{of, std::as_bytes(std::span((*of)[c.parameter]).subspan(c.offset, c.count))};
    };
    // The solver state first: a shard must have it before a clock's gradients can be complete.
    for (std::uint32_t slot = 0; slot < history.size(); ++slot) {
      const auto data = part(history[slot]);
      if (c.owner == 0 || c.owner == every_worker)
        tell<history_arrived>(graph_->history_owner(c.parameter),
                              {self_, chunk, slot, version, data});
      for (const auto& [worker, link] : links_)
        if (c.owner == worker || c.owner == every_worker)
          tell<send_frame>(link, {frames::install_history{chunk, slot}, data, 0},
                           data.bytes.size());
    }
    const payload data{compiled_->store, std::as_bytes(compiled_->store->at(id, value(version)))};
    for (const auto& [worker, link] : links_)
      tell<send_frame>(link, {frames::fresh_parameters{chunk, version}, data, 0},
                       data.bytes.size());
    tell<chunk_landed>(graph_->receiver_of(c.parameter), {chunk, version});
  }
}

/// What this node's shard kept goes to the shard or the nodes that keep it now. What a factor_broadcast kept, every
/// node has: there is nothing to send.
void node::hand_over_history() {
  const auto& before = change_->before->chunks;
  const auto& now = compiled_->store->cut();
  for (const auto& history : change_->histories)
    for (const auto& [old_id, slots] : *history) {
      const auto& from = before[old_id];
      if (!is_updated(compiled_->train.graph, from.parameter)) continue;
      for (const auto id : now.by_parameter[from.parameter]) {
        const auto& to = now.chunks[id];
        const auto begin = std::max(from.offset, to.offset);
        const auto end = std::min(from.offset + from.count, to.offset + to.count);
        const auto chunk = chunk_id{static_cast<std::uint32_t>(id)};
        for (std::uint32_t slot = 0; begin < end && slot < slots.size(); ++slot) {
          if (slots[slot].empty()) continue;  // of a device that does not compute
          const payload values{
              history,
              std::as_bytes(std::span(slots[slot]).subspan(begin - from.offset, end - begin))};
          const auto first = begin - to.offset;
          if (to.owner == every_worker || to.owner == value(self_))
            tell<history_arrived>(graph_->history_owner(to.parameter),
                                  {self_, chunk, slot, version_id{}, values, first});
          if (from.owner == every_worker) continue;
          for (const auto& [worker, link] : links_)
            if (to.owner == every_worker || to.owner == worker)
              tell<send_frame>(link, {frames::install_history{chunk, slot, first}, values, 0},
                               values.bytes.size());
        }
      }
    }
}

}  // namespace poseidon
