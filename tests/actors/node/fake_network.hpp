// tests/actors/node/fake_network.hpp
//
// A network for nodes in one simulated scheduler: no port, no thread, no bytes on a line. A connection joins two fake
// links, one in each node, or one fake link and the test, which then plays the peer frame by frame. A fake link does with
// a frame what link_receiver does: it asks the gate, lands values and tells the actor that the binding names.
#pragma once
#include "actors/links/control_budget.hpp"
#include "actors/links/network.hpp"
#include "messages/wire/codec.hpp"
#include "tests/sim.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace poseidon::test {

/// One frame on a fake line, with a copy of its values.
struct frame_in {
  frame_writer from;
  frame_header header;
  payload data;
};
/// test -> fake_link: the connection breaks.
struct cut_line {
  std::string why;
  bool silent = false;  ///< nothing comes any more, and the peer's end is not seen
};

}  // namespace poseidon::test
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::test::frame_in)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::test::cut_line)

namespace poseidon::test {

/// A connection. Side 0 has dialed. What a side is sent before it has a link waits there.
struct line {
  struct side {
    caf::weak_actor_ptr link;
    bool opened = false;
    std::vector<frame_in> waiting;
  };
  side sides[2];
  std::string hosts[2];  // where the node on each side accepts links
  /// What comes out of the line on side `to` for a frame that goes in on the other one. Empty: the same frame.
  std::function<std::vector<frame_in>(int to, frame_in)> mischief;
  bool is_cut = false;
  std::weak_ptr<const tcp_socket> dialed, accepted;  ///< of sides 0 and 1, until they have links

  void carry(int to, frame_in f) {
    if (is_cut) return;
    if (is_stalled_[to]) return on_the_way_[to].push_back(std::move(f));
    if (!mischief) return put(to, std::move(f));
    for (auto& out : mischief(to, std::move(f))) put(to, std::move(out));
  }
  /// What goes to that side stays on the way, until the line goes on.
  void stall(int to) { is_stalled_[to] = true; }
  void go_on(int to) {
    is_stalled_[to] = false;
    for (auto& f : std::exchange(on_the_way_[to], {})) carry(to, std::move(f));
  }
  /// Side `here` has closed the connection.
  void end_other(int here) {
    go_on(1 - here);
    if (const auto link = sides[1 - here].link.lock(); link && !is_cut)
      caf::anon_send(caf::actor_cast<caf::actor>(link), cut_line{"closed by its peer"});
  }
  /// Past the mischief.
  void put(int to, frame_in f) {
    auto& s = sides[to];
    if (!s.opened) return s.waiting.push_back(std::move(f));
    if (const auto link = s.link.lock())
      caf::anon_send(caf::actor_cast<caf::actor>(link), std::move(f));
  }
  /// Nothing more is carried; a side that has a link sees it, the other one when it has.
  void cut(bool silent = false) {
    is_cut = true;
    for (const auto& s : sides)
      if (const auto link = s.link.lock())
        caf::anon_send(caf::actor_cast<caf::actor>(link), cut_line{"reset", silent});
  }

 private:
  bool is_stalled_[2] = {false, false};
  std::vector<frame_in> on_the_way_[2];
};

class fake_link : public actor<fake_link> {
 public:
  static constexpr const char* type_name = "network_link";
  using accepts = messages<send_frame, bind_link, close_link, frame_in, cut_line>;
  using sends = messages<gradient_arrived, sum_arrived, squares_arrived, chunk_landed,
                         factors_landed, lowrank_landed, history_inherited, history_arrived,
                         control_arrived, report_arrived, link_bound, link_lost, shared_landed>;

  fake_link(actor_context context, std::shared_ptr<line> on, int side, link_options options)
      : actor<fake_link>(context),
        on_(std::move(on)),
        side_(side),
        address_(options.address),
        kind_(options.kind),
        counters_(options.counters),
        binding_(std::make_shared<const link_binding>(std::move(options.binding))) {}

