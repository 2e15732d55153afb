#include "actors/run/train_net.hpp"

#include "actors/run/compiled_run.hpp"
#include "actors/run/view_shares.hpp"
#include "data/image_store.hpp"
#include "data/synthetic_source.hpp"

#include <utility>

namespace poseidon {

source_options options_for(const run_definition& run, const node_spec& node, ::caffe::Phase phase,
                           std::shared_ptr<opened_images> opened) {
  source_options o;
  o.phase = phase;
  o.data_root = node.data_root;
  o.seed = run.seed;
  o.opened = std::move(opened);
  if (run.solver.spec.poseidon().has_synthetic())
    o.synthetic = parse_sample_shape(run.solver.spec.poseidon().synthetic());
  return o;
}

net build(const net_file& file, const net_state& state, const source_options& sources,
          std::int64_t split_batch) {
  build_options options;
  options.state = state;
  options.sources = shapes_from_sources(sources);
  options.split_batch = split_batch;
  return build_net(file, options);
}

net build_part(const run_definition& run, const source_options& sources, std::uint64_t samples,
               std::uint64_t of) {
  build_options options;
  options.state = run.solver.train_state;
  options.sources = shapes_from_sources(sources);
  options.samples = static_cast<std::int64_t>(samples);
  options.of_batch = static_cast<std::int64_t>(of);
  return build_net(run.solver.train_net, options);
}

train_net resolve_train_net(const run_definition& run, const node_spec& node) {
  const auto& s = run.solver;
  const auto sources = options_for(run, node, ::caffe::TRAIN, std::make_shared<opened_images>());
  train_net out;
  out.part = build(s.train_net, s.train_state, sources, 1);
  out.batch = batch_of(out.part);
  out.shares = weighed_shares(run, out.batch, replicas_of(node, out.batch));
  if (!out.shares.empty())
    out.part = build_part(run, sources, out.shares.at(node.worker).samples, out.batch);
  return out;
}

}  // namespace poseidon
