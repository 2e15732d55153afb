// Specifications: text, upgrade, phase rules, splits, shapes; as a net, and as a solver around one.
#include "models/solver/solver_file.hpp"
#include "models/spec/text_format.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/models/nets.hpp"

using namespace poseidon;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  fuzz::accept_or_refuse([&] {
    const auto file = parse_net(text, "net.prototxt");
    for (const auto phase : {::caffe::TRAIN, ::caffe::TEST}) {
      build_options options;
      options.state.phase = phase;
      options.sources = test::images({3, 32, 32});
      (void)build_net(file, options);
    }
  });
  return fuzz::accept_or_refuse([&] {
    ::caffe::SolverParameter spec;
    field_lines lines;
    parse_text(text, "solver.prototxt", spec, lines);
    if (spec.has_net() || spec.has_train_net() || spec.test_net_size() > 0) return;  // other files
    const auto solver = resolve_solver(spec, {"solver.prototxt", 1});
    (void)rule_of(solver.spec);
    (void)learning_rate(solver.spec, 1000);
  });
}
