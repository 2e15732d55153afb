#include "apps/node/memory_of_formats.hpp"

#include "apps/terminal/figures.hpp"
#include "models/plan/lossy_choice.hpp"
#include "models/plan/lowrank_routes.hpp"
#include "models/plan/wire_choice.hpp"
#include "models/solver/solver_rule.hpp"

namespace poseidon::app {

namespace {

/// Where this format is asked for throughout. `own`: the part of the values that the node owns.
std::uint64_t bytes_with(wire_format f, const net& n, double own) {
  wire_option all;
  all.all = f;
  const auto formats = formats_of(n, all);
  double bytes = 0;
  for (const auto p : formats.ids()) {
    if (formats[p] != f) continue;
    const auto values = static_cast<std::size_t>(count(n.parameters[value(p)].shape));
    bytes +=
        4 * (1 + own) * static_cast<double>(values) + static_cast<double>(wire_bytes(f, values));
  }
  return static_cast<std::uint64_t>(bytes);
}

double lowrank_values(const net& n, const ::caffe::SolverParameter& solver) {
  double values = 0;
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    if (has_matrix(n.layers[l]) && why_no_lowrank(n, l, rank_of_ladder, solver).empty())
      values += static_cast<double>(lowrank_shape_of(n, l, rank_of_ladder).values());
  return values;
}

}  // namespace

memory_of_formats memory_of(const net& n, const ::caffe::SolverParameter& solver,
                            std::size_t nodes) {
  const auto own = 1 / static_cast<double>(nodes);
  const auto arrays = static_cast<double>(history_count(shared_rule_of(solver).kind));
  memory_of_formats m;
  m.sixteen_bits = bytes_with(wire_format::bfloat16, n, own);
  m.int8 = bytes_with(wire_format::int8, n, own);
  m.int4 = bytes_with(wire_format::int4, n, own);
  m.lowrank = static_cast<std::uint64_t>(4 * lowrank_values(n, solver) * (2 + arrays * (1 - own)));
  return m;
}

std::string text_of(const memory_of_formats& m) {
  return "where fewer bytes are sent a node needs more memory: " + megabytes(m.sixteen_bits) +
         " with --wire float16 or bfloat16, " + megabytes(m.int8) + " with int8, " +
         megabytes(m.int4) + " with int4, " + megabytes(m.lowrank) +
         " with --routes lowrank; with --survive more";
}

json_object json_of(const memory_of_formats& m) {
  return json_object()
      .put("sixteen_bits", m.sixteen_bits)
      .put("int8", m.int8)
      .put("int4", m.int4)
      .put("lowrank", m.lowrank);
}

}  // namespace poseidon::app
