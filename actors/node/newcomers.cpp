#include "actors/node/newcomers.hpp"

#include "actors/node/node.hpp"
#include "actors/run/run_codec.hpp"
#include "actors/run/view_shares.hpp"
#include "models/solver/solver_file.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace poseidon {

namespace {

/// Nodes that get ready at the same time: each has a link to every member.
constexpr std::size_t most_waiting = 64;

}  // namespace

std::string other_replicas(std::uint32_t joiner, std::uint32_t run) {
  return "it splits its batch over " + plural(joiner, "replica") +
         " (its --devices), the run has " + std::to_string(run) + " on each node";
}

std::vector<std::uint8_t> numbers_of(const parameter_routes& routes) {
  std::vector<std::uint8_t> out;
  for (const auto r : routes) out.push_back(static_cast<std::uint8_t>(r));
  return out;
}

frames::next_view next_view_of(const frames::view& told) {
  frames::next_view out{told.epoch, told.first_clock, told.members, told.routes, {}, told.shares};
  out.witnesses = told.witnesses;
  out.given = told.given;
  return out;
}

std::optional<std::string> newcomers::objection() const {
  const auto late = "training runs already with " + plural(core_.view().members.size(), "node");
  if (core_.setup.around && !core_.setup.run->takes_newcomers)
    return late +
           ", and they were started without newcomers=accept: they cannot give a newcomer what it "
           "needs";
  if (core_.setup.around && all_.size() < most_waiting) return std::nullopt;
  if (core_.setup.node.own_data)
    return late + ", and with --own-data each node has a part of the data that no other one has";
  const auto replicas = core_.run.built() ? core_.run.compiled().replicas : 1;
  if (const auto why = too_few_samples(*core_.setup.run,
                                       core_.view().members.size() + all_.size() + 1, replicas);
      why && !core_.setup.choices.by_schedule)
    return why;
  if (all_.size() >= most_waiting)
    return plural(all_.size(), "node") + " are about to join already; try again in a moment";
  return std::nullopt;
}

void newcomers::add(const frames::member& newcomer) {
  all_[newcomer.seat] = {newcomer};
  if (knows_run_) tell(newcomer.seat);
}

void newcomers::tell_all(const std::vector<seat_id>& before) {
  knows_run_ = true;
  former_ = {before, {}};
  for (const auto& [seat, who] : all_) tell(seat);
}

/// The first node knows it, as long as it leads: it is its option.
bool newcomers::measures_speeds() const {
  const auto& setup = core_.setup;
  return setup.choices.shares.what == share_option::kind::automatic && !setup.run->shares.empty();
}

/// The view itself follows when all have drained.
void newcomers::tell(seat_id seat, bool witness) const {
  if (!witness && measures_speeds()) {
    const auto& run = *core_.setup.run;
    const auto solver = self_contained(run.solver).SerializeAsString();
    core_.members.send(seat, {frames::time_net{solver, run.seed, true}, {}, 0});
  }
  auto told = run_for_joiners();
  if (witness) {
    told.solver.clear();
    told.routes.clear();
    told.wire.clear();
    told.reasons.clear();
    told.data_sets.clear();
  }
  told.you = seat;
  told.prospect = true;
  // Of a view that forms some may never come, and some leave: it links those that stay.
  if (core_.change.knows_next())
    std::erase_if(told.members, [&](const auto& m) {
      return !core_.change.brings(m.seat) || !has_drained(m.seat);
    });
  if (!told.shares.empty()) {  // its own part is not known yet
    told.shares.clear();
    told.replicas = 0;
  }
  core_.members.send(seat, {std::move(told), {}, 0});
}

frames::view newcomers::run_for_joiners() const {
  auto told = view_of(*core_.setup.run);
  told.run = core_.view().run;
  told.epoch = core_.view().epoch;
  told.members = core_.view().members;
  told.witnesses = core_.view().witnesses;
  told.watched = core_.setup.records.shows;
  if (told.shares.empty() && core_.run.built()) told.replicas = core_.run.compiled().replicas;
  return told;
}

void newcomers::timed(seat_id seat, double samples_s) {
  const bool comes = all_.contains(seat);
  if (samples_s <= 0 || (!comes && !core_.view().has(seat))) return;
  speeds_[seat] = samples_s;
  core_.setup.display->note("batch: " + core_.view().name_of(seat) + " trains " +
                            std::to_string(std::llround(samples_s)) + " samples/s alone");
}

