// data/batch_filler.hpp
//
// Fills batches with several threads, because one thread cannot decode pictures fast enough for a fast device. A sample
// depends on its position alone (data/source.hpp), so it does not matter which thread makes it.
#pragma once
#include "models/device/device.hpp"

#include <cstdint>
#include <memory>

namespace poseidon {

class sample_source;

class batch_filler {
 public:
  /// `threads`: number of threads, the caller of fill() included; at least 1.
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
  std::unique_ptr<crew> crew_;  // the other threads; null if there are none
};

/// batch_filler's fill() by the calling thread alone.
void fill_batch(const sample_source& source, std::uint64_t first_sample, std::int64_t batch_size,
                batch& into);

/// Default number of reading threads for each of `replicas` on a machine of `cores`: one for a replica that computes on the
/// cores; for an asynchronous device the cores that its own threads leave free, at most 16.
[[nodiscard]] std::size_t default_readers(bool is_asynchronous, std::size_t replicas,
                                          std::size_t cores);

}  // namespace poseidon
