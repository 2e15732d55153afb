// How the leader shares a batch out among nodes of other speeds (--batch-share).
#include "actors/node/leading.hpp"
#include "actors/node/node.hpp"
#include "actors/run/throughput_probe.hpp"
#include "actors/run/view_shares.hpp"
#include "models/solver/solver_file.hpp"
#include "models/words.hpp"

#include <stdexcept>
#include <string>

namespace poseidon {

/// All nodes at the same time: those on one machine share it now as they will in training.
void leading::ask_speeds() {
  const auto& setup = core_.setup;
  const bool measure = setup.choices.shares.what == share_option::kind::automatic;
  if (measure) setup.display->note("batch: each node measures how fast it trains this net");
  const auto solver = self_contained(setup.run->solver).SerializeAsString();
  core_.members.broadcast(frames::time_net{solver, setup.run->seed, measure});
  const auto own = speed_of(*setup.run, setup.node, measure, display_of(setup));
  batch_ = own.batch;
  take_speed(core_.view().seat, {own.replicas, own.samples_s});
}

void leading::on(const frames::net_timed& f, seat_id from) {
  if (!core_.setup.run->shares.empty()) return newcomers_.timed(from, f.samples_s);
  // Who was asked for a view that one has left before it was told answers that question, too.
  if (!core_.view().members.empty()) take_speed(from, f);
}

void leading::take_speed(seat_id from, const frames::net_timed& speed) {
  if (split_.timed(from, speed) == core_.setup.run->workers) split_batch();
}

void leading::split_batch() {
  auto& setup = core_.setup;
  const bool measured = setup.choices.shares.what == share_option::kind::automatic;
  const auto rates = measured ? split_.samples_s() : setup.choices.shares.weights;
  try {
    auto& shares = setup.run->shares;
    shares = shares_by_weight(setup.run->workers * batch_, rates, split_.replicas());
    for (auto& share : shares) share.passes = passes_of(setup.run->solver);
  } catch (const std::invalid_argument& e) {
    throw spec_error("the batch cannot be shared: " + std::string(e.what()) + ".");
  }
  for (std::uint32_t w = 0; measured && w < rates.size(); ++w)
    newcomers_.timed(core_.view().seat_of(worker_id{w}), rates[w]);
  const auto self = core_.as_node.self();
  core_.as_node.tell<choose_routes>(selector_, {self, self, setup.run->shares});
}

void leading::check_replicas() const {
  if (!core_.setup.run->shares.empty()) return;
  const auto own = core_.run.compiled().replicas;
  if (const auto other = split_.other_number(own))
    throw spec_error(core_.view().name_of(other->first) + " splits its batch over " +
                     plural(other->second, "replica") + ", this node over " + std::to_string(own) +
                     ". Give every node as many with --devices, or the first "
                     "one --batch-share "
                     "auto, with which a gradient counts by its samples.");
}

}  // namespace poseidon
