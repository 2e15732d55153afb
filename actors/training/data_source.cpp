#include "actors/training/data_source.hpp"

namespace poseidon {

namespace {
// The stream holds at most two: the batch of the pass that computes and the one before, whose last kernel may
// still be in the queue. One more is in a message.
constexpr std::size_t batches_in_use = 3;
}  // namespace

data_source::data_source(actor_context context, data_source_setup setup)
    : actor(context),
      setup_(std::move(setup)),
      asked_(std::make_shared<std::atomic<bool>>(false)),
      ask_([asked = asked_, tell = teller_of_self<prefetch>()] {
        if (!asked->exchange(true)) tell();
      }),
      pool_(setup_.ahead + batches_in_use, ask_, setup_.memory),
      filler_(setup_.readers) {}

void data_source::on(const connect_data_source& m) {
  layer_ = m.layer;
  ask_();
}

void data_source::on(const start_pass& m) {
  wanted_.push_back(m.pass);
  if (ready_.empty()) read_one();
  serve();
}

void data_source::on(const prefetch&) {
  *asked_ = false;
  if (ready_.size() >= setup_.ahead) return;
  const bool may_go_on = read_one();
  serve();
  if (may_go_on && !ready_.empty() && ready_.size() < setup_.ahead) ask_();
}

bool data_source::read_one() {
  if (broken_) return false;
  auto values = pool_.try_take();
  if (values == nullptr) return false;
  const auto begin = setup_.trace != nullptr ? now_ns() : 0;
  try {
    filler_.fill(*setup_.source, setup_.first_sample(read_),
                 static_cast<std::int64_t>(setup_.batch), *values);
  } catch (const std::exception& e) {
    broken_ = true;
    tell(setup_.node, training_failed{e.what(), 2});
    return false;
  }
  if (setup_.trace != nullptr)
    setup_.trace->record({setup_.name, span_phase::read, begin, now_ns(), read_});
  ++read_;
  ready_.push_back(std::move(values));
  return true;
}

void data_source::serve() {
  while (!wanted_.empty() && !ready_.empty()) {
    const auto bytes =
        ready_.front()->tops.empty() ? 0 : ready_.front()->tops[0].size() * sizeof(float);
    tell(*layer_, batch_ready{wanted_.front(), std::move(ready_.front())}, bytes);
    wanted_.pop_front();
    ready_.pop_front();
    ask_();
  }
}

void data_source::on(const shut_down&) {
  ready_.clear();
  quit();
}

}  // namespace poseidon
