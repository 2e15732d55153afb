#include "actors/data_source.hpp"

namespace poseidon {

namespace {
// Held by the stream at most: the batch of the pass that computes and the one before, whose last use may
// still be in the queue; and one more that is on its way.
constexpr std::size_t batches_in_use = 3;
}  // namespace

data_source::data_source(actor_context context, data_source_setup setup)
    : actor(context),
      setup_(std::move(setup)),
      pool_(setup_.ahead + batches_in_use, teller_of_self<prefetch>(), setup_.memory) {}

void data_source::on(const connect_data_source& m) {
  layer_ = m.layer;
  tell_self(prefetch{});
}

void data_source::on(const start_pass& m) {
  wanted_.push_back(m.pass);
  if (ready_.empty()) read_one();
  serve();
}

void data_source::on(const prefetch&) {
  if (ready_.size() >= setup_.ahead) return;
  read_one();
  serve();
  if (!ready_.empty() && ready_.size() < setup_.ahead) tell_self(prefetch{});
}

void data_source::read_one() {
  auto values = pool_.try_take();
  if (values == nullptr) return;  // the pool tells prefetch when one comes back
  const auto begin = setup_.trace != nullptr ? now_ns() : 0;
  try {
    fill_batch(*setup_.source, setup_.first_sample(read_), static_cast<std::int64_t>(setup_.batch),
               *values);
  } catch (const std::exception& e) {
    tell(setup_.node, training_failed{e.what(), 2});
    return;
  }
  if (setup_.trace != nullptr) setup_.trace->record({setup_.name, "read", begin, now_ns(), read_});
  ++read_;
  ready_.push_back(std::move(values));
}

void data_source::serve() {
  while (!wanted_.empty() && !ready_.empty()) {
    const auto bytes =
        ready_.front()->tops.empty() ? 0 : ready_.front()->tops[0].size() * sizeof(float);
    tell(layer_, batch_ready{wanted_.front(), std::move(ready_.front())}, bytes);
    wanted_.pop_front();
    ready_.pop_front();
    tell_self(prefetch{});
  }
}

void data_source::on(const shut_down&) {
  layer_ = {};
  ready_.clear();
  quit();
}

}  // namespace poseidon
