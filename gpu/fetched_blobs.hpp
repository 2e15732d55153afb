// gpu/fetched_blobs.hpp - copies of blobs to the host.
#pragma once
#include "gpu/context.hpp"
#include "gpu/layer.hpp"

#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace poseidon::gpu {

/// The number of a blob's values in the net; behind a Filter a pass may have fewer.
[[nodiscard]] inline std::size_t whole_size(const replica_state& state, std::size_t blob) {
  return static_cast<std::size_t>(count(state.graph.blobs[blob].shape));
}

/// The compute stream itself makes the copies, because its next kernels may overwrite the blobs.
class fetched_blobs final : public fetched_values,
                            public std::enable_shared_from_this<fetched_blobs> {
 public:
  fetched_blobs(context& with, const replica_state& state, std::span<const std::size_t> blobs,
                std::shared_ptr<std::pmr::memory_resource> host)
      : with_(with),
        host_(std::move(host)),
        faults_(*state.faults),
        faults_copy_(faults_.bytes() / sizeof(float), host_.get()) {
    for (const std::size_t b : blobs) {
      const gpu_blob& blob = state.blobs.at(b);
      // Zeros behind a smaller batch's.
      auto& f = fetched_.emplace_back(blob.order, *blob.extents, blob.bytes(),
                                      host_values(whole_size(state, b), host_.get()));
      copy_to_host(with.compute, f.values.data(), blob.data.at(), blob.bytes());
    }
    state.faults->copy(with.compute, faults_copy_.data());
    record(here_, with.compute);
  }

  /// Also reports the errors that layers have found in their bottoms.
  void when_here(completion done) override {
    with_.waits.when(std::move(here_), [self = shared_from_this(),
                                        done = std::move(done)](std::exception_ptr failed) {
      const auto fault = failed ? std::nullopt : self->faults_.read(self->faults_copy_.data());
      if (fault) failed = std::make_exception_ptr(std::invalid_argument(*fault));
      done(std::move(failed));
    });
  }

  std::vector<std::vector<float>> values() const override {
    std::vector<std::vector<float>> out;
    for (const fetched& f : fetched_) {
      auto& to = out.emplace_back(f.values.begin(), f.values.end());
      if (f.order != layout::nchw)
        to_nchw(f.extents, f.order, std::as_bytes(std::span(f.values)).first(f.bytes), to);
    }
    return out;
  }

 private:
  struct fetched {
    fetched(layout of, shape s, std::size_t size, host_values v)
        : order(of), extents(std::move(s)), bytes(size), values(std::move(v)) {}
    layout order;
    shape extents;
    std::size_t bytes;   ///< size of the values in that order
    host_values values;  ///< room for as many floats
  };

  context& with_;
  std::shared_ptr<std::pmr::memory_resource> host_;
  std::vector<fetched> fetched_;
  const fault_board& faults_;
  host_values faults_copy_;
  event here_ = with_.waits.take_event();
};

}  // namespace poseidon::gpu
