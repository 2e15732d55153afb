#include "apps/node/verbs.hpp"
#include "cpu/cpu_device.hpp"
#include "data/synthetic_source.hpp"

#include <algorithm>
#include <sstream>

namespace poseidon::app {

bool has_input(const net_file& file) {
  const auto& layers = file.spec.layer();
  return std::any_of(layers.begin(), layers.end(),
                     [](const auto& l) { return l.type() == "Input"; });
}

namespace {

/// A deploy net names no fillers, and zeros are computed faster than real values.
void fill_weights(net_file& file) {
  for (auto& layer : *file.spec.mutable_layer()) {
    if ((layer.type() == "Convolution" || layer.type() == "Deconvolution") &&
        !layer.convolution_param().has_weight_filler())
      layer.mutable_convolution_param()->mutable_weight_filler()->set_type("xavier");
    if (layer.type() == "InnerProduct" && !layer.inner_product_param().has_weight_filler())
      layer.mutable_inner_product_param()->mutable_weight_filler()->set_type("xavier");
  }
}

}  // namespace

namespace {

run_definition model_spec(const model_options& o, ::caffe::Phase phase) {
  run_definition run;
  run.solver.train_net = read_net(o.model);
  run.solver.train_state.phase = phase;
  run.solver.train_state.level = o.level;
  std::stringstream stages(o.stages);
  for (std::string stage; std::getline(stages, stage, ',');)
    run.solver.train_state.stages.push_back(stage);
  run.solver.spec.set_lr_policy("fixed");
  run.solver.spec.set_base_lr(0);
  if (o.weights.empty()) fill_weights(run.solver.train_net);
  if (o.synthetic)
    run.solver.spec.mutable_poseidon()->set_synthetic(*o.synthetic);
  else if (has_input(run.solver.train_net))  // there is no other input
    run.solver.spec.mutable_poseidon()->set_synthetic("");
  return run;
}

}  // namespace

bare_run make_model_run(const model_options& o, ::caffe::Phase phase, const task_display& display) {
  node_spec node;
  node.compute = o.gpus ? make_gpu_device(*o.gpus, make_cpu_device()) : make_processor(o.math);
  node.replicas = o.replicas;
  node.readers = o.readers;
  node.data_root = o.data_root;
  return {model_spec(o, phase), node, o.weights, display};
}

void say_first(const bare_run& run, reporter& out) {
  for (const auto& line : run.compiled().warnings) out.warning(line);
  for (const auto& line : run.compiled().remarks) out.remark(line);
}

net make_model_net(const model_options& o, ::caffe::Phase phase) {
  const auto run = model_spec(o, phase);
  source_options sources;
  sources.phase = phase;
  sources.data_root = o.data_root;
  if (run.solver.spec.poseidon().has_synthetic())
    sources.synthetic = parse_sample_shape(run.solver.spec.poseidon().synthetic());
  build_options options;
  options.state = run.solver.train_state;
  options.sources = shapes_from_sources(sources);
  return build_net(run.solver.train_net, options);
}

}  // namespace poseidon::app
