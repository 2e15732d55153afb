// actors/training/data_source.hpp
//
// Reads and transforms the batches of one data layer of one replica, ahead of the clock. Which
// samples a pass works on is known in advance (sample_schedule), so it needs no orders to read ahead; the
// fixed pool of batches is the back-pressure: no free batch, no reading.
//
// Accepts  start_pass   from solver   passes in the order of the schedule
//          prefetch     from itself
//          shut_down    from node
// Sends    batch_ready  to the data layer
//          training_failed  to node   a record that cannot be read
// State    batches ready, passes that wait for one.
// Fails    a broken record ends training with the source, the key and the reason.
// Detached: it reads files and transforms, with `readers` threads.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/core/trace.hpp"
#include "data/batch_filler.hpp"
#include "data/batch_pool.hpp"
#include "data/source.hpp"
#include "messages/training.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

namespace poseidon {

struct prefetch {};

struct data_source_setup {
  std::shared_ptr<const sample_source> source;
  std::size_t batch = 0;                                     ///< samples per pass
  std::function<std::uint64_t(std::uint64_t)> first_sample;  ///< of the n-th pass
  std::size_t ahead = 2;                                     ///< batches kept ready
  std::size_t readers = 1;  ///< threads that fill a batch, the actor's own among them
  std::shared_ptr<std::pmr::memory_resource> memory;  ///< for batches; empty: ordinary memory
  std::string_view name;
  port<training_failed> node;
  trace_lane* trace = nullptr;
};

struct connect_data_source {
  port<batch_ready> layer;
};

class data_source : public actor<data_source> {
 public:
  static constexpr const char* type_name = "data_source";
  using accepts = messages<connect_data_source, start_pass, prefetch, shut_down>;
  using sends = messages<batch_ready, training_failed>;

  data_source(actor_context context, data_source_setup setup);
  void on(const connect_data_source& m);
  void on(const start_pass& m);
  void on(const prefetch&);
  void on(const shut_down& m);

 private:
  /// Returns  false where no batch is free (the pool sends prefetch when one is) or a record cannot be read.
  bool read_one();
  void serve();

  data_source_setup setup_;
  until_end<port<batch_ready>> layer_{this};
  // A prefetch has been sent: one is enough, however many batches are freed meanwhile.
  std::shared_ptr<std::atomic<bool>> asked_;
  std::function<void()> ask_;  // any thread
  batch_pool pool_;
  batch_filler filler_;
  std::uint64_t read_ = 0;  // passes read so far
  bool broken_ = false;     // the next record cannot be read, and node has been told
  std::deque<std::shared_ptr<const batch>> ready_;
  std::deque<pass_id> wanted_;
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::prefetch)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::connect_data_source)
