// gpu/gpu_replica.hpp - the class behind gpu/replica.hpp, for gpu/joined_replicas.cpp.
#pragma once
#include "gpu/converted_blobs.hpp"
#include "gpu/gradient_group.hpp"
#include "gpu/replica.hpp"
#include "gpu/traffic.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace poseidon::gpu {

/// Its destructor waits until no work in the streams uses the memory of a replica and no completion is left to call.
class last_to_leave {
 public:
  explicit last_to_leave(context& with) : with_(with) {}
  ~last_to_leave();
  last_to_leave(const last_to_leave&) = delete;
  last_to_leave& operator=(const last_to_leave&) = delete;

 private:
  context& with_;
};

class gpu_replica final : public replica {
 public:
  gpu_replica(std::shared_ptr<context> with, std::shared_ptr<std::pmr::memory_resource> host,
              std::shared_ptr<poseidon::device> cpu, const net& n,
              std::span<const parameter_values* const> parameters, replica_options options);
  ~gpu_replica() override;

  kernel& at(std::size_t layer) override { return *kernels_.at(layer); }
  std::span<float> gradient(std::size_t parameter) override;
  shape extents(std::size_t blob) const override { return state_.extents.at(blob); }

  void read_data(std::size_t blob, std::span<float> to) const override;
  void write_data(std::size_t blob, std::span<const float> from) override;
  void read_diff(std::size_t blob, std::span<float> to) const override;
  void write_diff(std::size_t blob, std::span<const float> from) override;

  void bring_gradients(std::size_t layer, completion done) override;
  std::shared_ptr<fetched_values> fetch(std::span<const std::size_t> blobs) override;
  void bring_parameters(std::size_t layer) override;
  void keep(std::shared_ptr<const void> what) override;
  void finish_kernels() override;
  void finish() override;
  std::optional<std::string> first_nonfinite() const override;

  // -- for gpu/joined_replicas.cpp -----------------------------------------------------------------

  [[nodiscard]] const std::shared_ptr<context>& with() const { return with_; }
  [[nodiscard]] const replica_state& state() const { return state_; }
  [[nodiscard]] const std::vector<host_values>& gradients_on_host() const { return gradients_; }
  [[nodiscard]] const std::shared_ptr<device_parameter>& parameter(std::size_t p) const {
    return parameters_.at(p);
  }
  [[nodiscard]] const std::shared_ptr<gradient_group>& group() const { return group_; }

  /// From now on `group` adds the gradients of this replica, its `place`-th member.
  void join(std::shared_ptr<gradient_group> group, std::size_t place);
  /// From now on this gradient is not copied to the host.
  void keep_gradient(std::size_t parameter);

 private:
  [[nodiscard]] std::string name() const { return "net \"" + state_.graph.name + "\""; }
  void check_types();
  void take_parameters();
  float* gradient_memory(std::size_t parameter, std::size_t values);
  void find_shared_gradients();
  void make_kernels();
  [[nodiscard]] std::unique_ptr<kernel> make_kernel(const layer_context& c) const;
  [[nodiscard]] std::unique_ptr<kept_factors> make_factors(const layer_context& c) const;

  [[nodiscard]] bool is_added(std::size_t parameter) const {
    return group_ != nullptr && group_->adds(parameter);
  }
  void copy_home(std::size_t parameter);
  void copy_home(kept_factors& f);
  void read(const void* from, std::span<std::byte> to) const;
  void write(void* to, std::span<const std::byte> from);
  void read(const gpu_blob& b, const_values from, std::span<float> to) const;
  void write(const gpu_blob& b, values to, std::span<const float> from);
  [[nodiscard]] const gpu_blob& checked(std::size_t blob, std::size_t size) const;
  [[nodiscard]] const gpu_blob& checked_diff(std::size_t blob, std::size_t size) const;

  const std::shared_ptr<context> with_;
  const std::shared_ptr<std::pmr::memory_resource> host_;
  const std::shared_ptr<poseidon::device> cpu_;
  const std::vector<const parameter_values*> sources_;
  std::vector<std::shared_ptr<device_parameter>> parameters_;
  std::vector<host_values> gradients_;
  replica_state state_;
  std::vector<std::unique_ptr<converted_blobs>> converted_;  // by layer
  std::vector<std::unique_ptr<layer_traffic>> traffic_;
  std::vector<std::unique_ptr<kernel>> kernels_;
  std::shared_ptr<gradient_group> group_;  // null: all gradients are copied to the host
  std::size_t place_ = 0;                  // in the group
  const last_to_leave end_{*with_};        // last, so that it goes first
};

}  // namespace poseidon::gpu
