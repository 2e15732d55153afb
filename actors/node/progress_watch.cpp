#include "actors/node/progress_watch.hpp"

#include "actors/links/link_options.hpp"
#include "actors/node/node.hpp"

#include <algorithm>

namespace poseidon {

namespace {

/// These have something to do only while training gets on. Others also handle ticks, reports and requests.
constexpr std::string_view that_train[] = {"layer",           "stream",       "copy_out",
                                           "gradient_push",   "server_shard", "factor_broadcast",
                                           "lowrank_exchange"};

std::uint64_t handled_by_training(const edge_book& book) {
  std::uint64_t sum = 0;
  for (const auto& table : book.tables())
    if (std::find(std::begin(that_train), std::end(that_train), table->type()) !=
        std::end(that_train))
      sum += table->handled();
  return sum;
}

/// "stream compute [0] (2), server_shard (1)"
std::string describe_backlog(const edge_book& book) {
  std::string out;
  for (const auto& [name, messages] : book.backlog())
    out += (out.empty() ? "" : ", ") + name + " (" + std::to_string(messages) + ")";
  return out;
}

}  // namespace

std::chrono::milliseconds progress_watch::limit() const {
  const auto asked = core_.setup.cluster.progress_limit;
  if (!hurried_) return asked;
  return asked.count() == 0 ? at_the_end : std::min<std::chrono::milliseconds>(asked, at_the_end);
}

std::optional<std::chrono::milliseconds> progress_watch::interval() const {
  // Who has left may still have to hand its solver state over.
  const bool alone = core_.setup.cluster.join.empty() && core_.setup.run->workers == 1 &&
                     core_.members.links().empty() && !core_.change.is_changing();
  if (alone || limit().count() == 0) return std::nullopt;
  return std::min<std::chrono::milliseconds>(limit() / 8 + std::chrono::milliseconds{1},
                                             std::chrono::seconds{5});
}

std::optional<std::string> progress_watch::look(clock::time_point now, bool paused) {
  // While nodes gather, the others may come as late as they like.
  const bool waits_for_users =
      core_.change.is_in(during(node_stage::starting, node_stage::gathering));
  const auto done = handled_by_training(*core_.setup.edges);
  // Who is done waits for the others for as long as these train, unless its user wants the end. Of those that it does not hear it does
  // not know that.
  const bool waits_for_others = core_.done && !hurried_ && !paused;
  const bool works = done != done_ && !paused;
  if (waits_for_users || core_.has_ended() || waits_for_others || !since_ || works) {
    done_ = done;
    since_ = now;
    return std::nullopt;
  }
  const auto still = now - *since_;
  if (still < limit()) return std::nullopt;
  if (const auto& around = core_.setup.around) return why_programs_stand_still(*around, now, still);
  std::string out =
      "training has stood still for " + seconds_text(still) + " (limit " + seconds_text(limit()) +
      (hurried_ ? ", as the run has been told to end" : ", --progress-limit") +
      "): nothing was computed here, and no values came, though all nodes can be heard";
  for (const auto& line : core_.members.quiet_since(now)) out += "; " + line;
  out += ". The node that has been quiet longest is probably the one that is stuck";
  const auto here = describe_backlog(*core_.setup.edges);
  return out + (here.empty() ? ". No actor of this node has a message to handle"
                             : ". Actors of this node, with messages that wait for them: " + here);
}

/// Each node knows whether its own program is the one that the others wait for. So one that waits itself is silent for a while longer, in
/// which that one is named by its own node.
std::optional<std::string> progress_watch::why_programs_stand_still(const program& around,
                                                                    clock::time_point now,
                                                                    clock::duration still) const {
  const auto name = [&](seat_id seat) { return "worker " + std::to_string(value(seat)); };
  const auto of_limit = "(limit " + seconds_text(limit()) +
                        (hurried_ ? ", as the run has been told to end)"
                                  : ", --progress-limit, POSEIDON_PROGRESS_LIMIT)");
  const std::string remedy =
      " Where a worker evaluates or saves alone for longer, give all workers a larger "
      "--progress-limit S";
  if (const auto away = around.calls.away(now); away && *away >= limit() / 2)
    return name(core_.view().seat) + " has not called Poseidon for " + seconds_text(*away) + " " +
           of_limit + ", and the others wait for it." + remedy;
  if (still < limit() + limit() / 2) return std::nullopt;
  std::string out = "training has stood still for " + seconds_text(still) + " " + of_limit + ": " +
                    name(core_.view().seat) + " waits for the others, and all of them can be heard";
  for (const auto& line : core_.members.quiet_since(now)) out += "; " + line;
  return out + ". The one that has been quiet longest is probably the one that all wait for." +
         remedy;
}

}  // namespace poseidon
