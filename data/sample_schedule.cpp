#include "data/sample_schedule.hpp"

#include <stdexcept>
#include <string>

namespace poseidon {
namespace {
void require_below(const char* what, std::uint64_t value, std::uint64_t limit) {
  if (value >= limit)
    throw std::invalid_argument(std::string(what) + " " + std::to_string(value) +
                                " is beyond the schedule's " + std::to_string(limit));
}
}  // namespace

std::uint64_t sample_schedule::samples_per_clock() const {
  return workers * micro_batches * replicas * batch;
}

std::uint64_t first_sample(const sample_schedule& s, const train_pass& p) {
  require_below("worker", p.worker, s.workers);
  require_below("micro-batch", p.micro_batch, s.micro_batches);
  require_below("replica", p.replica, s.replicas);
  const auto node_batch = (p.clock * s.workers + p.worker) * s.micro_batches + p.micro_batch;
  return s.start + (node_batch * s.replicas + p.replica) * s.batch;
}

std::uint64_t passes_after(const sample_schedule& s, const train_pass& p) {
  const auto one_sample_each = sample_schedule{s.workers, s.micro_batches, s.replicas, 1};
  const auto place = first_sample(one_sample_each, {0, p.worker, p.micro_batch, p.replica});
  return one_sample_each.samples_per_clock() - 1 - place;
}

std::uint64_t first_test_sample(const test_schedule& s, std::uint64_t t, std::uint64_t k) {
  require_below("test batch", k, s.batches);
  return (t * s.batches + k) * s.batch;
}

std::uint64_t test_worker(const test_schedule& s, std::uint64_t k) {
  require_below("test batch", k, s.batches);
  return k % s.workers;
}

std::uint64_t test_batches_of(const test_schedule& s, std::uint64_t worker) {
  require_below("worker", worker, s.workers);
  return worker >= s.batches ? 0 : (s.batches - worker - 1) / s.workers + 1;
}

}  // namespace poseidon
