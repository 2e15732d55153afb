#include "actors/parameters/node_copy.hpp"

#include "actors/core/logic_bug.hpp"
#include "actors/parameters/chunk_update.hpp"
#include "messages/float_payload.hpp"
#include "models/solver/solver_file.hpp"

#include <algorithm>

namespace poseidon {

node_copy::node_copy(node_copy_setup setup)
    : setup_(std::move(setup)),
      history_(setup_.store->cut(), setup_.slots, setup_.updates, setup_.former_states) {
  const auto& cut = setup_.store->cut();
  for (const auto p : setup_.parameters) {
    auto& values = values_.emplace_back(0);
    for (const auto id : cut.by_parameter[p]) {
      history_.add(id, setup_.computes);
      values += cut.chunks[id].count;
    }
    chunks_missing_ += cut.by_parameter[p].size();
  }
  for (const auto p : setup_.frozen) chunks_missing_ += cut.by_parameter[p].size();
}

bool node_copy::take_first(version_id version) {
  if (chunks_missing_ == 0)
    throw logic_bug("first values after the first clock", value(version), version_);
  if (--chunks_missing_ > 0) return false;
  version_ = value(version);
  for (const auto p : setup_.frozen) setup_.store->publish(p, version_);
  return true;
}

void node_copy::update(const host_arithmetic& arithmetic, const copy_rule& by,
                       const std::vector<std::vector<float>>& gradients) {
  const auto& cut = setup_.store->cut();
  for (std::size_t i = 0; i < setup_.parameters.size(); ++i) {
    const auto p = setup_.parameters[i];
    const auto step = step_of(by.solver, by.of_net[p], version_, by.scale);
    for (const auto id : cut.by_parameter[p]) {
      const auto& c = cut.chunks[id];
      arithmetic.update(by.rule, step, std::span(gradients[i]).subspan(c.offset, c.count),
                        setup_.store->at(id, version_), setup_.store->at(id, version_ + 1),
                        history_.to_update(id, version_));
    }
  }
}

void node_copy::publish() {
  for (const auto p : setup_.parameters) {
    for (const auto id : setup_.store->cut().by_parameter[p])
      setup_.store->set_applied(id, version_);
    setup_.store->publish(p, version_);
  }
}

bool node_copy::take_state(const history_inherited& m) {
  const auto values = floats(m.values);
  history_.write(m.chunk, m.slot, m.first, values);
  if (setup_.awaited_state == 0) return false;  // of a resumed run: it comes before any gradient
  setup_.awaited_state -= std::min(setup_.awaited_state, values.size());
  return setup_.awaited_state == 0 && std::exchange(snapshot_waits_, false);
}

std::shared_ptr<chunk_histories> node_copy::release(std::optional<version_id> version) {
  for (const auto p : setup_.parameters)
    for (const auto id : setup_.store->cut().by_parameter[p])
      require_reached(id, version, version_);
  return history_.release(version);
}

}  // namespace poseidon
