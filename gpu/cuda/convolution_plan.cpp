#include "gpu/cuda/convolution_plan.hpp"

#include "gpu/runtime/runtime.hpp"

#include <algorithm>

namespace poseidon::gpu::cuda {
namespace {

using extents = std::vector<std::int64_t>;

// The names of the three tensors, in the graph and when it is run.
constexpr std::int64_t x_name = 'x', w_name = 'w', y_name = 'y';
constexpr std::size_t most_notes = CUDNN_NUMERICAL_NOTE_TYPE_COUNT;

/// cuDNN 9.19 gives this engine no note, and an H100's heuristics prefer it. Its weight gradients of 5x5 were off by 3e-4 to 7e-4 of the
/// largest, of 3x3 by 7e-6, the other engines' by 1e-6 (decision 020): it transforms as Winograd does.
constexpr std::int64_t inexact_weight_gradient = 17;

cudnn_descriptor describe_properties(int ordinal) {
  cudnn_descriptor d(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  d.set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, std::int32_t{ordinal}).finalize();
  return d;
}

cudnn_descriptor describe_properties(const std::string& json) {
  cudnn_descriptor d(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  d.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
        std::span<const char>(json.c_str(), json.size() + 1))
      .finalize();
  return d;
}

/// Spatial values as cuDNN takes them: at least two axes; a missing first one is `otherwise`.
extents spatial(const convolution_shape& s, const convolution_shape::extents& of,
                std::int64_t otherwise) {
  extents e;
  if (s.axes == 1) e.push_back(otherwise);
  e.insert(e.end(), of.begin(), of.begin() + static_cast<std::ptrdiff_t>(s.axes));
  return e;
}

/// cuDNN names the axes in NCHW's order always; the steps say which lies where.
cudnn_descriptor tensor(std::int64_t name, std::int64_t outer, std::int64_t channels,
                        const extents& area, layout order) {
  extents size{outer, channels};
  size.insert(size.end(), area.begin(), area.end());
  extents step(size.size(), 1);
  for (std::size_t a = size.size(); a-- > 1;) step[a - 1] = step[a] * size[a];
  if (channels_last(order)) {
    step.back() = channels;
    for (std::size_t a = size.size() - 1; a-- > 2;) step[a] = step[a + 1] * size[a + 1];
    step[1] = 1;
  }
  cudnn_descriptor t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  t.set(CUDNN_ATTR_TENSOR_DATA_TYPE,
        type_of(order) == value_type::float32 ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, size)
      .set(CUDNN_ATTR_TENSOR_STRIDES, step)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, name)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16})
      .finalize();
  return t;
}

cudnn_descriptor convolution(const convolution_shape& s) {
  const extents pad = spatial(s, s.pad, 0);
  cudnn_descriptor c(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  c.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<std::int64_t>(pad.size()))
      .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pad)
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pad)
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, spatial(s, s.dilation, 1))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, spatial(s, s.stride, 1))
      .finalize();
  return c;
}

/// cuDNN's names for the parts of one direction.
struct operation_names {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, w, y, how, alpha, beta;
};

