// actors/cluster/seeker.hpp
//
// Is a member that has been lost still there? Dials where it listens, and says what came of it. An actor of its own, because a
// network that is cut lets a dial wait, and the node is to hear its other peers meanwhile.
//
// Accepts  seek         from node
//          stop_seeking from node, when no answer is of use any more
// Sends    sought       to node
// State    none that changes.
// Fails    never: what goes wrong is an answer.
// Detached: it blocks, up to a second for each address.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/links/network.hpp"
#include "messages/training.hpp"

#include <memory>
#include <optional>
#include <string>

namespace poseidon {

struct seek {
  seat_id seat{};
  std::string address;  ///< where it listened
  link_identity self;   ///< with the purpose: to look, or to link it again
};

struct stop_seeking {};

struct sought {
  enum class answer {
    none,     ///< nobody can tell: it hangs, or the network between is cut
    refused,  ///< its machine is there, and its process has ended, or another one has its address
    there
  };
  seat_id seat{};
  answer is = answer::none;
  std::optional<link_connection> connection;  ///< if it is there
};

class seeker : public actor<seeker> {
 public:
  static constexpr const char* type_name = "seeker";
  using accepts = messages<seek, stop_seeking>;
  using sends = messages<sought>;

  /// `options`: as the node dials; who it is comes with each seek.
  seeker(actor_context context, std::shared_ptr<node_network> network, handshake_options options,
         port<sought> node);
  void on(const seek& m);
  void on(const stop_seeking&) { quit(); }
  void ended() { node_ = {}; }

 private:
  std::shared_ptr<node_network> network_;
  handshake_options options_;
  port<sought> node_;
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::seek)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::stop_seeking)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::sought)
