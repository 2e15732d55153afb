#include "models/net/net_builder.hpp"

#include "models/net/backward_flags.hpp"
#include "models/net/blob_uses.hpp"
#include "models/net/layer_rules.hpp"
#include "models/words.hpp"

#include <limits>
#include <map>
#include <set>
#include <utility>

namespace poseidon {

namespace {

// What is planned for a net grows with the square of these.
constexpr int most_layers = 20000, most_blobs = 10000;
constexpr std::size_t most_axes = 32;  // as in Caffe

/// Adds one layer after the other to a net; its state is kept by blob or by parameter.
class net_assembly {
 public:
  net_assembly(const net_file& file, const build_options& options)
      : file_(file), options_(options) {
    net_.name = file.spec.name();
    net_.phase = options.state.phase;
  }

  void add(int index);
  [[nodiscard]] net finish() &&;

 private:
  struct sharing {
    std::size_t parameter = 0;
    bool has_lr = false, has_decay = false;  ///< whether a layer gave the multiplier explicitly
  };

  void connect_bottoms(net_layer& layer);
  void connect_tops(net_layer& layer, const layer_type& type, const layer_question& q,
                    const std::vector<shape>& shapes);
  [[nodiscard]] std::vector<shape> source_tops(const layer_type& type, const layer_question& q,
                                               std::vector<shape> said) const;
  void set_loss_weights(net_layer& layer, const layer_type& type, const layer_question& q) const;
  void add_parameters(net_layer& layer, const layer_question& q, std::vector<learned_blob> learned);
  void share(net_layer& layer, const layer_question& q, sharing& owner, std::size_t slot,
             const shape& s, const ::caffe::ParamSpec& param);
  void check_name(const net_layer& layer);

