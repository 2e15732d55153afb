#include "gpu/fault_board.hpp"

#include "gpu/blob_memory.hpp"

#include <cstring>
#include <utility>

namespace poseidon::gpu {

fault_board::fault_board(stream& s, std::size_t layers)
    : texts_(layers), board_(claim(s, bytes(), "what layers find wrong", larger_device)) {}

label_fault* fault_board::at(std::size_t layer, text say) {
  const std::lock_guard lock(mutex_);
  texts_.at(layer) = std::move(say);
  return reinterpret_cast<label_fault*>(board_.bytes()) + layer;
}

void fault_board::copy(stream& s, void* to) const {
  copy_to_host(s, to, board_.bytes(), bytes());
}

std::optional<std::string> fault_board::read(const void* copy) const {
  const std::lock_guard lock(mutex_);
  for (std::size_t l = 0; l < texts_.size(); ++l) {
    label_fault fault;
    std::memcpy(&fault, static_cast<const std::byte*>(copy) + l * sizeof fault, sizeof fault);
    if (fault.raised != 0) return texts_[l](fault.value);
  }
  return std::nullopt;
}

}  // namespace poseidon::gpu
