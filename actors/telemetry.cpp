#include "actors/telemetry.hpp"

#include <cstdio>
#include <fstream>

namespace poseidon {

telemetry::telemetry(actor_context context, telemetry_setup setup)
    : actor(context), setup_(std::move(setup)) {}

std::string measured_graph_json(const edge_book& edges) {
  std::string out = "{\"actors\":[";
  const char* separator = "\n";
  for (const auto& [name, type] : edges.actors()) {
    out += separator + std::string("{\"name\":\"") + name + "\",\"type\":\"" + type + "\"}";
    separator = ",\n";
  }
  out += "],\n\"edges\":[";
  separator = "\n";
  for (const auto& row : edges.rows()) {
    out += separator + std::string("{\"from\":\"") + row.from + "\",\"to\":\"" + row.to +
           "\",\"message\":\"" + row.message + "\",\"count\":" + std::to_string(row.count) +
           ",\"bytes\":" + std::to_string(row.bytes) + "}";
    separator = ",\n";
  }
  return out + "]}\n";
}

void telemetry::on(const shut_down&) {
  try {
    if (!setup_.trace_file.empty()) setup_.trace->write(setup_.trace_file, setup_.self);
    if (!setup_.graph_file.empty()) {
      std::ofstream file(setup_.graph_file);
      if (!(file << measured_graph_json(*setup_.edges)).flush())
        throw std::runtime_error("cannot write the actor graph to " + setup_.graph_file.string());
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
  }
  quit();
}

}  // namespace poseidon
