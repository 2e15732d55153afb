#include "apps/node/looking.hpp"

#include <chrono>
#include <utility>

namespace poseidon::app {

handshake_options asking(link_identity::purpose wants, std::string token,
                         std::shared_ptr<const tls_context> tls) {
  handshake_options options;
  options.token = std::move(token);
  options.tls = std::move(tls);
  options.build = POSEIDON_VERSION;
  options.self.wants = wants;
  options.self.listen_address = "127.0.0.1:0";  // it listens nowhere
  return options;
}

std::vector<host_port> look_for_run(const node_options& o) {
  constexpr std::chrono::seconds answers_within{3};
  auto options = asking(link_identity::purpose::look, o.token, o.tls);
  options.limit = answers_within;
  for (auto at = o.join.begin(); at != o.join.end(); ++at) {
    try {
      if (dial(*at, options, std::chrono::milliseconds{0}).peer.epoch == 0) continue;
      std::vector<host_port> out(at, o.join.end());
      out.insert(out.end(), o.join.begin(), at);
      return out;
    } catch (const socket_error&) {
    } catch (const handshake_error& e) {
      if (e.why != refusal::silent && e.why != refusal::closed) throw;
    }
  }
  return {};
}

node_options as_joiner(node_options o, std::vector<host_port> others) {
  o.join = std::move(others);
  o.nodes = 1;
  o.survive.reset();
  o.staleness.reset();
  o.synthetic.reset();
  o.link_rate_mbit_s = 0;
  for (auto* const file : {&o.solver, &o.snapshot, &o.csv, &o.tensorboard}) file->clear();
  for (auto* const words : {&o.weights, &o.views, &o.global_batch, &o.keep_best, &o.stop_at})
    words->clear();
  o.routes = "auto";
  o.wire = "float32";
  o.batch_share = "equal";
  o.lost_state = "end";
  o.warnings.clear();
  return o;
}

}  // namespace poseidon::app
