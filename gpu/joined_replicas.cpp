// gpu/joined_replicas.cpp - replicas whose gradients are added and used on a device.
#include "gpu/device_updates.hpp"
#include "gpu/gpu_replica.hpp"

#include <algorithm>

namespace poseidon::gpu {
namespace {

gpu_replica& ours(const std::shared_ptr<replica>& r) {
  return static_cast<gpu_replica&>(*r);
}

/// By parameter: the gradient that can be used on the first replica's device, or null.
std::vector<float*> gradients_there(std::span<const std::shared_ptr<replica>> replicas) {
  const gpu_replica& first = ours(replicas.front());
  auto there = addable(first.state().graph, first.state().sums);
  if (replicas.size() == 1) return there;
  const auto& group = first.group();
  const bool all =
      group != nullptr && std::all_of(replicas.begin(), replicas.end(),
                                      [&](const auto& r) { return ours(r).group() == group; });
  for (std::size_t p = 0; p < there.size(); ++p)
    if (!all || !group->adds(p)) there[p] = nullptr;
  return there;
}

}  // namespace

std::size_t join(std::span<const std::shared_ptr<replica>> replicas) {
  gpu_replica& first = ours(replicas.front());
  std::vector<gpu_replica*> joined;
  std::vector<gradient_group::member> members;
  for (const auto& one : replicas) {
    gpu_replica& r = ours(one);
    // keep_all_diffs is for looking at the gradients of one replica.
    if (!r.state().has_backward() || r.state().options.keep_all_diffs ||
        !enable_copies(r.with()->device, first.with()->device))
      break;
    joined.push_back(&r);
    members.push_back({r.with(), addable(r.state().graph, r.state().sums)});
  }
  if (joined.size() < 2) return 1;
  const auto& added = members.front().gradients;
  if (std::all_of(added.begin(), added.end(), [](const float* g) { return g == nullptr; }))
    return 1;
  std::vector<std::span<float>> home;
  for (std::size_t p = 0; p < added.size(); ++p) home.push_back(first.gradient(p));
  const auto group = std::make_shared<gradient_group>(std::move(members), std::move(home),
                                                      first.state().graph.name);
  for (std::size_t i = 0; i < joined.size(); ++i) joined[i]->join(group, i);
  return joined.size();
}

std::shared_ptr<device_updates> make_updates(std::span<const std::shared_ptr<replica>> replicas,
                                             const updates_wanted& wanted) {
  gpu_replica& first = ours(replicas.front());
  const net& n = first.state().graph;
  // Fresh values go from the first device to the others.
  if (!std::all_of(replicas.begin(), replicas.end(), [&](const auto& r) {
        return enable_copies(first.with()->device, ours(r).with()->device);
      }))
    return nullptr;
  const auto there = gradients_there(replicas);
  std::vector<held_parameter> held(n.parameters.size());
  bool any = false;
  for (std::size_t p = 0; p < held.size(); ++p) {
    const bool by_factors = wanted.by_factors.at(p);
    if (!by_factors && (!wanted.by_gradient.at(p) || there.at(p) == nullptr)) continue;
    any = true;
    held[p].name = n.parameters[p].name;
    held[p].values = first.parameter(p);
    held[p].count = static_cast<std::size_t>(count(n.parameters[p].shape));
    if (!by_factors) held[p].gradient = there[p];
    for (const auto& r : replicas) {
      if (!by_factors) ours(r).keep_gradient(p);
      if (&ours(r) != &first) ours(r).parameter(p)->follow(first.parameter(p));
    }
  }
  if (!any) return nullptr;
  return std::make_shared<gpu_updates>(
      std::vector<std::shared_ptr<replica>>(replicas.begin(), replicas.end()), first.with(),
      std::move(held), wanted);
}

}  // namespace poseidon::gpu
