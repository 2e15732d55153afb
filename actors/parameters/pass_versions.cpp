#include "actors/parameters/pass_versions.hpp"

namespace poseidon {

void pass_versions::pin(parameter_id parameter, std::int32_t test_net, const pass_id& pass) {
  auto& p = pins_[parameter];
  if (p.test_net == test_net && p.pass == pass) return;
  p.test_net = test_net;
  p.pass = pass;
  const auto version = store_->version(parameter);
  p.values.values.store(store_->values(parameter, version).data(), std::memory_order_relaxed);
  p.values.version.store(version, std::memory_order_release);
}

}  // namespace poseidon