  void on(const send_frame& m) {
    if (binding_->between_views && is_of_a_view(m.header)) return;
    if (m.epoch != 0 && m.epoch != binding_->self.epoch) return;
    auto bytes = std::make_shared<std::vector<std::byte>>(m.data.bytes.begin(), m.data.bytes.end());
    on_->carry(1 - side_, {binding_->self, m.header, {bytes, *bytes}});
  }
  void on(const bind_link& m) {
    binding_ = m.binding;
    tell(binding_->routes.bound, link_bound{binding_->peer, binding_->self.epoch});
  }
  void on(const close_link& m) {
    on_->carry(1 - side_, {binding_->self, frames::goodbye{m.reason, m.of}, {}});
    lose("closed the link to " + peer(), true, m.reason);
  }
  void on(const cut_line& m) {
    const bool gap = counters_->gap_ended_at != 0;
    slept_ = gap && !m.silent;
    fresh_ = !gap && !m.silent;
    lose("the connection to " + peer() + " is lost: " + m.why, false);
  }
  void on(const frame_in& m) {
    try {
      if (is_late(m)) return;
      decoded_header head;
      head.from = m.from;
      head.header = m.header;
      head.payload_bytes = m.data.bytes.size();
      check_frame(head, binding_->peer, binding_->limits);
      budget_.admit(m.header, m.data.bytes.size(), std::chrono::steady_clock::time_point{});
      if (binding_->gate) binding_->gate->admit(m.header);
      epoch_ = m.from.epoch;
      std::visit([&](const auto& f) { arrive(f, m.data); }, m.header);
    } catch (const bad_frame& e) {
      lose(peer() + " sent a bad frame: " + e.what(), false);
    }
  }
  void ended() { binding_.reset(); }

 private:
  /// As link_receiver's.
  [[nodiscard]] bool is_late(const frame_in& m) const {
    const auto here = binding_->self.epoch;
    if (is_for_the_page(m.header)) return m.from.epoch != here;
    if (!is_of_a_view(m.header)) return false;
    if (binding_->between_views) return true;
    if (m.from.epoch == here) return false;
    if (m.from.epoch > here)
      throw bad_frame(kind_name(m.header), "epoch", std::to_string(m.from.epoch),
                      std::to_string(here));
    return true;
  }
  [[nodiscard]] std::string peer() const { return peer_name(binding_->peer, address_, kind_); }
  void lose(const std::string& why, bool on_purpose, const std::string& reason = "",
            frames::goodbye::cause of = frames::goodbye::cause::run, bool said_goodbye = false) {
    link_lost lost{binding_->peer, why + (reason.empty() ? "" : ": " + reason), on_purpose};
    if (!reason.empty()) lost.reason = reason;
    lost.of = of;
    lost.fresh = fresh_;
    lost.slept = slept_;
    lost.said_goodbye = said_goodbye;
    tell(binding_->routes.lost, std::move(lost));
    if (!on_purpose) on_->end_other(side_);
    quit();
  }

