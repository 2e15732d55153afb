#include "actors/node/joining.hpp"

#include "actors/node/node.hpp"
#include "actors/run/run_codec.hpp"
#include "actors/run/throughput_probe.hpp"
#include "models/words.hpp"

#include <cerrno>
#include <utility>

namespace poseidon {

namespace {

/// So often a node looks again for the leader, for a minute by node's pauses: a large net takes its time to change hands.
constexpr int most_put_off = 240;
/// So often a member that a newcomer cannot reach may be one that has just left, or is lost and the others do not know it yet. Its
/// machine refuses at once, four times a second; a machine that does not answer takes its time.
constexpr int most_unreached = 3;
constexpr int most_refused = 20;

}  // namespace

std::string those_who_gather(const frames::gathering& f) {
  const auto all = plural(f.wanted, "worker");
  if (f.there >= f.wanted) return "all " + all + " are here";
  return "waiting for " + plural(f.wanted - f.there, "more worker") + ": " +
         std::to_string(f.there) + " of " + std::to_string(f.wanted) + " are here";
}

void joining::join() {
  core_.change.gathers();
  at_ = core_.setup.cluster.join;
  dial();
}

void joining::dial() {
  ready_ = false;
  if (at_.empty()) return;
  const auto& node = core_.setup.node;
  try {
    core_.members.join(at_, node.replicas != 0 ? node.replicas : node.compute->replicas(),
                       core_.setup.cluster.listen, core_.here());
  } catch (const leader_unsettled&) {
    if (++put_off_ > most_put_off) throw;
    return later_();
  }
  at_.clear();
  put_off_ = 0;
}

bool joining::lost(const link_lost& m) {
  const auto& view = core_.view();
  // It has no number yet where its leader handed over just then, or was lost; others that it was told of may know the next one.
  const bool asks_others =
      view.seat == no_seat && (m.on_purpose || core_.setup.cluster.join.size() > 1);
  const bool waits = core_.change.at() == node_stage::gathering &&
                     (view.seat != no_seat || asks_others) && !view.leads() && !view.has(view.seat);
  // Another one than the leader may go for a reason of its own, which ends nobody else where the others go on without it.
  const bool of_another =
      m.peer != view.leader() && core_.setup.run && core_.setup.run->survive > 0;
  if (!waits || (m.reason && at_.empty() && !of_another)) return false;
  core_.members.lost(m.peer, m.why);
  if (at_.empty() && m.peer != view.leader()) return true;
  if (at_.empty()) join_again("the leader is gone", m.peer);
  if (!core_.members.links().empty()) return true;
  core_.members.start_over();
  std::exchange(pauses_, false) ? later_() : dial();
  return true;
}

void joining::join_again(const std::string& why, seat_id without) {
  core_.setup.display->note(why + "; joining again");
  core_.run.forget_trial();
  for (const auto& other : core_.view().members)
    if (other.seat != without) at_.push_back(parse_host_port(other.address));
  for (const auto& at : core_.setup.cluster.join) at_.push_back(at);
  for (const auto& [seat, link] : core_.members.links())
    core_.as_node.tell<close_link>(link, {"it joins again"});
}

void joining::on(const frames::gathering& f) const {
  core_.setup.display->note(those_who_gather(f));
}

/// This node has no view yet.
void joining::on(const frames::time_net& f) {
  const auto& setup = core_.setup;
  frames::view only_net;
  only_net.solver = f.solver;
  only_net.seed = f.seed;
  only_net.members.resize(2);
  const auto run = run_of(only_net);
  if (f.measure) setup.display->note("batch: this node measures how fast it trains this net");
  const auto speed = speed_of(run, setup.node, f.measure, display_of(setup));
  core_.members.to_leader(frames::net_timed{speed.replicas, speed.samples_s});
}

/// What the view says of the run, and what it asks of this node.
void joining::take_run(const frames::view& f) {
  auto& setup = core_.setup;
  core_.members.enter(view_told(f));
  for (const auto& line : core_.view().lines()) setup.display->detail(line);
  setup.run = run_of(f);
  compare_programs(f.prospect || !f.before.seats.empty());
  compare_batch_rules();
  take_number_of_replicas(f);
  core_.watched = f.watched;
  if (core_.watched) setup.records.trace->watch();
}

void joining::prepare(const frames::view& f) {
  take_run(f);
  auto& run = *core_.setup.run;
  core_.setup.display->note(plural(run.workers, "node") +
                            (run.workers == 1 ? " trains already; getting ready to join it"
                                              : " train already; getting ready to join them"));
  const auto place = as_id<worker_id>(run.workers++);
  const auto replicas = core_.run.try_out(place);
  try {
    core_.members.dial_members(core_.here());
  } catch (const socket_error& e) {
    const bool refused = e.error == ECONNREFUSED;
    if (e.error == ECANCELED || ++unreached_ == (refused ? most_refused : most_unreached)) throw;
    pauses_ = refused;
    return join_again(e.what(), no_seat);
  }
  core_.members.to_leader(frames::join_ready{replicas});
  ready_ = true;
}

void joining::enter(const frames::view& f) {
  take_run(f);
  core_.run.begin_after(f.before);
  if (!f.before.seats.empty()) core_.change.enters(f.first_clock, f.test_phases, next_view_of(f));
  if (core_.setup.around && !f.before.seats.empty()) {
    core_.setup.around->newcomers.expect(f.first_clock, f.given);
    core_.setup.around->shared_in_flight.expect(f.given.bytes);
    core_.setup.around->clocks.start_at(value(f.first_clock));
  }
  const auto& view = core_.view();
  core_.setup.display->note(
      "joined: worker " + std::to_string(value(view.seat)) + " of " +
      std::to_string(view.members.size()) +
      (view.is_first()
           ? ""
           : ", from iteration " +
                 std::to_string(iteration_of(*core_.setup.run, value(f.first_clock))) + " on") +
      "; this node listens on " + core_.members.address());
  if (const auto why =
          why_unreachable(core_.members.address(), core_.setup.cluster.network->bound());
      !why.empty())
    core_.setup.display->warning(why);
  core_.members.dial_members(core_.here(), core_.setup.run->survive > 0 ? &lost_ : nullptr);
  for (const auto& c : core_.members.take_early())
    (void)core_.members.admit(c, false, core_.here());
}

void joining::compare_programs(bool later) const {
  const auto& run = *core_.setup.run;
  const auto& around = core_.setup.around;
  if (!around && run.declared.empty()) return;
  if (!around)
    throw std::invalid_argument(
        "worker 0 is a program that computes its gradients itself, with libposeidon. Every other "
        "worker has to be such a program, too");
  if (run.declared.empty())
    throw std::invalid_argument(
        "worker 0 is a poseidon-node, which trains a net of its own. Join it with poseidon-node "
        "--join, or start this program as the first worker, with --listen and --nodes");
  if (const auto text = difference(around->declared, run.declared); !text.empty())
    throw std::invalid_argument(text);
  if (around->takes_newcomers != run.takes_newcomers) {
    const auto words = [](bool takes) { return takes ? "newcomers=accept" : "newcomers=refuse"; };
    throw std::invalid_argument(
        std::string("worker 0 was started with ") + words(run.takes_newcomers) +
        ", and this one with " + words(around->takes_newcomers) +
        ": who may join later, and is given what, is the same for all workers");
  }
  if (const auto text = difference(around->shared, run.shared); !text.empty())
    throw std::invalid_argument(text);
  const auto steps = [](optimizer_rule rule) {
    return rule == optimizer_rule::none
               ? std::string("its own steps")
               : "steps of " + std::string(name_of(rule)) + " on the shards";
  };
  if (around->optimizer != run.optimizer)
    throw std::invalid_argument("the program of worker 0 makes " + steps(run.optimizer) +
                                ", this one " + steps(around->optimizer) +
                                ": all workers need the same optimizer and mode");
  around->wire = wire_of_programs(run);
  if (const auto wanted = around->wanted_wire; wanted && *wanted != around->wire)
    throw std::invalid_argument(
        "this worker was given --wire=" + std::string(to_string(*wanted)) +
        ", and worker 0 has --wire=" + std::string(to_string(around->wire)) +
        ", which counts for all. Leave the option out here, or give "
        "worker 0 the same");
  if (!later) around->take_equal(run.first_digests, run.shared);
}

void joining::compare_batch_rules() const {
  const auto of_run = batch_rule_of(*core_.setup.run);
  const auto own = core_.setup.choices.global_batch.value_or(of_run);
  if (own != of_run)
    throw std::invalid_argument("this node was given --global-batch " + to_string(own) +
                                ", and the run that it joins has --global-batch " +
                                to_string(of_run) +
                                ", which its first node has chosen for all. Leave the option out");
  if (of_run == batch_rule::keep && core_.setup.node.own_data)
    throw std::invalid_argument(
        "this node was given --own-data, and the run that it joins has --global-batch keep, with "
        "which every node needs all of the data. Leave --own-data out");
}

/// With equal shares a gradient is the mean over all replicas only if every node has the same number. A machine that was
/// not told how many to have does as the first node, however many cores either has.
void joining::take_number_of_replicas(const frames::view& v) {
  auto& node = core_.setup.node;
  if (!v.shares.empty() || v.replicas == 0 || node.replicas != 0 || node.compute->replicas() != 0)
    return;
  node.replicas = v.replicas;
  core_.setup.display->detail("batch: split over " + plural(v.replicas, "replica") +
                              ", as on the first node");
}

}  // namespace poseidon
