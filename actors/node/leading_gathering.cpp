// How the leader gathers the nodes of the first view, and begins again where one of them goes before it has been told.
#include "actors/node/joining.hpp"
#include "actors/node/leading.hpp"
#include "actors/node/node.hpp"
#include "actors/run/throughput_probe.hpp"
#include "models/words.hpp"

#include <unistd.h>
#include <utility>

namespace poseidon {

namespace {

/// Where other machines reach a node that listens at `address`.
std::string address_for_others(const std::string& address) {
  auto at = parse_host_port(address);
  if (!is_any_address(at)) return address;
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "THIS-MACHINE:" + std::to_string(at.port);
  at.host = name;
  return to_string(at);
}

/// Programs join programs, and nodes that train a net of their own each other. Who is refused does not end a run that waits.
std::optional<std::string> objection_to_kind(const link_identity& joiner, bool of_programs) {
  const bool computes = joiner.wants == link_identity::purpose::compute;
  if (computes == of_programs) return std::nullopt;
  return of_programs
             ? "it is a poseidon-node, and worker 0 is a program that computes its gradients "
               "itself, with libposeidon. Every other worker has to be such a program, too"
             : "it is a program that computes its gradients itself, and worker 0 is a "
               "poseidon-node, which trains a net of its own. Join it with poseidon-node "
               "--join, or start this program as the first worker, with --listen and --nodes";
}

}  // namespace

void leading::plan_first_view() {
  plan_.emplace(view_plan_setup{.workers = core_.setup.run->workers,
                                .members = in_,
                                .by_schedule = core_.setup.choices.by_schedule});
}

void leading::gather() {
  const auto& setup = core_.setup;
  core_.change.gathers();
  gathers_ = !is_alone();
  const auto address = core_.members.lead(*setup.cluster.listen, core_.here());
  const frames::member self{core_.view().seat, address, core_.members.own_identity().fingerprint};
  in_ = {self};
  plan_first_view();
  if (is_alone()) {
    core_.members.enter(formed(core_.view(), {self}, clock_id{setup.run->first_clock}, false));
    newcomers_.tell_all();
    witnesses_.tell_all();
  }
  const auto bound = setup.cluster.network->bound();
  setup.display->note("listening on " + address + numeric_note(address, bound) + "; " +
                      (is_alone() ? "others may join at any time"
                                  : "waiting for " + plural(setup.run->workers - 1,
                                                            setup.around ? "worker" : "node")));
  if (const auto why = why_unreachable(address, bound); !why.empty()) setup.display->warning(why);
  const auto reach = address_for_others(address);
  const bool secret = !setup.cluster.token.empty(), tls = setup.cluster.tls != nullptr;
  setup.display->note(setup.around
                          ? "others join with join=" + reach + " or POSEIDON_JOIN=" + reach +
                                (secret ? " and POSEIDON_TOKEN_FILE" : "") +
                                (tls ? " and POSEIDON_TLS_CERT, _KEY and _CA" : "")
                          : "others join with: poseidon-node --join " + reach +
                                (secret ? " --token-file FILE" : "") +
                                (tls ? " --tls-cert FILE --tls-key FILE --tls-ca FILE" : ""));
}

/// With equal shares a gradient is the mean over all replicas only if every node has the same number.
std::optional<std::string> leading::objection_to(const link_identity& joiner) const {
  if (core_.has_ended() || core_.done) return "the run ends";
  if (joiner.wants == link_identity::purpose::witness) return witnesses_.objection();
  if (auto why = objection_to_kind(joiner, core_.setup.around != nullptr)) return why;
  if (!gathers_) return newcomers_.objection();
  const auto own = replicas_of(core_.setup.node, batch_);
  if (core_.setup.choices.shares.what != share_option::kind::equal || joiner.replicas == 0 ||
      joiner.replicas == own)
    return std::nullopt;
  return other_replicas(joiner.replicas, own) +
         ". Start it with as many in --devices, or the first node with --batch-share auto, with "
         "which a gradient counts by its samples";
}

/// Everybody's user, as long as these are few: in a large run that would be frames by the square of its workers.
void leading::tell_who_gathers(seat_id newest) {
  constexpr std::size_t few = 64;
  const auto workers = core_.setup.run->workers;
  const frames::gathering told{static_cast<std::uint32_t>(in_.size()),
                               static_cast<std::uint32_t>(workers)};
  core_.setup.display->note(those_who_gather(told));
  if (workers <= few)
    core_.members.broadcast(told);
  else
    core_.members.send(newest, {told, {}, 0});
}

void leading::joined(const frames::member& joiner) {
  const auto& setup = core_.setup;
  if (!gathers_) return newcomers_.add(joiner);
  setup.display->detail("membership: " + std::to_string(core_.members.links().size() + 1) + " of " +
                        plural(setup.run->workers, "node") + " are in; worker " +
                        std::to_string(value(joiner.seat)) + " listens on " + joiner.address);
  in_.push_back(joiner);
  if (setup.around) tell_who_gathers(joiner.seat);
  if (in_.size() == setup.run->workers) gathers_ = false;
  plan_->joined(joiner);
}

bool leading::agree(const plan::agree_on_first_view& m) {
  const auto& run = *core_.setup.run;
  core_.members.enter(formed(core_.view(), m.members, clock_id{run.first_clock},
                             run.survive > 0 && run.declared.empty()));
  const bool equal = core_.setup.choices.shares.what == share_option::kind::equal;
  if (equal) return !awaits_routes_ && tell_view_if_known();
  ask_speeds();
  return false;
}

/// No other node has been told more than to time the net. What was asked of all is asked again when there are enough.
void leading::gather_again() {
  auto& run = *core_.setup.run;
  gathers_ = true;
  split_ = {};
  run.shares.clear();
  auto none = view_of_leader();
  none.run = core_.view().run;
  core_.members.enter(none);
  plan_first_view();
  if (std::exchange(measures_, false)) choose_anew();
  for (const auto& m : newcomers_.take_all()) joined(m);  // who came too late may be in time now
}

/// What the selector has asked over links may never be answered.
void leading::choose_anew() {
  core_.as_node.tell<shut_down>(selector_, {});
  spawn_selector(core_.setup.choices.lossy);
  awaits_routes_ = core_.setup.choices.shares.what == share_option::kind::equal;
  const auto self = core_.as_node.self();
  if (awaits_routes_) core_.as_node.tell<choose_routes>(selector_, {self, self, {}});
}

}  // namespace poseidon