operation_names names_of(convolution_direction direction) {
  switch (direction) {
    case convolution_direction::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case convolution_direction::data_gradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case convolution_direction::weight_gradient:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

}  // namespace

std::string objection(const engine_facts& engine, const library_options& options) {
  const auto has = [&](cudnnBackendNumericalNote_t note) {
    return std::find(engine.notes.begin(), engine.notes.end(), note) != engine.notes.end();
  };
  // Tensor cores round float32 inputs to 10 bits of mantissa, and the transforms of FFT and Winograd lose some.
  if (options.precision == math::fp32) {
    if (has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) return "it uses tensor cores";
    if (has(CUDNN_NUMERICAL_NOTE_FFT)) return "it uses an FFT";
    for (const auto note :
         {CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
          CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13})
      if (has(note)) return "it uses Winograd's transforms";
    if (engine.direction == convolution_direction::weight_gradient &&
        engine.number == inexact_weight_gradient)
      return "it is less exact than cuDNN says";
  }
  if (has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return "it rounds its inputs";
  if (has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return "it rounds its sums";
  if (options.deterministic && has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC))
    return "its sums have no fixed order";
  return {};
}

cudnn_device::cudnn_device(int ordinal) : properties_(describe_properties(ordinal)) {}
cudnn_device::cudnn_device(const std::string& properties)
    : properties_(describe_properties(properties)) {}

struct convolution_plan::operation_graph {
  operation_graph(const convolution_shape& s, convolution_direction direction) {
    const operation_names names = names_of(direction);
    parts.push_back(tensor(x_name, s.batch, s.in, spatial(s, s.image, 1), s.order));
    parts.push_back(tensor(w_name, s.out, s.in / s.groups, spatial(s, s.kernel, 1), s.order));
    parts.push_back(tensor(y_name, s.batch, s.out, spatial(s, s.result, 1), s.order));
    parts.push_back(convolution(s));
    cudnn_descriptor operation(names.type);
    operation.set(names.x, parts[0])
        .set(names.w, parts[1])
        .set(names.y, parts[2])
        .set(names.how, parts[3])
        .set(names.alpha, 1.0f)
        .set(names.beta, 0.0f)
        .finalize();
    parts.push_back(std::move(operation));
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, parts.back()).finalize();
  }

  /// Engine configurations, the best first.
  [[nodiscard]] std::vector<cudnn_descriptor> ways(const cudnn_device& device,
                                                   cudnnBackendHeurMode_t mode) const {
    cudnn_descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
        .set(CUDNN_ATTR_ENGINEHEUR_MODE, mode)
        .set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device.properties())
        .finalize();
    return heuristics.descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                  CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  }

  std::vector<cudnn_descriptor> parts;
  cudnn_descriptor graph{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
};

convolution_plan::convolution_plan(const cudnn_device& device, const convolution_shape& shape,
                                   convolution_direction direction, const library_options& options)
    : convolution_plan(std::move(several(device, shape, direction, options, 1).front())) {}

std::vector<convolution_plan> convolution_plan::several(const cudnn_device& device,
                                                        const convolution_shape& shape,
                                                        convolution_direction direction,
                                                        const library_options& options,
                                                        std::size_t most) {
  const auto graph = std::make_shared<const operation_graph>(shape, direction);
  std::vector<convolution_plan> plans;
  std::string refused;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (cudnn_descriptor& way : graph->ways(device, mode)) {
      if (plans.size() == most) break;
      try {
        plans.push_back(convolution_plan(device, graph, direction, std::move(way), options));
      } catch (const refusal& r) {
        refused = r.why;
      }
    }
    if (!plans.empty()) return plans;
  }
  throw error(error_kind::unsupported, 0,
              "cuDNN " + std::to_string(cudnnGetVersion()) + " has no engine for the " +
                  to_string(shape, direction) +
                  (refused.empty() ? "" : "; of the last one: " + refused) +
                  ". Try --math tf32, or a smaller batch.");
}

convolution_plan::convolution_plan(const cudnn_device& device,
                                   std::shared_ptr<const operation_graph> graph,
                                   convolution_direction direction, cudnn_descriptor way,
                                   const library_options& options)
    : graph_(std::move(graph)), way_(std::move(way)) {
  const auto engines =
      way_.descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  const cudnn_descriptor& engine = engines.at(0);
  engine_ = {
      direction, engine.values<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1).at(0),
      engine.values<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, most_notes)};
  if (auto why = objection(engine_, options); !why.empty()) throw refusal{std::move(why)};
  try {
    plan_.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device.properties())
        .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, way_)
        .finalize();
  } catch (const error& e) {  // the heuristics also propose what an engine then declines
    throw refusal{e.what()};
  }
  workspace_bytes_ = static_cast<std::size_t>(
      plan_.values<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 1).at(0));
  if (workspace_bytes_ > options.workspace_bytes)
    throw refusal{"it wants " + std::to_string(workspace_bytes_) + " bytes of workspace, " +
                  std::to_string(options.workspace_bytes) + " are allowed"};
}

void convolution_plan::run(cudnnHandle_t handle, const void* x, const void* w, const void* y,
                           void* workspace) const {
  const std::array<std::int64_t, 3> names{x_name, w_name, y_name};
  const std::array<void*, 3> places{const_cast<void*>(x), const_cast<void*>(w),
                                    const_cast<void*>(y)};
  cudnn_descriptor arguments(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  arguments.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const std::int64_t>(names))
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span<void* const>(places))
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace)
      .finalize();
  check(cudnnBackendExecute(handle, plan_.get(), arguments.get()));
}

std::string to_string(const convolution_shape& s, convolution_direction direction) {
  const auto words = [&](std::int64_t outer, std::int64_t channels,
                         const convolution_shape::extents& area) {
    shape e{outer, channels};
    e.insert(e.end(), area.begin(), area.begin() + static_cast<std::ptrdiff_t>(s.axes));
    return poseidon::to_string(e);
  };
  const char* of = direction == convolution_direction::forward         ? "result"
                   : direction == convolution_direction::data_gradient ? "data gradient"
                                                                       : "weight gradient";
  std::string text = std::string(of) + " of a convolution of " + words(s.batch, s.in, s.image) +
                     " with " + words(s.out, s.in / s.groups, s.kernel);
  if (s.groups > 1) text += ", " + std::to_string(s.groups) + " groups";
  if (channels_last(s.order)) text += ", in NHWC";
  if (type_of(s.order) == value_type::bfloat16) text += " of bfloat16";
  return text;
}

}  // namespace poseidon::gpu::cuda
