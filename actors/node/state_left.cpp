#include "actors/node/state_left.hpp"

#include "actors/parameters/handover.hpp"
#include "models/plan/keepers.hpp"

#include <algorithm>

namespace poseidon {

bool is_of_newcomers_alone(const node_core& core, const frames::next_view& next) {
  const auto& view = core.view();
  return !view.before.empty() && next.first_clock == view.first_clock &&
         !begins_again(view, next) && value(next.first_clock) > 0;
}

bool has_all_state(const node_core& core, const frames::next_view& next) {
  if (value(next.first_clock) == 0) return true;  // nothing has been updated yet
  if (is_of_newcomers_alone(core, next)) return false;
  const auto& change = core.change;
  const auto view = following(core.view(), next);
  const auto lost = view.former_lost();
  if (lost.empty() || history_count(*core.setup.run) == 0) return true;
  const auto kept = change.kept_cut(begins_again(core.view(), next));
  const auto& cut = kept ? *kept : core.run.store()->cut();
  const auto& chunks = cut.chunks;
  return std::all_of(chunks.ids().begin(), chunks.ids().end(), [&](chunk_id id) {
    return chunks[id].owner == every_worker ||
           !is_updated(core.run.train(), value(chunks[id].parameter)) ||
           giver_of(cut, id, lost) != no_worker;
  });
}

}  // namespace poseidon