  const net_file& file_;
  const build_options& options_;
  net net_;
  std::map<std::string, std::size_t> blobs_;       ///< the latest of each name
  std::map<std::string, std::string> copied_;      ///< what each top of a Split layer copies
  std::set<std::string> unused_;                   ///< made and not yet taken
  std::map<std::string, sharing> shared_;          ///< by the parameter's given name
  std::map<std::string, spec_position> learners_;  ///< layers with parameters, by name
};

void net_assembly::connect_bottoms(net_layer& layer) {
  for (const auto& name : layer.spec.bottom()) {
    layer.bottoms.push_back(blobs_.at(name));
    unused_.erase(name);
  }
}

std::size_t number_of_tops(const layer_type& type, const ::caffe::LayerParameter& spec) {
  const auto written = static_cast<std::size_t>(spec.top_size());
  return type.loss ? std::max<std::size_t>(written, 1) : written;
}

/// Every source's first axis is the batch; each replica gets its part of it.
std::vector<shape> net_assembly::source_tops(const layer_type& type, const layer_question& q,
                                             std::vector<shape> said) const {
  if (type.rule == nullptr) {
    if (!options_.sources) q.fail("its data cannot be opened here, so its shapes are not known.");
    said = options_.sources(q.spec, q.where);
    if (said.size() < q.tops)
      q.fail("it has " + plural(q.tops, "top") + ", but its data fill only " +
             std::to_string(said.size()) + ".");
    said.resize(q.tops);
  }
  if (options_.samples > 0) {
    for (auto& s : said) {
      if (s.empty() || s[0] * options_.samples % options_.of_batch != 0)
        q.fail("of its batch " + to_string(s) + " nobody can take " +
               plural(static_cast<std::size_t>(options_.samples), "sample") + " of " +
               std::to_string(options_.of_batch) +
               ". With --batch-share all data layers of the train net need one batch size.");
      s[0] = s[0] * options_.samples / options_.of_batch;
    }
    return said;
  }
  if (options_.split_batch == 1) return said;
  for (auto& s : said) {
    if (s.empty() || s[0] % options_.split_batch != 0)
      q.fail("its batch " + to_string(s) + " does not divide among " +
             plural(static_cast<std::size_t>(options_.split_batch), "replica") +
             ". Choose a batch size that " + std::to_string(options_.split_batch) + " divides.");
    s[0] /= options_.split_batch;
  }
  return said;
}

void net_assembly::connect_tops(net_layer& layer, const layer_type& type, const layer_question& q,
                                const std::vector<shape>& shapes) {
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    q.require(shapes[i].size() <= most_axes,
              "its top would have " + std::to_string(shapes[i].size()) + " axes" + ", at most " +
                  std::to_string(most_axes) + " are possible.");
    const auto values = checked_count(shapes[i]);
    if (!values || *values > std::numeric_limits<std::int32_t>::max())
      q.fail("its top would have the shape " + to_string(shapes[i]) + ", more than 2^31 values.");
    const auto slot = static_cast<int>(i);
    if (slot >= layer.spec.top_size()) {  // the automatic top of a loss, which no layer can take
      layer.tops.push_back(net_.blobs.size());
      net_.blobs.push_back({"(automatic)", shapes[i]});
      continue;
    }
    const auto& name = layer.spec.top(slot);
    if (slot < layer.spec.bottom_size() && layer.spec.bottom(slot) == name) {
      if (!type.in_place)
        q.fail("its top \"" + name + "\" is its bottom, but " + layer.type +
               " cannot work in place. Give the top another name.");
      layer.tops.push_back(blobs_.at(name));
    } else {
      layer.tops.push_back(net_.blobs.size());
      blobs_[name] = net_.blobs.size();
      net_.blobs.push_back({name, shapes[i]});
    }
    unused_.insert(name);
  }
}

void net_assembly::set_loss_weights(net_layer& layer, const layer_type& type,
                                    const layer_question& q) const {
  layer.loss_weights.assign(q.tops, 0.0f);
  const auto given = static_cast<std::size_t>(layer.spec.loss_weight_size());
  if (given > 0 && given != q.tops)
    q.fail("it has " + plural(given, "loss_weight") + " and " + plural(q.tops, "top") +
           ". Give one per top, or none.");
  for (std::size_t i = 0; i < given; ++i)
    layer.loss_weights[i] = layer.spec.loss_weight(static_cast<int>(i));
  if (given == 0 && type.loss) layer.loss_weights[0] = 1;
}

void net_assembly::check_name(const net_layer& layer) {
  const auto [first, fresh] = learners_.emplace(layer.name, layer.where);
  if (!fresh)
    throw spec_error(layer.where,
                     "layer \"" + layer.name + "\" (" + layer.type +
                         "): another layer with parameters has this name (line " +
                         std::to_string(first->second.line) +
                         "), so a snapshot could not keep them apart. Rename one of them.");
}

void net_assembly::share(net_layer& layer, const layer_question& q, sharing& owner,
                         std::size_t slot, const shape& s, const ::caffe::ParamSpec& param) {
  auto& p = net_.parameters[owner.parameter];
  if (p.average_momentum || uses_batch_statistics(net_, layer))
    q.fail("it shares the running statistics \"" + param.name() +
           "\", which each of the layers would change in every pass. Give them different names, or "
           "use_global_stats: true.");
  const auto& owner_layer = net_.layers[p.layer];
  const auto whose = "parameter \"" + param.name() + "\" (slot " + std::to_string(slot) +
                     "), which layer \"" + owner_layer.name + "\" (line " +
                     std::to_string(owner_layer.where.line) + ") owns";
  const bool permissive = param.share_mode() == ::caffe::ParamSpec::PERMISSIVE;
  if (permissive ? count(s) != count(p.shape) : s != p.shape)
    q.fail("it shares " + whose + ": there the shape is " + to_string(p.shape) + ", here " +
           to_string(s) +
           (permissive ? ". The numbers of values must agree."
                       : ". They must be the same; share_mode: PERMISSIVE compares only the number "
                         "of values."));
  const auto agree = [&](const char* what, bool here, float value, bool& there, float& owned) {
    if (!here) return;
    if (there && value != owned)
      q.fail("it shares " + whose + ": there " + what + " is " + plain_number(owned) + ", here " +
             plain_number(value) + ". Give the same, or give it once.");
    there = true;
    owned = value;
  };
  agree("lr_mult", param.has_lr_mult(), param.lr_mult(), owner.has_lr, p.lr_mult);
  agree("decay_mult", param.has_decay_mult(), param.decay_mult(), owner.has_decay, p.decay_mult);
  layer.parameters.push_back(owner.parameter);
}

void net_assembly::add_parameters(net_layer& layer, const layer_question& q,
                                  std::vector<learned_blob> learned) {
  if (static_cast<std::size_t>(layer.spec.param_size()) > learned.size())
    q.fail("it has " + plural(static_cast<std::size_t>(layer.spec.param_size()), "param") +
           ", but learns " + plural(learned.size(), "blob") + ".");
  if (!learned.empty()) check_name(layer);
  for (std::size_t slot = 0; slot < learned.size(); ++slot) {
    ::caffe::ParamSpec param;
    // statistics, which forward() keeps itself
    if (layer.type == "BatchNorm") param.set_lr_mult(0);
    if (static_cast<int>(slot) < layer.spec.param_size())
      param = layer.spec.param(static_cast<int>(slot));
    layer.learn.push_back(param.lr_mult() != 0);
    layer.parameter_shapes.push_back(learned[slot].shape);
    if (const auto known = shared_.find(param.name());
        !param.name().empty() && known != shared_.end()) {
      share(layer, q, known->second, slot, learned[slot].shape, param);
      continue;
    }
    const auto values = checked_count(learned[slot].shape);
    if (!values || *values > std::numeric_limits<std::int32_t>::max())
      q.fail("its parameter " + std::to_string(slot) + " would have the shape " +
             to_string(learned[slot].shape) + ", more than 2^31 values.");
    const auto index = net_.parameters.size();
    layer.parameters.push_back(index);
    if (!param.name().empty())
      shared_[param.name()] = {index, param.has_lr_mult(), param.has_decay_mult()};
    net_.parameters.push_back(
        {.layer = net_.layers.size(),
         .slot = slot,
         .name = param.name().empty() ? layer.name + "/" + std::to_string(slot) : param.name(),
         .shape = std::move(learned[slot].shape),
         .lr_mult = param.lr_mult(),
         .decay_mult = param.decay_mult(),
         .filler = std::move(learned[slot].filler),
         .average_momentum =
             uses_batch_statistics(net_, layer)
                 ? std::optional(layer.spec.batch_norm_param().moving_average_fraction())
                 : std::nullopt});
  }
}

void net_assembly::add(int index) {
  net_layer layer;
  layer.spec = file_.spec.layer(index);
  if (!layer.spec.has_phase()) layer.spec.set_phase(options_.state.phase);
  layer.name = layer.spec.name();
  layer.type = layer.spec.type();
  layer.where = file_.layer_places.at(static_cast<std::size_t>(index));
  const auto& type = find_layer_type(layer.type, layer.spec, layer.where);
  layer_question q{layer.spec, layer.where, {}, number_of_tops(type, layer.spec)};
  check_arity(type, q);
  if (layer.spec.propagate_down_size() > 0 &&
      layer.spec.propagate_down_size() != layer.spec.bottom_size())
    q.fail("it has " + std::to_string(layer.spec.propagate_down_size()) + " propagate_down and " +
           plural(static_cast<std::size_t>(layer.spec.bottom_size()), "bottom") +
           ". Give one per bottom, or none.");
  if (type.rule == nullptr && !type.source)
    throw unsupported_layer(
        layer.where,
        "layer \"" + layer.name + "\" (" + layer.type + "): Poseidon has no layers of this type.",
        layer.type);
  for (const auto& name : layer.spec.bottom()) {
    const auto copy = copied_.find(name);
    q.names.push_back(copy == copied_.end() ? name : copy->second);
  }
  if (layer.type == "Split")
    for (const auto& top : layer.spec.top()) copied_[top] = q.names.front();
  connect_bottoms(layer);
  for (const auto blob : layer.bottoms) q.bottoms.push_back(net_.blobs[blob].shape);
  auto answer = type.rule == nullptr ? layer_answer{} : type.rule(q);
  if (type.source) answer.tops = source_tops(type, q, std::move(answer.tops));
  connect_tops(layer, type, q, answer.tops);
  set_loss_weights(layer, type, q);
  add_parameters(layer, q, std::move(answer.learned));
  net_.layers.push_back(std::move(layer));
}

net net_assembly::finish() && {
  for (const auto& name : unused_) net_.outputs.push_back(blobs_.at(name));
  set_backward_flags(net_, file_.spec.force_backward());
  return std::move(net_);
}

}  // namespace

