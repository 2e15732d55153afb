// models/net/net.hpp
//
// The resolved net: a Caffe specification for one phase after V1 upgrade, phase rules, automatic
// Split layers and shape inference. A value without behaviour: net_builder.hpp builds it, devices
// compile it, and each entry becomes one `layer` actor. Every index below points into the vectors of
// `net`.
#pragma once
#include "models/caffe.hpp"
#include "models/shape.hpp"
#include "models/spec/spec_file.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

struct net_blob {
  std::string name;  ///< in-place layers name the same blob as bottom and top
  poseidon::shape shape;
};

struct net_parameter {
  std::size_t layer = 0;  ///< owner of the values: the first in net order that names them
  std::size_t slot = 0;   ///< place among that layer's parameters: 0 weights, 1 bias
  std::string name;       ///< "<layer>/<slot>", or the name under which layers share it
  poseidon::shape shape;  ///< Caffe's layout; the layout of the wire, the shards and the snapshots
  float lr_mult = 1;
  float decay_mult = 1;
  ::caffe::FillerParameter filler;
  /// Set for a running statistic (BatchNorm with statistics of the batch). It is not learned: each pass
  /// replaces it by average_momentum * value + the pass's statistic. backward() writes
  /// average_momentum^passes_after times the statistic to the place of the gradient, so that after P
  /// passes the value is average_momentum^P * value + the sum of what the passes wrote.
  std::optional<float> average_momentum = std::nullopt;
  /// Of a program: a version is what worker 0 has pushed, bit for bit, whatever the bits are; the other workers push nothing.
  bool given = false;
  /// Of a program: its values have nothing in common, so that it stays float32 where others travel in blocks (int8, int4).
  bool bundle = false;
};

/// One layer. Its dataflow follows from blobs: the producer of a bottom is the last earlier layer
/// that has that blob as a top; since shared blobs pass through Split layers, every top has at most
/// one consumer.
struct net_layer {
  std::string name;
  std::string type;                  ///< Caffe's V2 word: "Convolution", "Split", ...
  ::caffe::LayerParameter spec;      ///< everything the kernel needs beyond shapes
  std::vector<std::size_t> bottoms;  ///< blobs
  std::vector<std::size_t> tops;     ///< blobs
  /// Learned blobs, by slot; shared ones point at the owner's entry.
  std::vector<std::size_t> parameters;
  /// As this layer sees them: PERMISSIVE sharing lets them differ.
  std::vector<shape> parameter_shapes;
  std::vector<bool> propagate_down;  ///< by bottom: whether its diff is computed
  std::vector<bool> learn;          ///< by parameter: whether its gradient is needed (lr_mult != 0)
  std::vector<float> loss_weights;  ///< by top; 0 where the top is no loss
  bool needs_backward = false;
  /// Of a layer of type "Declared" (declared_net.hpp): rows of the factors that its program can give. 0: it gives none.
  std::size_t factor_rows = 0;
  spec_position where;  ///< for messages; line 0 for layers that no file wrote (Split)
};

struct net {
  std::string name;
  ::caffe::Phase phase = ::caffe::TRAIN;
  std::vector<net_layer> layers;  ///< in execution order
  std::vector<net_blob> blobs;
  std::vector<net_parameter> parameters;
  std::vector<std::size_t> outputs;  ///< blobs that nothing consumes, in Caffe's order (by name)
};

/// The layer that last wrote `blob` before layer `before` (layers.size() for the net's end).
[[nodiscard]] std::optional<std::size_t> producer(const net& n, std::size_t blob,
                                                  std::size_t before);

/// The first layer after `after` that takes `blob` as a bottom before another layer overwrites it.
[[nodiscard]] std::optional<std::size_t> consumer(const net& n, std::size_t blob,
                                                  std::size_t after);

/// Layers that have `blob` as a top: more than one where some work in place.
[[nodiscard]] std::size_t writers_of(const net& n, std::size_t blob);

/// For a layer without bottoms that is no source itself (Parameter): the net's first source, whose pass
/// begins that layer's pass. Nothing for all other layers.
[[nodiscard]] std::optional<std::size_t> starter(const net& n, std::size_t layer);

/// By parameter: the first layer in net order that uses it, whose place decides how urgent the parameter is.
/// Errors   std::invalid_argument: no layer uses one.
[[nodiscard]] std::vector<std::size_t> first_uses(const net& n);

/// Whether a solver ever changes the parameter: unless its lr_mult is 0. Where no loss reaches its layers the
/// gradient is 0, but weight decay and momentum still act, as in Caffe.
[[nodiscard]] bool is_learned(const net_parameter& p);
[[nodiscard]] bool is_learned(const net& n, std::size_t parameter);

/// Whether training ever changes the parameter: it is learned, or a running statistic
/// (net_parameter::average_momentum).
[[nodiscard]] bool is_updated(const net_parameter& p);
[[nodiscard]] bool is_updated(const net& n, std::size_t parameter);

/// Whether backward() of this layer writes anything: a diff, a gradient, or the change of a running
/// statistic, which a layer has even where no gradient reaches it.
[[nodiscard]] bool runs_backward(const net& n, const net_layer& layer);

/// The net's phase, or the layer's own where its specification has one.
[[nodiscard]] ::caffe::Phase phase_of(const net& n, const net_layer& layer);

/// Whether a BatchNorm normalises with its batch and so has running statistics. By default it does in TRAIN
/// and does not in TEST.
[[nodiscard]] bool uses_batch_statistics(const net& n, const net_layer& layer);

/// By blob: whether its shape can differ from the net's at run time, as behind a Filter, which passes some samples of a batch.
[[nodiscard]] std::vector<bool> resized_blobs(const net& n);

/// A layer's place for a parameter.
struct parameter_place {
  std::size_t layer = 0, slot = 0;
  friend bool operator==(const parameter_place&, const parameter_place&) = default;
};
/// The places whose layers write the gradient of a parameter, from the net's end to its beginning.
[[nodiscard]] std::vector<parameter_place> gradient_writers(const net& n, std::size_t parameter);

/// By parameter: whether it is known which layer's backward pass is the last to write its gradient. It is not where several
/// layers use the parameter and not all of them learn it.
[[nodiscard]] std::vector<bool> have_whole_gradients(const net& n);

/// Whether this layer's tops come from outside the net (Data, Input, DummyData, ...).
[[nodiscard]] bool is_source(const net_layer& layer);

}  // namespace poseidon