std::optional<frames::member> newcomers::ready(const frames::join_ready& f, seat_id from) {
  const auto found = all_.find(from);
  if (found == all_.end()) return std::nullopt;
  const auto& run = core_.run.compiled();
  std::string why;
  if (core_.setup.run->shares.empty() && f.replicas != run.replicas)
    why = other_replicas(f.replicas, run.replicas) +
          ", and the run has begun with equal shares. Start it with as many in --devices";
  else if (!core_.setup.around && f.replicas > run.whole_batch)
    why = "it has " + plural(f.replicas, "replica") + ", and a batch has " +
          std::to_string(run.whole_batch) + " samples";
  if (!why.empty()) {
    core_.as_node.tell<close_link>(core_.members.links().at(from),
                                   {why, frames::goodbye::cause::refused});
    return std::nullopt;
  }
  found->second.replicas = f.replicas;
  found->second.is_ready = true;
  core_.setup.display->note(core_.view().name_of(from) + " is ready to join");
  return found->second.as_member;
}

std::vector<frames::member> newcomers::that_are_ready() const {
  std::vector<frames::member> out;
  for (const auto& [seat, newcomer] : all_)
    if (newcomer.is_ready) out.push_back(newcomer.as_member);
  return out;
}

std::vector<frames::member> newcomers::take_all() {
  std::vector<frames::member> out;
  for (const auto& [seat, newcomer] : std::exchange(all_, {})) out.push_back(newcomer.as_member);
  return out;
}

bool newcomers::gone(seat_id seat, const std::string& why) {
  speeds_.erase(seat);
  if (all_.erase(seat) == 0) return false;
  core_.setup.display->note("worker " + std::to_string(value(seat)) +
                            ", which was about to join, has gone: " + why);
  return true;
}

std::vector<double> newcomers::weights_of(const std::vector<frames::member>& members) const {
  const bool by_speed = std::all_of(members.begin(), members.end(),
                                    [&](const auto& m) { return speeds_.contains(m.seat); });
  const auto& now = core_.setup.run->shares;
  double sum = 0;
  for (const auto& share : now) sum += static_cast<double>(share.samples);
  std::vector<double> out;
  for (const auto& m : members) {
    const auto worker = core_.view().worker_of(m.seat);
    out.push_back(by_speed              ? speeds_.at(m.seat)
                  : worker == no_worker ? sum / static_cast<double>(now.size())
                                        : static_cast<double>(now[value(worker)].samples));
  }
  return out;
}

std::vector<frames::share> newcomers::shares_for(const std::vector<frames::member>& members) const {
  const auto& now = core_.setup.run->shares;
  if (now.empty()) return {};
  std::vector<std::uint32_t> replicas;
  for (const auto& m : members) {
    const auto worker = core_.view().worker_of(m.seat);
    replicas.push_back(worker == no_worker ? all_.at(m.seat).replicas
                                           : now[value(worker)].replicas);
  }
  std::vector<frames::share> out;
  const auto batch = core_.run.compiled().whole_batch;
  for (const auto& s : shares_by_weight(members.size() * batch, weights_of(members), replicas))
    out.push_back({s.samples, s.replicas});
  return out;
}

void newcomers::remember_the_view() {
  former_ = {};
  for (const auto& m : core_.view().members) former_.seats.push_back(m.seat);
  former_.routes = numbers_of(core_.setup.run->routes);
}

bool newcomers::has_drained(seat_id seat) const {
  return std::find(former_.seats.begin(), former_.seats.end(), seat) != former_.seats.end();
}

void newcomers::tell_next_view(const frames::next_view& next) {
  if (!core_.change.knows_next()) remember_the_view();
  for (const auto& m : next.members)
    if (!has_drained(m.seat) && !core_.change.brings(m.seat)) tell_view(m.seat, next);
}

void newcomers::tell_view(seat_id seat, const frames::next_view& next) const {
  auto told = run_for_joiners();
  told.you = seat;
  told.epoch = next.epoch;
  told.first_clock = next.first_clock;
  told.first_sample = core_.run.first_sample_of(next.first_clock);
  told.test_phases = core_.run.test_phases_before(next.first_clock);
  told.before = former_;
  told.members = next.members;
  told.witnesses = next.witnesses;
  told.routes = next.routes;
  told.shares = next.shares;
  told.given = next.given;
  told.reasons.clear();
  core_.members.send(seat, {std::move(told), {}, 0});
}

void newcomers::take_over() {
  knows_run_ = true;
  remember_the_view();
}

/// Some may have come with the view that this one replaces, which had begun here.
void newcomers::come_with(const agreed_view& view, const frames::next_view& next) {
  for (std::size_t w = 0; w < view.members.size(); ++w) {
    const auto& m = view.members[w];
    if (!view.brought(m.seat)) continue;
    const auto replicas =
        next.shares.empty() ? core_.run.compiled().replicas : next.shares[w].replicas;
    all_.try_emplace(m.seat, newcomer{m, replicas});
  }
}

void newcomers::come_to_first_node() {
  former_ = {core_.view().before, {}};
  for (const auto& m : core_.view().members)
    if (core_.view().brought(m.seat)) all_.try_emplace(m.seat, newcomer{m});
}

void newcomers::began() {
  std::erase_if(all_, [&](const auto& n) { return core_.view().has(n.first); });
}

}  // namespace poseidon
