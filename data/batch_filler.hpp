// data/batch_filler.hpp
//
// Fills batches with several threads: decoding pictures for a fast device is more than one thread's work. Which thread
// makes a sample does not show in it, for a sample is its position's alone (data/source.hpp).
#pragma once
#include "models/device/device.hpp"

#include <cstdint>
#include <memory>

namespace poseidon {

class sample_source;

class batch_filler {
 public:
  /// `threads`: the caller of fill() and others that wait here for it; at least 1.
  explicit batch_filler(std::size_t threads = 1);
  ~batch_filler();
  batch_filler(const batch_filler&) = delete;
  batch_filler& operator=(const batch_filler&) = delete;

  /// Samples first_sample ... first_sample + batch_size - 1, in this order. One call at a time.
  ///
  /// Writes   into.first_sample and into.tops, whose memory is reused; new tops are made where into.memory says.
  /// Errors   sample_source::fill's for the first sample that has one; into is then unspecified.
  void fill(const sample_source& source, std::uint64_t first_sample, std::int64_t batch_size,
            batch& into);

 private:
  struct crew;
  std::unique_ptr<crew> crew_;  // of the other threads; null without
};

/// batch_filler's fill() by the calling thread alone.
void fill_batch(const sample_source& source, std::uint64_t first_sample, std::int64_t batch_size,
                batch& into);

/// Threads that read for each of `replicas` on a machine of `cores`, where nobody has said a number: one beside a replica
/// that computes on the cores, and on a device that `is_asynchronous` by itself what its own threads leave free, at most 16.
[[nodiscard]] std::size_t default_readers(bool is_asynchronous, std::size_t replicas,
                                          std::size_t cores);

}  // namespace poseidon
