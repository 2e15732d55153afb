#include "models/net/activation.hpp"

#include "models/net/refusal.hpp"

namespace poseidon {
namespace {

/// -1 stands for e.
void check_base(const net_layer& layer, float base) {
  if (base == -1 || base > 0) return;
  refuse_layer(layer, "base is " + std::to_string(base) + ", it must be above 0, or -1 for e.");
}

}  // namespace

bool activation::needs_x() const {
  return with_function(*this, [](const auto& f) { return f.needs_x(); });
}

activation resolve_activation(const net_layer& layer) {
  using kind = activation::kind;
  const std::string& type = layer.type;
  const auto& spec = layer.spec;
  if (type == "ReLU") return {kind::relu, spec.relu_param().negative_slope()};
  if (type == "AbsVal") return {kind::absolute};
  if (type == "Sigmoid") return {kind::sigmoid};
  if (type == "TanH") return {kind::tangent};
  if (type == "ELU") return {kind::elu, spec.elu_param().alpha()};
  if (type == "BNLL") return {kind::soft_plus};
  if (type == "Power") {
    const auto& p = spec.power_param();
    return {kind::power, p.power(), p.scale(), p.shift()};
  }
  if (type == "Exp") {  // base^(shift + scale x)
    const auto& p = spec.exp_param();
    check_base(layer, p.base());
    const float log_base = p.base() == -1 ? 1.0f : std::log(p.base());
    return {kind::exponential, log_base * p.scale(), std::exp(log_base * p.shift())};
  }
  if (type == "Log") {  // log_base(shift + scale x)
    const auto& p = spec.log_param();
    check_base(layer, p.base());
    return {kind::logarithm, p.scale(), p.shift(),
            p.base() == -1 ? 1.0f : 1.0f / std::log(p.base())};
  }
  if (type == "Threshold") return {kind::threshold, spec.threshold_param().threshold()};
  if (type == "Clip") return {kind::clip, spec.clip_param().min(), spec.clip_param().max()};
  if (type == "Swish") return {kind::swish, spec.swish_param().beta()};
  refuse_layer(layer, "it is no activation.");
}

}  // namespace poseidon
