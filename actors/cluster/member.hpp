// actors/cluster/member.hpp
//
// This node as a member of the cluster: it listens, dials, holds a link to each other member, and has the view that all
// agree on. A plain object of `node` (docs/decisions/032): links tell the node, the node calls this.
//
//   leader:  lead -> a link for each node that dials, until all are in -> form
//   joiner:  join (links the leader) -> enter the view that the leader tells -> links to the members before it; those after
//            it dial
// A node that dials an old member, or dies, changes the view: that is to begin here and to end in view_change.
#pragma once
#include "actors/cluster/view.hpp"
#include "actors/core/progress.hpp"
#include "actors/links/network.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace poseidon {

struct member_setup {
  std::shared_ptr<node_network> network;
  std::string token;
  std::shared_ptr<const wake_up> stop;  ///< ends the waits of dialing; may be empty
  std::shared_ptr<progress> display;
  /// Completes the options of a link before it opens: routes, limits, trace.
  std::function<void(worker_id, link_options&)> equip;
  /// The node's tell(), which counts.
  std::function<void(const port<send_frame>&, send_frame)> tell;
};

/// The actors of the node as the network needs them.
struct member_context {
  caf::actor_system& system;
  edge_book& edges;
  port<link_accepted> accepted;
  port<peer_refused> refused;
};

class member {
 public:
  explicit member(member_setup setup) : setup_(std::move(setup)) {}

  [[nodiscard]] const agreed_view& view() const { return view_; }
  /// Enters the next view.
  void enter(agreed_view next) { view_ = std::move(next); }

  /// Listens and waits for nodes. Returns  the address.  Errors   socket_error.
  std::string lead(const host_port& at, const member_context& c);
  /// Links the leader at `to`, and listens where the leader has been reached from: whoever cannot reach that address needs no
  /// link to this node. `replicas`: as in link_identity. Blocks.  Errors   socket_error, handshake_error.
  void join(const host_port& to, std::uint32_t replicas, const member_context& c);
  /// Links the members that this node dials in its view. Blocks.  Errors   as join.
  void dial_members(const member_context& c);

  enum class admission {
    joined,    ///< the leader's newest member
    kept,      ///< until this node has its view: take_early()
    linked,    ///< a member of the view
    stranger,  ///< it was told why there is no room for it
  };
  /// `room`: how many nodes the leader still waits for.
  [[nodiscard]] admission admit(const link_connection& c, std::size_t room,
                                const member_context& context);
  /// Refuses a node that knows the token, and tells both users why. Nobody else notices.
  void turn_away(const link_connection& c, const std::string& why);
  [[nodiscard]] std::vector<link_connection> take_early() { return std::exchange(early_, {}); }

  [[nodiscard]] const std::map<worker_id, handle<network_link>>& links() const { return links_; }
  /// By worker, of the cluster's `workers`; empty at this node.
  [[nodiscard]] std::vector<port<send_frame>> ports(std::size_t workers) const;
  void lost(worker_id peer) { links_.erase(peer); }

  // A frame to a worker without a link goes nowhere: the run ends, or the worker has ended.
  void send(worker_id to, send_frame m) const;
  void to_leader(frame_header h) const { send(view_.leader, {std::move(h), {}, 0}); }
  void broadcast(const send_frame& m) const;
  void broadcast(const frame_header& h) const { broadcast(send_frame{h, {}, 0}); }

  [[nodiscard]] const handle<link_acceptor>& acceptor() const { return acceptor_; }
  /// What each link has carried, also those that are lost.
  void describe_traffic() const;
  /// "worker 1 (10.0.0.7:7600) has sent none for 12.0 s", of each linked worker.
  [[nodiscard]] std::vector<std::string> quiet_since(
      std::chrono::steady_clock::time_point now) const;
  /// Handles are references: a circle of them would keep all actors.
  void drop();

 private:
  void open(worker_id worker, const link_connection& c, const member_context& context);
  void accept(const member_context& c, link_identity self);
  [[nodiscard]] handshake_options shaking(link_identity self) const;

  member_setup setup_;
  agreed_view view_;
  std::string address_;                 // where this node listens
  std::vector<link_connection> early_;  // joiners that dialed before this node had its view
  std::deque<std::shared_ptr<tcp_socket>> turned_away_;  // they still read why
  std::map<worker_id, handle<network_link>> links_;
  std::map<worker_id, std::shared_ptr<const link_counters>> counters_;
  handle<link_acceptor> acceptor_;
};

}  // namespace poseidon