  void arrive(const frames::heartbeat&, const payload&) {}
  void arrive(const frames::goodbye& f, const payload&) {
    lose(peer() + " said goodbye", true, f.reason, f.of, true);
  }
  void arrive(const frames::push_gradient& f, const payload& data) {
    tell(routes().shard, gradient_arrived{from(), f.chunk, f.clock, data});
  }
  void arrive(const frames::summed_gradient& f, const payload& data) {
    tell(routes().keeper, sum_arrived{f, data});
  }
  void arrive(const frames::gradient_squares& f, const payload& data) {
    tell(routes().shard_squares, squares_arrived{from(), f.clock, data});
  }
  void arrive(const frames::fresh_parameters& f, const payload& data) {
    land(data, binding_->landing->place(f.chunk, f.version));
    tell(routes().gather(f.chunk), chunk_landed{f.chunk, f.version, f.nothing});
  }
  void arrive(const frames::factors& f, const payload& data) {
    land(data, binding_->landing->place_factors(from(), f));
    tell(routes().factors(f.layer), factors_landed{from(), f.clock, f.rows, f.first});
  }
  void arrive(const frames::lowrank_factor& f, const payload& data) {
    tell(routes().lowrank(f.layer), lowrank_landed{from(), f.clock, f.second, data});
  }
  void arrive(const frames::install_history& f, const payload& data) {
    tell(routes().history_owner(f.chunk), history_inherited{f.chunk, f.slot, f.first, data});
  }
  void arrive(const frames::history& f, const payload& data) {
    tell(routes().history_checkpointer, history_arrived{from(), f.chunk, f.slot, f.version, data});
  }
  void arrive(const frames::shared_state& f, const payload& data) {
    land(data, binding_->landing->place_shared(f));
    tell(routes().shared, shared_landed{data.bytes.size()});
  }
  void arrive(const frames::report&, const payload& data) {
    if (routes().reports) tell(routes().reports, report_arrived{binding_->peer, data});
  }
  void arrive(const frames::probe& f, const payload&) {
    if (f.last) tell(routes().control, control_arrived{from(), f, binding_->peer, epoch_});
  }
  template <class F>
  void arrive(const F& f, const payload&) {
    tell(routes().control, control_arrived{from(), f, binding_->peer, epoch_});
  }
  static void land(const payload& from, std::span<std::byte> to) {
    std::copy(from.bytes.begin(), from.bytes.end(), to.begin());
  }
  [[nodiscard]] worker_id from() const { return binding_->worker; }
  [[nodiscard]] const link_routes& routes() const { return binding_->routes; }

  std::shared_ptr<line> on_;
  int side_;
  std::string address_;
  peer_kind kind_;
  std::shared_ptr<link_counters> counters_;
  bool fresh_ = true, slept_ = false;
  std::uint64_t epoch_ = 0;  // of the frame that arrives
  std::shared_ptr<const link_binding> binding_;
  control_budget budget_{std::chrono::steady_clock::time_point{}};  // no time passes
};

class fake_acceptor : public actor<fake_acceptor> {
 public:
  static constexpr const char* type_name = "link_acceptor";
  using accepts = messages<stop_accepting>;
  using sends = messages<>;
  fake_acceptor(actor_context context, std::function<void()> stop)
      : actor<fake_acceptor>(context), stop_(std::move(stop)) {}
  void on(const stop_accepting&) {
    stop_();
    quit();
  }

 private:
  std::function<void()> stop_;
};

/// What the fake networks of all nodes share.
class fake_wiring {
 public:
  struct host {
    port<link_accepted> accepted;
    std::function<link_identity()> identify;
  };
  std::map<std::string, host> hosts;                                         // by address
  std::map<const tcp_socket*, std::pair<std::shared_ptr<line>, int>> sides;  // by socket
  std::vector<std::shared_ptr<line>> lines;
  std::function<void(const std::shared_ptr<line>&)> on_line = [](const std::shared_ptr<line>&) {};

  /// The host at this address dies: what is left of it reaches nobody any more.
  void cut_off(const std::string& at) {
    hosts.erase(at);
    dead_.insert(at);
    for (const auto& l : lines)
      if (l->hosts[0] == at || l->hosts[1] == at) l->cut();
  }
  /// Connections that a node had not taken yet when it ended, or that the node which dialed did not want.
  void close_unaccepted() {
    for (const auto& l : lines)
      if (!l->is_cut && ((!l->sides[1].opened && l->accepted.expired()) ||
                         (!l->sides[0].opened && l->dialed.expired())))
        l->cut();
  }
  /// The network between the hosts of `here` and all others is cut: connections break, and dials get no answer.
  void split(std::set<std::string> here) {
    splits_.push_back(std::move(here));
    for (const auto& l : lines)
      if (!reaches(l->hosts[0], l->hosts[1])) l->cut(true);
  }
  /// Hosts reach each other again, on new connections.
  void heal() { splits_.clear(); }
  [[nodiscard]] bool reaches(const std::string& a, const std::string& b) const {
    return !dead_.contains(a) && std::all_of(splits_.begin(), splits_.end(), [&](const auto& s) {
      return s.contains(a) == s.contains(b);
    });
  }
  /// A connection to `to`, as a node or the test dials it. Its socket is side 0.
  /// Errors   socket_error: no node listens there.
  std::shared_ptr<line> dial(const std::string& to, const link_identity& self,
                             std::shared_ptr<tcp_socket>& socket) {
    if (!reaches(self.listen_address, to)) throw socket_error(to + " does not answer", ETIMEDOUT);
    const auto there = hosts.find(to);
    if (there == hosts.end()) throw socket_error("no node listens at " + to, ECONNREFUSED);
    const auto made = std::make_shared<line>();
    made->hosts[0] = self.listen_address;
    made->hosts[1] = to;
    on_line(made);
    lines.push_back(made);
    socket = unconnected(to);
    const auto far = unconnected(self.listen_address);
    sides[socket.get()] = {made, 0};
    sides[far.get()] = {made, 1};
    made->dialed = socket;
    made->accepted = far;
    caf::anon_send(caf::actor_cast<caf::actor>(there->second.accepted.target()),
                   link_accepted{{far, {self, {}}}});
    return made;
  }

