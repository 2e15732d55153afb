#include "apps/node/option_checks.hpp"

#include "apps/web/open_doors.hpp"
#include "data/batch_shares.hpp"
#include "models/solver/solver_file.hpp"
#include "models/spec/spec_file.hpp"

namespace poseidon::app {

namespace {

/// Whether a file's name ends like one of Caffe's weights, or of its solver states.
bool names_weights(const std::string& path) {
  return path.ends_with(".caffemodel") || path.ends_with(".caffemodel.h5");
}
bool names_state(const std::string& path) {
  return path.ends_with(".solverstate") || path.ends_with(".solverstate.h5");
}

void check_files(const node_options& o) {
  const auto snapshot = o.snapshot.string();
  if (names_weights(snapshot))
    throw spec_error("--snapshot " + snapshot +
                     ": these are weights. --weights starts from them; to resume the run give "
                     "--snapshot the .solverstate beside them.");
  for (const auto& path : split_paths(o.weights))
    if (names_state(path.string()))
      throw spec_error("--weights " + path.string() +
                       ": this is the state of a solver. --snapshot resumes from it; to start from "
                       "its weights give --weights the .caffemodel beside it.");
}

}  // namespace

void check(const node_options& o) {
  if (o.join.empty() && o.solver.empty())
    throw spec_error(
        "nothing to do: give --solver FILE to train, or --join HOST:PORT to help another "
        "node. --help shows examples.");
  (void)parse_shares(o.batch_share, o.nodes);
  if (!o.explain_routes.empty()) return;
  web::require_tokens({o.listen, o.web, o.join, o.token, o.web_token});
  check_files(o);
}

}  // namespace poseidon::app
