// actors/node/witness.hpp
//
// One process that takes part in a run and trains nothing: it has a seat, a link to each member, and a vote on which view is next.
// So two nodes that train are a majority with it (docs/decisions/045). In its place beside `node`: it joins as a node does, and
// answers the ballots of members; it never proposes, leads or is a worker, has no net and no data, and gets no values.
//
//   joining -the run, as a prospect-> ready, when it has a link to each member -a view with it-> voting
//   voting -another view with it-> voting -one without it-> ended: it has left, or was left out
//
// Its view_change is that of any member, and always waits. What it has promised it must not forget, so a process that has ended never comes
// back in its seat.
// It asks nobody for a view that it has missed: each member tells the view that it follows. Where it has lost its link to a member, that
// one dials it again, whatever their seats; it only looks whether the others have gone on without it.
//
// Accepts  start_node         from the app
//          link_accepted, peer_refused   from link_acceptor
//          control_arrived, link_lost   from network_link
//          sought             from seeker
//          interrupted        from the app's signal thread
//          join_later, look_around   from itself
// Sends    send_frame, bind_link, close_link   to network_link
//          stop_accepting     to link_acceptor
//          seek, stop_seeking   to seeker
// State    the view, its promises, who is not heard, who has said goodbye.
// Fails    never by exception: what goes wrong becomes the result that the app prints and exits with.
// Detached: it dials.
#pragma once
#include "actors/cluster/member.hpp"
#include "actors/cluster/seeker.hpp"
#include "actors/core/actor.hpp"
#include "actors/membership/view_change.hpp"
#include "actors/node/node_setup.hpp"
#include "messages/node.hpp"

#include <cerrno>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace poseidon {

/// To itself: another node led just then, or a member could not be reached.
struct join_later {};
/// To itself: members are not heard.
struct look_around {};

class witness : public actor<witness> {
 public:
  static constexpr const char* type_name = "witness";
  using accepts = messages<start_node, join_later, link_accepted, peer_refused, control_arrived,
                           link_lost, sought, look_around, interrupted>;
  using sends = messages<send_frame, bind_link, close_link, stop_accepting, seek, stop_seeking>;

  /// Of `setup` it uses the cluster, the display, the edges, and whom to tell how it has ended.
  witness(actor_context context, node_setup setup);
  void started();
  void ended();

  void on(const start_node&);
  void on(const join_later&);
  void on(const link_accepted& m);
  void on(const peer_refused& m);
  void on(const control_arrived& m);
  void on(const link_lost& m);
  void on(const sought& m);
  void on(const look_around&);
  void on(const interrupted& m);

 private:
  struct absent {
    int due = 1, pause = 1;  // in look_around's
    int ahead = 0;           // so often it was in a later view
    bool asked = false;
  };
  /// Runs a step; what it throws is the user's to read, not a crash.
  template <class Step>
  void guarded(Step step) {
    try {
      step();
    } catch (const std::invalid_argument& e) {
      end(2, e.what());
    } catch (const handshake_error& e) {
      end(2, e.what());
    } catch (const socket_error& e) {
      if (e.error != ECANCELED) end(2, e.what());  // else `interrupted` is the next message
    }
  }
  [[nodiscard]] member_setup membership();
  [[nodiscard]] member_context here();
  [[nodiscard]] const agreed_view& view() const { return members_.view(); }

  void dial();
  void join_again(const std::string& why, seat_id without);
  void take(const frames::view& f);
  void lost_before_it_votes(const link_lost& m);
  void bind_links();
  void take(const frames::next_view& next);
  void enter(const frames::next_view& next);
  void vote(const control_arrived& m);
  /// It is in a view.
  [[nodiscard]] bool votes() const { return change_.knows_next(); }
  [[nodiscard]] bool hears(seat_id seat) const { return members_.links().contains(seat); }
  [[nodiscard]] bool is_alone() const;
  void miss(seat_id seat, const std::string& why);
  void end_if_all_have();
  void leave(int exit_code, const std::string& why);
  void say_that_it_leaves();
  void left_out(const std::string& why);
  void end(int exit_code, const std::string& error, const frames::goodbye& says = {});

  node_setup setup_;
  member members_;
  std::vector<host_port> at_;  // where it joins; empty: it has, or has to end its links first
  int put_off_ = 0, unreached_ = 0;
  bool is_ready_ = false;
  view_change change_;
  std::map<seat_id, absent> absent_;         // members that it does not hear
  std::map<seat_id, std::string> goodbyes_;  // of members, and why; empty: as planned
  bool looks_ = false;                       // a look_around is under way
  int alone_for_ = 0;                        // look_around's
  std::optional<int> leaves_with_;           // the exit code
  std::string why_it_leaves_;
  std::vector<host_port> others_;  // that have gone on without it
  handle<seeker> seeker_;
  bool has_ended_ = false;
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::join_later)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::look_around)
