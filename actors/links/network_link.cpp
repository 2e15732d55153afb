#include "actors/links/network_link.hpp"

#include "actors/core/core_wait.hpp"
#include "actors/core/trace.hpp"
#include "actors/links/link_receiver.hpp"
#include "messages/wire/tcp_flow.hpp"

#include <utility>

namespace poseidon {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

}  // namespace

network_link::network_link(actor_context context, std::shared_ptr<link_shared> shared)
    : actor<network_link>(context), shared_(std::move(shared)), writer_(shared_->options) {}

void network_link::started() {
  tell_self(link_tick{}, shared_->options.heartbeat / 2);
}

void network_link::ended() {
  shared_->options.socket->shutdown();
}  // also ends the receiver

void network_link::on(const send_frame& m) {
  if (phase_ != phase::open) return;  // the node learns from link_lost that it was not sent
  const auto binding = shared_->binding();
  if (is_of_a_view(m.header) && binding->between_views) return;
  // Its sender has not heard yet that its view is over.
  if (m.epoch != 0 && m.epoch != binding->self.epoch) return;
  auto frame = m;
  if (frame.priority > 0 && binding->fifo) frame.priority = 1;
  writer_.push(std::move(frame));
  want_pump();
}

void network_link::on(const close_link& m) {
  if (phase_ != phase::open) return;
  phase_ = phase::closing;
  goodbye_ = {m.reason, m.of};
  writer_.drop_shared_state();
  want_pump();
}

void network_link::on(const bind_link& m) {
  if (m.binding->goes_back) writer_.drop_what_waits();
  if (m.binding->self.epoch != shared_->binding()->self.epoch) writer_.drop_what_is_for_the_page();
  reads_older_ = !shared_->bind(m.binding);
  binds_ = true;
  say_bound();
}

void network_link::on(const older_frames_ended&) {
  reads_older_ = false;
  say_bound();
}

void network_link::say_bound() {
  const auto binding = shared_->binding();
  if (!binds_ || reads_older_ || (binding->goes_back && writer_.is_writing())) return;
  binds_ = false;
  tell(binding->routes.bound, link_bound{binding->peer, binding->self.epoch});
}

// A frame that waits for no budget does not wait for a pump that does.
void network_link::want_pump(milliseconds delay) {
  const auto due = clock::now() + delay;
  if (pump_due_ && *pump_due_ <= due) return;
  pump_due_ = due;
  tell_self(pump{++pump_turn_}, delay);
}

void network_link::on(const pump& m) {
  if (m.turn != pump_turn_) return;
  pump_due_.reset();
  if (phase_ != phase::open && phase_ != phase::closing) return;
  const auto binding = shared_->binding();
  const bool closing = phase_ == phase::closing;
  const bool goes_on = act(writer_.write(*binding, closing));
  say_bound();
  if (goes_on || !closing) return;
  if (goodbye_put_) return said_goodbye();
  goodbye_put_ = true;
  writer_.put_now(goodbye_, binding->self);
  want_pump();
}

bool network_link::act(const link_writer::step& s) {
  if (s.broken) break_off(*s.broken);
  if (s.again) want_pump(*s.again);
  return s.broken || s.again;
}

void network_link::on(const link_tick&) {
  const auto& o = shared_->options;
  const auto now = o.now();
  if (phase_ == phase::open || phase_ == phase::closing) {
    const auto binding = shared_->binding();
    if (!goodbye_put_) act(writer_.write_heartbeat(*binding));
    if (binding->routes.flow && now - flow_at_ >= o.flow_interval) {
      flow_at_ = now;
      if (const auto flow = flow_of(o.socket->descriptor()))
        tell(binding->routes.flow, link_flow{binding->peer, flow->acked_bytes, flow->busy_us,
                                             flow->hindered_us, core_wait_us()});
    }
  } else if (phase_ == phase::said_goodbye && now - goodbye_at_ > o.silence_limit) {
    o.socket->shutdown();  // the peer has had its time to end, and sends on
  }
  if (phase_ != phase::over) tell_self(link_tick{}, o.heartbeat / 2);
}

void network_link::said_goodbye() {
  phase_ = phase::said_goodbye;
  goodbye_at_ = shared_->options.now();
  shared_->options.socket->shutdown_writing();
  if (peer_done_) finish(*peer_done_);
}

void network_link::break_off(std::string why) {
  phase_ = phase::broken;
  own_fault_ = std::move(why);
  shared_->options.socket->shutdown();  // the receiver ends and says so
  if (peer_done_) finish(*peer_done_);
}

void network_link::on(const receiver_ended& m) {
  // What waits may answer the peer's last frames. The peer reads until this node has said goodbye too, so it is
  // still sent.
  if (m.goodbye && phase_ == phase::open && !writer_.empty()) phase_ = phase::closing;
  if (m.goodbye && phase_ == phase::closing) {
    writer_.drop_shared_state();
    peer_done_ = m;
    return want_pump();
  }
  finish(m);
}

void network_link::finish(const receiver_ended& m) {
  const bool ours = phase_ == phase::said_goodbye;
  phase_ = phase::over;
  const auto binding = shared_->binding();
  link_lost lost{binding->peer, m.why, ours || m.goodbye};
  auto reason = !own_fault_.empty() ? own_fault_
                : m.goodbye         ? m.goodbye->reason
                : ours              ? goodbye_.reason
                                    : "";
  if (lost.on_purpose && !reason.empty()) lost.reason = std::move(reason);
  if (m.goodbye) lost.of = m.goodbye->of;
  lost.said_goodbye = m.goodbye && !ours;
  const bool gap = heard_after_a_gap(*shared_->options.counters, shared_->options.now());
  lost.slept = gap && !m.silent;
  lost.fresh = !gap && !m.silent;
  if (!own_fault_.empty())
    lost.why = "the link to " + shared_->peer() + " was broken off: " + own_fault_;
  if (ours && !m.goodbye) {
    lost.why = "closed the link to " + shared_->peer();
    if (!goodbye_.reason.empty()) lost.why += ": " + goodbye_.reason;
  }
  tell(binding->routes.lost, std::move(lost));
  quit();
}

handle<network_link> open_link(caf::actor_system& system, edge_book& book, const std::string& name,
                               link_options options) {
  auto shared = std::make_shared<link_shared>();
  shared->options = std::move(options);
  shared->current = std::make_shared<const link_binding>(std::move(shared->options.binding));
  auto link = spawn<network_link>(system, book, thread_kind::own, name, shared);
  auto in = spawn<link_receiver>(system, book, thread_kind::own, name + " in", shared, link);
  tell_from_outside(in, begin_receiving{});
  return link;
}

}  // namespace poseidon