namespace {

void check_size(const net_file& file) {
  const auto& layers = file.spec.layer();
  if (layers.size() > most_layers)
    throw spec_error("the net \"" + file.spec.name() + "\" has " + std::to_string(layers.size()) +
                     " layers, at most " + std::to_string(most_layers) + " are possible.");
  for (int l = 0; l < layers.size(); ++l)
    for (const auto& [what, blobs] :
         {std::pair{"bottom", layers[l].bottom_size()}, std::pair{"top", layers[l].top_size()}})
      if (blobs > most_blobs)
        throw spec_error(file.layer_places.at(static_cast<std::size_t>(l)),
                         "layer \"" + layers[l].name() + "\" (" + layers[l].type() + "): it has " +
                             plural(static_cast<std::size_t>(blobs), what) + ", at most " +
                             std::to_string(most_blobs) + " are possible.");
}

}  // namespace

net build_net(const net_file& file, const build_options& options) {
  const auto filtered = filter_net(file, options.state);
  check_bottoms(filtered, file);
  check_size(filtered);
  const auto ready = insert_splits(filtered);
  net_assembly assembly(ready, options);
  for (int i = 0; i < ready.spec.layer_size(); ++i) assembly.add(i);
  return std::move(assembly).finish();
}

}  // namespace poseidon