 private:
  std::vector<std::set<std::string>> splits_;
  std::set<std::string> dead_;
  static std::shared_ptr<tcp_socket> unconnected(std::string peer) {
    return std::make_shared<tcp_socket>(::socket(AF_INET, SOCK_STREAM, 0), std::move(peer));
  }
};

/// One node's part of it. The node listens at `address`.
class fake_network : public node_network {
 public:
  fake_network(std::shared_ptr<fake_wiring> wiring, host_port address)
      : wiring_(std::move(wiring)), address_(std::move(address)) {}

  /// Called with each link that the node opens; may throw what opening a link may throw.
  std::function<void(const std::string&)> on_open = [](const std::string&) {};
  std::map<std::uint32_t, handle<fake_link>> links;  // by seat
  std::map<std::uint32_t, std::shared_ptr<link_counters>> counters;

  [[nodiscard]] std::chrono::steady_clock::time_point now() const override { return {}; }
  host_port listen(const host_port&) override { return address_; }
  handle<link_acceptor> accept(caf::actor_system& system, edge_book& book,
                               handshake_options options, port<link_accepted> accepted,
                               port<peer_refused>) override {
    wiring_->hosts[to_string(address_)] = {std::move(accepted), std::move(options.identify)};
    return handle<link_acceptor>(
        spawn<fake_acceptor>(
            system, book, thread_kind::shared, "link_acceptor",
            [wiring = wiring_, at = to_string(address_)] { wiring->hosts.erase(at); })
            .untyped());
  }
  link_connection dial(const host_port& to, const handshake_options& options) override {
    link_connection c;
    auto self = options.self;
    if (options.introduce) options.introduce(address_, self);
    wiring_->dial(to_string(to), self, c.socket);
    c.peer = {wiring_->hosts.at(to_string(to)).identify(), {}};
    return c;
  }
  handle<network_link> open(caf::actor_system& system, edge_book& book, const std::string& name,
                            link_options options) override {
    on_open(name);
    const auto [on, side] = wiring_->sides.at(options.socket.get());
    const auto peer = value(options.binding.peer);
    counters[peer] = options.counters;
    const auto link =
        spawn<fake_link>(system, book, thread_kind::shared, name, on, side, std::move(options));
    auto& mine = on->sides[side];
    mine.link = caf::actor_cast<caf::weak_actor_ptr>(link.untyped());
    mine.opened = true;
    for (auto& f : std::exchange(mine.waiting, {})) on->put(side, std::move(f));
    if (on->is_cut) on->cut();
    links[peer] = link;
    return handle<network_link>(link.untyped());
  }
  void say_farewell(const link_connection& c, seat_id self,
                    const frames::goodbye& says) noexcept override {
    const auto [on, side] = wiring_->sides.at(c.socket.get());
    on->put(1 - side, {{self}, says, {}});
  }

 private:
  std::shared_ptr<fake_wiring> wiring_;
  host_port address_;
};

}  // namespace poseidon::test
