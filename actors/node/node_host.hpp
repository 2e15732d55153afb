// actors/node/node_host.hpp
//
// A node, or a witness, in an actor system of its own, for whoever is not an actor: a program of ours (run_node.hpp), or a library inside
// somebody else's program. It installs no signal handler, prints nothing and ends no process.
#pragma once
#include "actors/node/node.hpp"
#include "actors/node/witness.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace poseidon {

/// Makes what `setup` lacks of edges, trace and view, so that somebody can look at the view from now on.
void prepare(node_setup& setup);

class node_host {
 public:
  node_host() = default;
  /// Waits for the end of all actors, which there is only once the node has ended, or was never spawned whole.
  ~node_host() = default;
  node_host(const node_host&) = delete;
  node_host& operator=(const node_host&) = delete;

  /// Starts the node; once. Errors   std::exception: a thread or the memory for one cannot be had. Actors that have been spawned
  /// by then may hang: whoever destroys this object may have to wait for ever (run_node has a watchdog).
  void start(node_setup setup);

  // Any thread may call these, also after the node's end: then they do nothing.
  void tell(interrupted what);
  /// The node ends the run, and tells the others `why`.
  void give_up(const std::string& why);

  /// Waits until the node has ended; nothing: not within `limit`. Its actors may still end.
  [[nodiscard]] std::optional<node_result> ended(std::chrono::duration<double> limit);
  [[nodiscard]] node_result ended();

 private:
  class config : public caf::actor_system_config {
   public:
    config();
  };
  void spawn_in_system(node_setup setup);
  void forget_node();

  // In this order: what the actors compute on, count and record into outlives the last of them.
  std::shared_ptr<edge_book> edges_;
  std::shared_ptr<trace_log> trace_;
  std::shared_ptr<wake_up> stop_ = std::make_shared<wake_up>();
  std::promise<node_result> promise_;
  std::shared_future<node_result> result_ = promise_.get_future().share();
  config config_;
  std::unique_ptr<caf::actor_system> system_;
  std::mutex mutex_;
  handle<node> node_;  // one of the two
  handle<witness> witness_;
};

}  // namespace poseidon
