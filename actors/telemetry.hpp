// actors/telemetry.hpp
//
// Keeps what the node measured about itself and writes it at the end: the trace (--trace) and the actor
// graph with its message and byte counts (--graph). Reads the edge_book and the trace_log that all actors
// write; they do not wait for it.
//
// Accepts  shut_down  from node, last of all
// Sends    -
// State    none; the logs belong to the run.
// Fails    a file that cannot be written: one line on stderr, training's result stands.
// Detached: it writes files.
#pragma once
#include "actors/actor.hpp"
#include "actors/trace.hpp"
#include "messages/training.hpp"

#include <filesystem>
#include <memory>

namespace poseidon {

struct telemetry_setup {
  worker_id self{};
  std::shared_ptr<trace_log> trace;
  std::shared_ptr<edge_book> edges;
  std::filesystem::path trace_file;  ///< empty: not written
  std::filesystem::path graph_file;  ///< empty: not written
};

class telemetry : public actor<telemetry> {
 public:
  static constexpr const char* type_name = "telemetry";
  using accepts = messages<shut_down>;
  using sends = messages<>;

  telemetry(actor_context context, telemetry_setup setup);
  void on(const shut_down& m);

 private:
  telemetry_setup setup_;
};

/// The measured graph as JSON: {"actors":[{name,type}],"edges":[{from,to,message,count,bytes}]}.
[[nodiscard]] std::string measured_graph_json(const edge_book& edges);

}  // namespace poseidon
