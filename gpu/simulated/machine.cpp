#include "gpu/simulated/machine.hpp"

#include <cstring>
#include <memory>
#include <new>

namespace poseidon::gpu::simulated {
namespace {

constexpr std::align_val_t alignment{256};
constexpr int pinned = -1;

std::unique_ptr<machine>& machine_slot() {
  static std::unique_ptr<machine> slot = std::make_unique<machine>(machine_options{});
  return slot;
}

std::byte* new_bytes(std::size_t bytes) {
  return static_cast<std::byte*>(::operator new(bytes, alignment));
}

std::string of_device(int device) {
  return "simulated GPU " + std::to_string(device);
}

}  // namespace

machine& the_machine() {
  return *machine_slot();
}

void configure(const machine_options& options) {
  machine_slot() = std::make_unique<machine>(options);
}

void inject(fault_kind kind, std::uint64_t after) {
  the_machine().inject(kind, after);
}

counts counted() {
  const machine& m = the_machine();
  return {.kernels = m.kernels,
          .copies_in = m.copies_in,
          .copies_out = m.copies_out,
          .copies_within = m.copies_within,
          .copies_between = m.copies_between,
          .pageable_copies = m.pageable_copies,
          .host_waits = m.host_waits,
          .moments_seen = m.moments_seen,
          .bytes_in = m.bytes_in,
          .bytes_out = m.bytes_out,
          .bytes_between = m.bytes_between,
          .device_bytes = m.device_bytes(),
          .pinned_bytes = m.pinned_bytes(),
          .streams = m.streams,
          .events = m.events};
}

double clock_ms(int device) {
  return the_machine().clock_ms(device);
}

machine::machine(const machine_options& options)
    : options_(options),
      used_(options.devices.size()),
      kernels_(options.devices.size()),
      clocks_ms_(options.devices.size()),
      lost_(options.devices.size()) {}

void machine::check_device(int device) const {
  if (device < 0 || device >= devices())
    throw error(error_kind::misused, 101,
                "there is no GPU " + std::to_string(device) + ", this machine has " +
                    std::to_string(devices()));
}

void machine::check_alive(int device) const {
  const std::lock_guard lock(mutex_);
  const auto& why = lost_[static_cast<std::size_t>(device)];
  if (!why.empty()) throw error(error_kind::lost, 700, of_device(device) + ": " + why);
}

std::byte* machine::allocate(int device, std::size_t bytes) {
  check_device(device);
  check_alive(device);
  const bool refused = fails(fault_kind::allocation, device);
  const std::lock_guard lock(mutex_);
  auto& used = used_[static_cast<std::size_t>(device)];
  if (refused || bytes > options_.devices[static_cast<std::size_t>(device)].bytes - used)
    throw error(error_kind::memory, 2,
                of_device(device) + ": out of memory: " + std::to_string(bytes) + " bytes wanted");
  std::byte* memory = new_bytes(bytes);
  // No code may rely on the first contents of memory: poison it.
  std::memset(memory, 0xa5, bytes);
  blocks_[memory] = {bytes, device};
  used += bytes;
  return memory;
}

void machine::free(int device, std::byte* memory, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  blocks_.erase(memory);
  used_[static_cast<std::size_t>(device)] -= bytes;
  ::operator delete(memory, alignment);
}

std::byte* machine::allocate_pinned(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > options_.pinned_bytes - pinned_)
    throw error(error_kind::memory, 2,
                "out of pinned memory: " + std::to_string(bytes) + " bytes wanted");
  std::byte* memory = new_bytes(bytes);
  blocks_[memory] = {bytes, pinned};
  pinned_ += bytes;
  return memory;
}

void machine::free_pinned(std::byte* memory, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  blocks_.erase(memory);
  pinned_ -= bytes;
  ::operator delete(memory, alignment);
}

std::size_t machine::free_bytes(int device) const {
  const std::lock_guard lock(mutex_);
  const auto d = static_cast<std::size_t>(device);
  return options_.devices[d].bytes - used_[d];
}

const std::pair<const std::byte* const, machine::block>* machine::find(const void* p) const {
  auto next = blocks_.upper_bound(static_cast<const std::byte*>(p));
  if (next == blocks_.begin()) return nullptr;
  const auto& found = *--next;
  return static_cast<const std::byte*>(p) < found.first + found.second.bytes ? &found : nullptr;
}

void machine::check_on_device(int device, const void* from, std::size_t bytes,
                              const char* what) const {
  const std::lock_guard lock(mutex_);
  const auto* found = find(from);
  const auto* begin = static_cast<const std::byte*>(from);
  if (found != nullptr && found->second.device == device &&
      begin + bytes <= found->first + found->second.bytes)
    return;
  throw error(error_kind::misused, 700,
              std::string(what) + ": " + std::to_string(bytes) + " bytes are not in memory of " +
                  of_device(device));
}

bool machine::is_pinned(const void* from, std::size_t bytes, const char* what) const {
  const std::lock_guard lock(mutex_);
  const auto* found = find(from);
  if (found == nullptr) return false;
  const auto* begin = static_cast<const std::byte*>(from);
  if (found->second.device != pinned || begin + bytes > found->first + found->second.bytes)
    throw error(error_kind::misused, 1,
                std::string(what) + ": " + std::to_string(bytes) + " bytes are not host memory");
  return true;
}

bool machine::enable_copies(int device, int other) {
  check_device(device);
  check_device(other);
  if (device == other) return true;
  for (const int d : {device, other})
    if (!options_.devices[static_cast<std::size_t>(d)].has_peers) return false;
  const std::lock_guard lock(mutex_);
  enabled_.emplace(device, other);
  return true;
}

void machine::check_enabled(int device, int other) const {
  const std::lock_guard lock(mutex_);
  if (!enabled_.contains({device, other}))
    throw error(
        error_kind::misused, 217,
        of_device(device) + ": copies to GPU " + std::to_string(other) + " have not been enabled");
}

void machine::inject(fault_kind kind, std::uint64_t after) {
  const std::lock_guard lock(mutex_);
  faults_[kind] = after;
}

bool machine::fails(fault_kind kind, int device) {
  const std::lock_guard lock(mutex_);
  const auto d = static_cast<std::size_t>(device);
  if (kind == fault_kind::kernel && kernels_[d]++ == options_.devices[d].lost_at_kernel)
    return true;
  const auto found = faults_.find(kind);
  if (found == faults_.end() || found->second-- > 0) return false;
  faults_.erase(found);
  return true;
}

void machine::lose(int device, const std::string& why) {
  const std::lock_guard lock(mutex_);
  auto& lost = lost_[static_cast<std::size_t>(device)];
  if (lost.empty()) lost = why;
}

void machine::spend(int device, double ms) {
  const std::lock_guard lock(mutex_);
  clocks_ms_[static_cast<std::size_t>(device)] += ms;
}

double machine::clock_ms(int device) const {
  const std::lock_guard lock(mutex_);
  return clocks_ms_.at(static_cast<std::size_t>(device));
}

std::size_t machine::device_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t all = 0;
  for (const auto used : used_) all += used;
  return all;
}

std::size_t machine::pinned_bytes() const {
  const std::lock_guard lock(mutex_);
  return pinned_;
}

}  // namespace poseidon::gpu::simulated
