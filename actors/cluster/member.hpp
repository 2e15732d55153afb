// actors/cluster/member.hpp
//
// This node as a member of the cluster: it listens, dials, holds a link to each other member, and has the view that all
// agree on. A plain object of `node` (docs/decisions/032): links tell the node, the node calls this.
//
//   leader:  lead -> a link for each node that dials, until all are in -> form
//   joiner:  join (links the leader) -> enter the view that the leader tells -> links to the other members; of two nodes
//            that come together the one with the higher seat dials
// Links are kept by seat, over changes of the view. There may be some to nodes that are no members: a newcomer links all members
// before the view with it begins, and a member that leaves has links until it has given its solver state away.
#pragma once
#include "actors/core/progress.hpp"
#include "actors/links/network.hpp"
#include "actors/membership/view.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace poseidon {

struct member_setup {
  std::shared_ptr<node_network> network;
  /// As what this node joins: to train, as a witness, or for a program that computes.
  link_identity::purpose as = link_identity::purpose::train;
  /// As in link_identity.
  std::string fingerprint = {};
  std::string token;
  std::shared_ptr<const tls_context> tls;  ///< empty: links are not encrypted
  std::shared_ptr<const wake_up> stop;     ///< ends the waits of dialing; may be empty
  std::shared_ptr<progress> display;
  /// Completes the options of a link before it opens: routes, limits, trace.
  std::function<void(seat_id, link_options&)> equip;
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

/// Nodes name each other as the leader: one of them has not heard yet who leads from now on.
struct leader_unsettled : socket_error {
  using socket_error::socket_error;
};

class member {
 public:
  explicit member(member_setup setup);

  [[nodiscard]] const agreed_view& view() const { return view_; }
  /// Enters the next view.
  void enter(agreed_view next);
  /// The next view has been agreed on, and `leader` leads it: nodes that want to join are sent there.
  void expect_leader(frames::member leader);

  /// Listens and waits for nodes. Returns  the address.  Errors   socket_error.
  std::string lead(const host_port& at, const member_context& c);
  /// Links the leader, which one of `to` is or knows, and listens where the leader has been reached from: whoever cannot reach
  /// that address needs no link to this node. `replicas`: as in link_identity; `listen`: the port, and the address if it is not all
  /// of them; empty: a free port. Blocks.
  /// Errors   socket_error (leader_unsettled), handshake_error.
  void join(const std::vector<host_port>& to, std::uint32_t replicas,
            const std::optional<host_port>& listen, const member_context& c);
  /// Forgets the view of a node that waits to join, before it joins again. It listens where it did.
  void start_over() { view_ = {}; }
  /// Links the nodes of its view that this node dials. Blocks. A newcomer of the view that does not answer is missing().
  /// Writes   `unreached`, unless it is null: members whose machine refuses, and a witness that does not answer.  Errors   as join.
  void dial_members(const member_context& c, std::vector<link_lost>* unreached = nullptr);
  /// Links the witnesses of the view to which this member has no link. Blocks.  Writes   `unreached`: those that do not answer.
  void dial_witnesses(const member_context& c, std::vector<link_lost>& unreached);
  /// Links the newcomers of the view, for a node that leaves with it.
  void dial_newcomers(const member_context& c);

  /// What has become of a connection.
  enum class admission {
    joined,  ///< the leader has given it a seat: newest()
    kept,    ///< until this node has its view, or leads: take_early()
    linked,  ///< it has a seat, and is or will be a member
    dropped  ///< it wanted to know who leads, or was told why there is no room for it
  };
  /// `room`: the leader takes a node that has no seat.
  [[nodiscard]] admission admit(const link_connection& c, bool room, const member_context& context);
  /// This node has dialed a member to which it had lost its link.
  void link_again(seat_id seat, const link_connection& c, const member_context& context);
  /// It was a member or a witness of an earlier view, and is none of this one.
  [[nodiscard]] bool is_gone(seat_id seat) const { return gone_.contains(seat); }
  /// It led a view in which this node was before.
  [[nodiscard]] bool has_led(seat_id seat) const { return led_.contains(seat); }
  /// Where this node listens.
  [[nodiscard]] const std::string& address() const { return address_; }
  /// The node that joined last.
  [[nodiscard]] const frames::member& newest() const { return newest_; }
  /// Refuses a node that knows the token, and tells both users why. Nobody else notices.
  void turn_away(const link_connection& c, const std::string& why,
                 frames::goodbye::cause of = frames::goodbye::cause::refused);
  /// Ends a connection that has served its purpose: its peer sees the end after what it has been told.
  void dismiss(const link_connection& c);
  [[nodiscard]] std::vector<link_connection> take_early() { return std::exchange(early_, {}); }

