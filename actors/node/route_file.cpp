#include "actors/node/route_file.hpp"

#include "models/files/atomic_file.hpp"

#include <filesystem>
#include <stdexcept>

namespace poseidon {

void route_file::write() {
  const auto& setup = core_.setup;
  const auto& run = *setup.run;
  const auto& solver = run.solver.spec;
  const bool snapshots = solver.snapshot() > 0 || solver.snapshot_after_train();
  if (setup.around || !core_.view().leads() || run.workers < 2 || !snapshots ||
      solver.poseidon().has_replay())
    return;
  const bool first = by_clock_.empty();
  by_clock_[run.first_clock] = run.routes;
  const auto began = by_clock_.begin()->first;
  const std::filesystem::path path =
      solver.snapshot_prefix() + (began > 0 ? "_from_" + std::to_string(began) : "") + ".routes";
  try {
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
    write_in_pieces(path, [&](const piece_writer& put) {
      put(routes_file(core_.run.train(), solver, by_clock_));
    });
    if (first && setup.choices.routes.what == route_option::kind::automatic)
      setup.display->note("routes: --routes " + path.string() + " repeats this choice");
  } catch (const std::exception& e) {
    setup.display->warning("the routes of this run are not kept: " + std::string(e.what()));
  }
}

}  // namespace poseidon
