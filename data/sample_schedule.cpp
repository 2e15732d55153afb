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
  if (!shares.empty()) return samples_of_all(shares);
  return workers * micro_batches * replicas * batch;
}

std::uint64_t sample_schedule::passes_per_clock() const {
  if (shares.empty()) return workers * micro_batches * replicas;
  std::uint64_t passes = 0;
  for (const auto& s : shares) passes += std::uint64_t{s.passes} * s.replicas;
  return passes;
}

std::uint64_t first_sample(const sample_schedule& s, const train_pass& p) {
  require_below("worker", p.worker, s.workers);
  if (!s.shares.empty()) {
    const auto& own = s.shares.at(p.worker);
    require_below("micro-batch", p.micro_batch, own.passes);
    require_below("replica", p.replica, own.replicas);
    std::uint64_t before = p.clock * s.samples_per_clock() + p.micro_batch * own.samples;
    for (std::size_t w = 0; w < p.worker; ++w) before += samples_of_clock(s.shares[w]);
    return s.start + before + samples_before(own, static_cast<std::uint32_t>(p.replica));
  }
  require_below("micro-batch", p.micro_batch, s.micro_batches);
  require_below("replica", p.replica, s.replicas);
  const auto node_batch = (p.clock * s.workers + p.worker) * s.micro_batches + p.micro_batch;
  return s.start + (node_batch * s.replicas + p.replica) * s.batch;
}

std::uint64_t passes_after(const sample_schedule& s, const train_pass& p) {
  auto one_sample_each = sample_schedule{s.workers, s.micro_batches, s.replicas, 1, 0, s.shares};
  for (auto& share : one_sample_each.shares) share.samples = share.replicas;
  const auto place = first_sample(one_sample_each, {0, p.worker, p.micro_batch, p.replica});
  return one_sample_each.samples_per_clock() - 1 - place;
}

std::uint64_t test_share::passes(std::uint64_t replica) const {
  const auto first = self + workers * replica;
  return batches <= first ? 0 : (batches - first - 1) / (workers * replicas) + 1;
}

std::uint64_t test_share::batch(std::uint64_t replica, std::uint64_t n) const {
  return self + workers * (replica + replicas * n);
}

std::uint64_t test_share::first_sample(std::uint64_t phase, std::uint64_t replica,
                                       std::uint64_t n) const {
  return (phase * batches + batch(replica, n)) * batch_size;
}

}  // namespace poseidon