  [[nodiscard]] const std::map<seat_id, handle<network_link>>& links() const { return links_; }
  /// Whether there is a link to each other member of the view, to its witnesses, and to those that have just left.
  [[nodiscard]] bool is_complete() const;
  /// By worker of the view; empty at this node, and where there is no link.
  [[nodiscard]] std::vector<port<send_frame>> ports() const;
  void lost(seat_id peer, const std::string& why);
  /// What this node says of itself where it dials, and how it dials.
  [[nodiscard]] link_identity own_identity() const;
  [[nodiscard]] handshake_options dialing() const { return shaking({}); }
  /// Newcomers of the view to which this node has no link any more, and why.
  [[nodiscard]] std::map<seat_id, std::string> missing() const;

  // A frame to a node without a link goes nowhere: the run ends, or the node has ended.
  void send(seat_id to, send_frame m) const;
  void send(worker_id to, send_frame m) const { send(view_.seat_of(to), std::move(m)); }
  void to_leader(frame_header h) const { send(view_.leader(), {std::move(h), {}, 0}); }
  /// To all other members of the view; while nodes gather, to all that have joined.
  void broadcast(const send_frame& m) const;
  void broadcast(const frame_header& h) const { broadcast(send_frame{h, {}, 0}); }

  [[nodiscard]] const handle<link_acceptor>& acceptor() const { return acceptor_; }
  /// What each link has carried, also those that are lost.
  void describe_traffic() const;
  /// "worker 1 (10.0.0.7:7600) has sent none for 12.0 s", of each linked member.
  [[nodiscard]] std::vector<std::string> quiet_since(
      std::chrono::steady_clock::time_point now) const;
  /// Handles are references: a circle of them would keep all actors.
  void drop();

 private:
  /// Links those of its view that `is_dialed` names and that have no link.  Writes, Errors   as dial_members.
  void dial(const member_context& c, std::vector<link_lost>* unreached,
            const std::function<bool(seat_id)>& is_dialed);
  void open(seat_id seat, const link_connection& c, const member_context& context);
  void accept(const member_context& c);
  [[nodiscard]] handshake_options shaking(link_identity self) const;
  [[nodiscard]] link_connection dial_leader(const std::vector<host_port>& to,
                                            handshake_options& options);
  [[nodiscard]] std::optional<link_connection> dial_if_there(const host_port& to,
                                                             handshake_options options);
  void identify();
  void keep_for_reading(std::shared_ptr<tcp_socket> socket);

  member_setup setup_;
  agreed_view view_;
  std::string address_;                 // where this node listens
  std::vector<link_connection> early_;  // joiners that dialed before this node had its view, or led
  std::deque<std::shared_ptr<tcp_socket>> turned_away_;  // they still read why
  std::map<seat_id, handle<network_link>> links_;
  std::map<seat_id, std::string> lost_;  // links, and why; of the last nodes that had one
  std::map<seat_id, std::shared_ptr<const link_counters>> counters_;
  std::set<seat_id> gone_;  // were members, and are none
  std::set<seat_id> led_;   // views before this one
  frames::member newest_;
  seat_id next_seat_{1};                       // that this node gives, if it leads
  std::string joined_at_;                      // where this node has reached the leader
  std::optional<frames::member> next_leader_;  // while the next view comes
  class known_identity;
  std::shared_ptr<known_identity> identity_;  // what those who dial this node hear
  handle<link_acceptor> acceptor_;
};

}  // namespace poseidon
