// actors/node/node_values.cpp - node sends first values and solver state; which pieces travel is in parameters/.
#include "actors/node/node.hpp"
#include "actors/parameters/first_values.hpp"
#include "actors/run/compile_run.hpp"

#include <utility>

namespace poseidon {

/// Shown until all first values have arrived.
void node::show_first_values() {
  if (member_.links().empty()) return;
  const bool gives = view().leads();
  const auto slots =
      setup_.run->first_clock == 0 ? 0 : history_count(rule_of(setup_.run->solver.spec).kind);
  long_task task;
  task.what = gives ? "sending the parameters" : "receiving the parameters";
  task.in = long_task::unit::bytes;
  task.total =
      first_value_bytes(run_.store()->cut(), slots, view().self, gives, setup_.run->workers);
  const auto before = setup_.view->own().carried();
  task.done = [view = setup_.view, before, gives] {
    const auto now = view->own().carried();
    return gives ? now.bytes_out - before.bytes_out : now.bytes_in - before.bytes_in;
  };
  first_values_shown_ = setup_.display->working(std::move(task));
}

void node::give_first_values() {
  auto& store = *run_.store();
  const auto version = version_id{setup_.run->first_clock};
  std::shared_ptr<void> reading;
  if (!setup_.weights.empty()) {
    const auto& file = setup_.resume.empty() ? setup_.weights.front() : setup_.resume;
    reading = show(display_of(setup_), {"reading " + file.string(), 0, {}});
  }
  write_first_values(run_.train(), setup_.run->seed, setup_.weights, value(version), store);
  std::vector<std::shared_ptr<parameter_arrays>> history;
  if (!setup_.resume.empty()) {
    const auto slots = history_count(rule_of(setup_.run->solver.spec).kind);
    for (auto& slot : read_solverstate(setup_.resume, run_.train(), slots).history)
      history.push_back(std::make_shared<parameter_arrays>(std::move(slot)));
  }
  reading.reset();
  for (std::size_t id = 0; id < store.cut().chunks.size(); ++id) {
    // The solver state first: a shard must have it before a clock's gradients can be complete.
    give(first_history(store.cut(), id, history, view().self, setup_.run->workers), version);
    const auto chunk = chunk_id{static_cast<std::uint32_t>(id)};
    const payload values{run_.store(), std::as_bytes(store.at(id, value(version)))};
    member_.broadcast(send_frame{frames::fresh_parameters{chunk, version}, values, 0});
    tell<chunk_landed>(run_.graph().parameters().receiver_of(store.cut().chunks[id].parameter),
                       {chunk, version});
  }
}

void node::give(const std::vector<history_piece>& pieces, version_id version) {
  const auto& chunks = run_.store()->cut().chunks;
  for (const auto& p : pieces) {
    if (p.here)
      tell<history_arrived>(
          run_.graph().parameters().history_owner(chunks[value(p.chunk)].parameter),
          {view().self, p.chunk, p.slot, version, p.values, p.first});
    for (const auto worker : p.away)
      member_.send(worker, {frames::install_history{p.chunk, p.slot, p.first}, p.values, 0});
  }
}

}  // namespace poseidon
