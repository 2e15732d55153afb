#include "actors/parameters/gradient_push.hpp"

#include "actors/core/logic_bug.hpp"
#include "actors/parameters/send_order.hpp"
#include "messages/float_payload.hpp"

#include <limits>

namespace poseidon {

gradient_push::gradient_push(actor_context context, gradient_push_setup setup)
    : actor(context),
      setup_(std::move(setup)),
      gate_(setup_.of_side_branch, setup_.staleness),
      pool_(std::numeric_limits<std::size_t>::max()) {
  const auto& cut = setup_.store->cut();
  for (const auto p : setup_.parameters) learned_chunks_ += cut.by_parameter[p].size();
  for (const auto p : setup_.frozen) frozen_chunks_ += cut.by_parameter[p].size();
}

void gradient_push::on(const connect_gradient_push& m) {
  neighbours_ = m;
}

void gradient_push::on(const backward_done& m) {
  // Counted by pass: streams keep their order, but their messages to two layers may cross.
  const std::pair pass{value(m.pass.clock), m.pass.index};
  if (++done_[pass] < setup_.contributions) return;
  done_.erase(pass);
  if (setup_.tells_taken)
    for (const auto& layer : neighbours_->layers_taken) tell(layer, gradient_taken{m.pass});
  const auto passes = m.pass.index + 1, own = setup_.passes_per_update;
  if (passes < setup_.micro_batches) {
    if (own > 0 && passes % own == 0) tell_layers({version_id{value(m.pass.clock)}, passes / own});
  } else if (gate_.admits(m.pass.clock)) {
    push(m.pass.clock);
  }
}

void gradient_push::tell_layers(const parameters_fresh& m) {
  for (const auto& layer : neighbours_->layers) tell(layer, m);
}

void gradient_push::on(const parameters_whole& m) {
  gate_.open(m.version, [this](clock_id clock) { push(clock); });
}

/// The i-th parameter's gradient in its wire format; without values where it stays on a device.
payload gradient_push::whole(clock_id clock, std::size_t i) {
  const auto reduces = setup_.encoder && setup_.encoder->reduces(i);
  if (reduces && !setup_.of_program) return setup_.encoder->take(i);
  const auto total = setup_.gradient->total(value(clock), i);
  if (!reduces || total.empty()) return {setup_.gradient, std::as_bytes(total)};
  setup_.encoder->encode(i, total);
  return setup_.encoder->take(i);
}

/// A program's values in the format that its clock has.
payload gradient_push::rounded(wire_format format, const payload& values) {
  if (format == wire_format::float32 || values.bytes.empty()) return values;
  const auto exact = floats(values);
  auto buffer = pool_.take(wire_bytes(format, exact.size()));
  encode_cast(format, exact, buffer.bytes);
  return {std::move(buffer.owner), buffer.bytes};
}

void gradient_push::push(clock_id clock) {
  const auto now = now_ns();
  pushed_at_ns_[value(clock)] = now;
  setup_.overlap->began(now);
  const auto& cut = setup_.store->cut();
  const auto step = mark_of(*setup_.gradient);
  for (std::size_t i = 0; i < setup_.parameters.size(); ++i) {
    const auto gradient = whole(clock, i);
    const auto& chunks = cut.by_parameter[setup_.parameters[i]];
    for (std::size_t j = 0; j < chunks.size(); ++j) {
      const auto chunk = chunks[j];
      const auto& c = cut.chunks[chunk];
      auto values = gradient;
      if (!values.bytes.empty())
        values.bytes =
            values.bytes.subspan(wire_bytes(c.format, c.offset), wire_bytes(c.format, c.count));
      values = rounded(step.wire, values);
      if (c.owner == setup_.self)
        tell(neighbours_->own_shard, gradient_arrived{setup_.self, chunk, clock, values, step},
             values.bytes.size());
      else
        tell(neighbours_->links[value(c.owner)],
             send_frame{frames::push_gradient{chunk, clock, values.bytes.empty(), step}, values,
                        priority(clock, i, j)},
             values.bytes.size());
    }
  }
}

/// The priority of the j-th chunk of the i-th parameter.
std::uint64_t gradient_push::priority(clock_id clock, std::size_t i, std::size_t j) const {
  const auto version = value(clock) + 1;
  if (setup_.magnitudes == nullptr)
    return forward_order(version, place_of(setup_.places.get(), setup_.layer));
  return magnitude_order(version, setup_.magnitudes->of(value(clock), i, j));
}

void gradient_push::landed(std::uint64_t version, bool nothing) {
  const auto expected = learned_chunks_ + (installed_ ? 0 : frozen_chunks_);
  auto& here = landed_[version];
  if (++here > expected) throw logic_bug("a chunk landed twice in one version", here, expected);
  if (here < expected) return;
  landed_.erase(version);
  publish(version, nothing);  // all chunks of a parameter come with values, or none does
}

void gradient_push::publish(std::uint64_t version, bool nothing) {
  const auto& cut = setup_.store->cut();
  for (const auto p : setup_.parameters) {
    using is = parameter_store::mean_is;
    setup_.store->set_mean(p, version, nothing ? is::nothing : is::here);
    setup_.store->publish(p, version);
  }
  if (const auto pushed = pushed_at_ns_.extract(version - 1)) {  // not for the first values
    const auto now = now_ns();
    setup_.overlap->ended(now);
    if (!setup_.trace.empty())
      setup_.trace[(version - 1) % setup_.trace.size()]->record(
          {setup_.name, span_phase::exchange, pushed.mapped(), now, version - 1});
  }
  if (!installed_) {
    installed_ = true;
    for (const auto p : setup_.frozen) setup_.store->publish(p, version);
    for (const auto p : setup_.parameters)
      for (const auto id : cut.by_parameter[p])
        if (cut.chunks[id].owner == setup_.self)
          tell(neighbours_->own_shard_install, install_chunk{id, version_id{version}});
  }
  tell_layers({version_id{version}});
  if (learned_chunks_ > 0)
    tell(neighbours_->solver, layer_fresh{setup_.layer, version_id{version}, nothing});
}

void gradient_push::on(const shut_down&) {
  quit();
}

}  // namespace poseidon
