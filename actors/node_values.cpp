// actors/node_values.cpp - the fourth part of node: what parameters and solver state begin with, at the first clock of a
// run and of changed routes.
#include "actors/node.hpp"

#include <algorithm>

namespace poseidon {

void node::give_first_values() {
  const auto& net = compiled_->train.graph;
  const auto version = version_id{setup_.run->first_clock};
  write_first_values(net, setup_.run->seed, setup_.weights, value(version), *compiled_->store);
  std::vector<std::shared_ptr<parameter_arrays>> history;
  if (!setup_.resume.empty()) {
    const auto slots = history_count(rule_of(setup_.run->solver.spec).kind);
    for (auto& slot : read_solverstate(setup_.resume, net, slots).history)
      history.push_back(std::make_shared<parameter_arrays>(std::move(slot)));
  }
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
    tell<chunk_landed>(graph_->gather(c.parameter), {chunk, version});
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
