// models/plan/profile.hpp - the times of a net's layers on some device: read, written, estimated from a throughput.
#pragma once
#include "models/net/net.hpp"
#include "models/spec/spec_file.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

struct layer_time {
  std::string layer;
  double forward_ms = 0;   ///< one pass over the profile's batch
  double backward_ms = 0;  ///< one pass over the profile's batch, all diffs and gradients together
  spec_position where;
};

struct profile {
  std::string net, measured;  ///< for people: the net, and how its times were measured
  std::uint64_t batch = 0;
  double gflop_s = 0;  ///< rate of large matrix products; 0: not known
  std::vector<layer_time> layers;
  spec_position where;
};

/// Errors   spec_error with file and line: what the text format refuses; no batch; a layer without a name or
///          with two entries; a time that is negative or no number.
[[nodiscard]] profile read_profile(const std::filesystem::path& path);
[[nodiscard]] profile parse_profile(std::string_view text, const std::string& file_name);

/// The file that read_profile() reads back, times to six digits.
[[nodiscard]] std::string text_of(const profile& p);

/// One layer of one net, in one pass over a batch of the net's.
struct pass_ms {
  double forward = 0, backward = 0;
};

/// Times by layer of `n` for passes of `batch` images: the profile's times in proportion to the batch, as on a device
/// that its kernels fill. 0 for layers that the profile does not name.
/// Errors   spec_error with file, line and the nearest name: a layer that `n` does not have.
[[nodiscard]] std::vector<pass_ms> times_on(const profile& p, const net& n, std::uint64_t batch);

/// The profile of a device that trains `n` at this throughput, if every floating-point operation of flops_of()
/// takes the same time. Layers without such operations are left out.
/// Errors   spec_error: a net without products, a throughput that is not above 0.
[[nodiscard]] profile spread_over_flops(const net& n, std::uint64_t batch, double images_per_s,
                                        const std::string& measured);

}  // namespace poseidon
