#include "apps/node/memory_of_formats.hpp"

#include "apps/terminal/figures.hpp"
#include "models/plan/lossy_choice.hpp"
#include "models/plan/lowrank_routes.hpp"
#include "models/plan/wire_choice.hpp"
#include "models/solver/solver_rule.hpp"

namespace poseidon::app {

namespace {

/// Those that travel in this format, where it is asked for throughout.
double values_in(wire_format f, const net& n) {
  wire_option all;
  all.all = f;
  const auto formats = formats_of(n, all);
  double values = 0;
  for (const auto p : formats.ids())
    if (formats[p] == f) values += static_cast<double>(count(n.parameters[value(p)].shape));
  return values;
}

double lowrank_values(const net& n, const ::caffe::SolverParameter& solver) {
  double values = 0;
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    if (has_matrix(n.layers[l]) && why_no_lowrank(n, l, rank_of_ladder, solver).empty())
      values += static_cast<double>(lowrank_shape_of(n, l, rank_of_ladder).values());
  return values;
}

std::uint64_t bytes_of(double values) {
  return static_cast<std::uint64_t>(4 * values);
}

}  // namespace

memory_of_formats memory_of(const net& n, const ::caffe::SolverParameter& solver,
                            std::size_t nodes) {
  const auto own = 1 / static_cast<double>(nodes);
  const auto arrays = static_cast<double>(history_count(shared_rule_of(solver).kind));
  memory_of_formats m;
  m.sixteen_bits = bytes_of(values_in(wire_format::bfloat16, n) * (1 + own));
  m.blocks = bytes_of(values_in(wire_format::int4, n) * (1 + own));
  m.lowrank = bytes_of(lowrank_values(n, solver) * (1 + arrays * (1 - own)));
  return m;
}

std::string text_of(const memory_of_formats& m) {
  return "where fewer bytes are sent a node needs more memory: " + megabytes(m.sixteen_bits) +
         " with --wire float16 or bfloat16, " + megabytes(m.blocks) + " with int8 or int4, " +
         megabytes(m.lowrank) + " with --routes lowrank; with --survive more";
}

json_object json_of(const memory_of_formats& m) {
  return json_object()
      .put("sixteen_bits", m.sixteen_bits)
      .put("blocks", m.blocks)
      .put("lowrank", m.lowrank);
}

}  // namespace poseidon::app
