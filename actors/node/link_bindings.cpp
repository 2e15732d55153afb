#include "actors/node/link_bindings.hpp"

#include "actors/parameters/peer_window.hpp"
#include "actors/parameters/store_landing.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace poseidon {

namespace {

/// What a worker's solver reports of each net (actors/training/solver.hpp).
std::vector<report_shape> reports_of(const compiled_run& c, const run_definition& run,
                                     worker_id worker) {
  std::vector<report_shape> out{{static_cast<std::uint32_t>(1 + c.train.outputs.size()), 1}};
  for (std::size_t t = 0; t < c.tests.size(); ++t) {
    const auto batches = run.solver.spec.test_iter(static_cast<int>(t));
    // As if it had one replica: how a node shares its passes out among several does not change their number.
    const test_share share{static_cast<std::uint64_t>(batches), run.workers, value(worker), 1};
    out.push_back({static_cast<std::uint32_t>(c.tests[t].outputs.size()),
                   static_cast<std::uint32_t>(share.passes(0))});
  }
  return out;
}

/// In this view this node's program is given what the others have beside the parameters.
bool is_given_state(const binding_context& c) {
  return c.around != nullptr && c.before != nullptr && c.view.is_given_values(c.view.seat) &&
         !has_seat(c.view.lacking, c.view.seat);
}

/// Of the state that newcomers are given: its pieces from this peer.
std::vector<frames::shared_state> awaited_pieces(worker_id former_peer, const binding_context& c) {
  std::vector<frames::shared_state> out;
  const auto index = static_cast<std::uint32_t>(c.run.shared.size());
  for (const auto first : pieces_of(c.run.given.bytes))
    if (giver_of_piece(first, c.run.given, c.before->by_owner.size(),
                       c.view.former_without_values()) == former_peer)
      out.push_back({index, first});
  return out;
}

/// What worker 0 sends of the shared state, where this node's is another one.
std::vector<frames::shared_state> awaited_shared(seat_id seat, worker_id peer,
                                                 const binding_context& c) {
  if (is_given_state(c)) return awaited_pieces(c.view.former_worker_of(seat), c);
  std::vector<frames::shared_state> out;
  if (c.around != nullptr && c.before == nullptr && peer == worker_id{0})
    for (std::uint32_t i = 0; i < c.around->has_shared.size(); ++i)
      if (!c.around->has_shared[i])
        for (const auto first : pieces_of(c.run.shared[i].size)) out.push_back({i, first});
  return out;
}

link_limits limits_of(worker_id peer, const binding_context& c) {
  const auto& solver = c.run.solver.spec;
  link_limits out;
  out.history_slots = static_cast<std::uint32_t>(history_count(c.run));
  for (const auto& chunk : c.compiled.store->cut().chunks) {
    out.chunk_values.push_back(static_cast<std::uint32_t>(chunk.count));
    out.chunk_formats.push_back(chunk.format);
  }
  out.factors.resize(c.compiled.train.graph.layers.size());
  for (const auto& [layer, store] : c.parameters.factors())
    if (peer != no_worker) out.factors[layer] = store->of_node(peer);
  out.lowrank.resize(c.compiled.train.graph.layers.size());
  for (const auto& [layer, turns] : c.parameters.turns())
    if (peer != no_worker) out.lowrank[layer] = {turns->first_bytes, turns->second_bytes};
  out.first_version = c.run.first_clock;
  // A program trains for as long as it likes.
  out.may_say_nothing = !c.run.declared.empty();
  out.names_formats = out.may_say_nothing && c.run.optimizer == optimizer_rule::none;
  out.end_clock = out.may_say_nothing ? std::numeric_limits<std::uint64_t>::max() - 1
                                      : clocks_of(solver, solver.max_iter());
  out.clips = solver.clip_gradients() >= 0;
  out.watches = bool(c.reports);
  if (peer == worker_id{0} && c.before == nullptr)
    for (const auto& entry : c.run.shared) out.shared.push_back(entry.size);
  if (is_given_state(c)) {
    out.shared.assign(c.run.shared.size(), 0);
    out.shared.push_back(c.run.given.bytes);
  }
  if (c.view.leads() && peer != no_worker) out.reports = reports_of(c.compiled, c.run, peer);
  return out;
}

link_routes routes_of(const binding_context& c) {
  link_routes out;
  by_id<chunk_id, port<chunk_landed>> gather;
  by_id<chunk_id, port<history_inherited>> owners;
  const auto& cut = c.compiled.store->cut();
  for (const auto id : cut.chunks.ids()) {
    gather.push_back(c.parameters.receiver_of(cut.chunks[id].parameter));
    owners.push_back(c.parameters.history_owner(id));
  }
  std::map<layer_id, port<factors_landed>> broadcasts;
  for (const auto& [layer, store] : c.parameters.factors())
    broadcasts[layer] = c.parameters.broadcast(layer);
  std::map<layer_id, port<lowrank_landed>> lowrank;
  for (const auto& [layer, turns] : c.parameters.turns())
    lowrank[layer] = c.parameters.lowrank(layer);
  out.shard = c.parameters.shard();
  out.shard_squares = c.parameters.shard();
  if (c.parameters.keeper()) out.keeper = c.parameters.keeper();
  out.history_owner = [owners](chunk_id id) { return owners[id]; };
  out.history_checkpointer = c.parameters.checkpoints();
  out.gather = [gather](chunk_id id) { return gather[id]; };
  out.factors = [broadcasts](layer_id id) { return broadcasts.at(id); };
  out.lowrank = [lowrank](layer_id id) { return lowrank.at(id); };
  out.control = c.control;
  out.reports = c.reports;
  out.shared = c.shared;
  out.bound = c.bound;
  out.lost = c.lost;
  if (c.run.routes_follow_links) out.flow = c.flow;  // nobody else asks how fast a link is
  return out;
}

/// frame_check has compared index and size with worker 0's list, which is this node's.
store_landing::shared_places shared_places_of(const binding_context& c) {
  if (c.around == nullptr) return {};
  return [from = c.around](const frames::shared_state& f) {
    if (f.index == from->shared.size()) return from->newcomers.place(f.first);
    const auto bytes = from->shared[f.index].bytes.subspan(f.first);
    return bytes.first(std::min(bytes.size(), shared_piece_bytes));
  };
}

/// Where programs' steps begin that this node's peers make.
by_id<parameter_id, std::shared_ptr<const gradient_source>> bases_of(const binding_context& c) {
  if (c.around == nullptr || c.run.optimizer == optimizer_rule::none) return {};
  using source = std::shared_ptr<const gradient_source>;
  return by_id<parameter_id, source>(
      std::vector<source>(c.around->lent.begin(), c.around->lent.end()));
}

peer_window_setup window_of(seat_id peer, const binding_context& c) {
  peer_window_setup out{.self = c.view.self(),
                        .peer = c.view.worker_of(peer),
                        .first_clock = clock_id{c.run.first_clock},
                        .learned = {},
                        .store = c.compiled.store,
                        .factors = c.parameters.factors(),
                        .staleness = staleness_of(c.run),
                        .before = c.before,
                        .former_peer = c.view.former_worker_of(peer),
                        .joins = c.before != nullptr && c.view.is_given_values(c.view.seat),
                        .lost = c.view.former_without_values(),
                        .zeroes_lost_state = c.run.zeroes_lost_state,
                        .lowrank = c.parameters.turns()};
  const auto& net = c.compiled.train.graph;
  for (std::size_t p = 0; p < net.parameters.size(); ++p) {
    out.learned.push_back(is_updated(net, p));
    out.given.push_back(net.parameters[p].given);
  }
  if (c.around != nullptr)
    for (const bool has : c.around->has_parameters) out.has_first.push_back(has);
  out.shared = awaited_shared(peer, out.peer, c);
  return out;
}

}  // namespace

std::shared_ptr<const link_binding> binding_to(seat_id peer, const binding_context& c) {
  auto b = std::make_shared<link_binding>();
  b->self = {c.view.seat, c.view.epoch};
  b->peer = peer;
  b->worker = c.view.worker_of(peer);
  b->limits = limits_of(b->worker, c);
  b->routes = routes_of(c);
  b->landing = std::make_shared<store_landing>(c.compiled.store, c.parameters.factors(),
                                               shared_places_of(c), bases_of(c));
  b->gate = std::make_shared<peer_window>(window_of(peer, c));
  b->may_be_lost = c.run.survive > 0;
  b->goes_back = !c.view.lost.empty();
  b->fifo = c.run.solver.spec.poseidon().replay().fifo();
  return b;
}

}  // namespace poseidon
