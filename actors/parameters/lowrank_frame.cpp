#include "actors/parameters/lowrank_frame.hpp"

#include "messages/float_payload.hpp"
#include "models/device/wire_format.hpp"

#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace poseidon {

namespace {

constexpr auto reduced = wire_format::bfloat16;

}  // namespace

payload pack_lowrank(std::vector<float> values, std::size_t rounded) {
  if (rounded == 0) return payload_of(std::move(values));
  const auto all = std::span<const float>(values);
  const auto beside = std::as_bytes(all.subspan(rounded));
  const auto head = wire_bytes(reduced, rounded);
  auto owner = std::make_shared<std::vector<std::byte>>(head + beside.size());
  encode(reduced, all.first(rounded), std::span(*owner).first(head));
  if (!beside.empty()) std::memcpy(owner->data() + head, beside.data(), beside.size());
  const std::span<const std::byte> bytes = *owner;
  return {std::move(owner), bytes};
}

payload unpack_lowrank(const payload& packed, std::size_t rounded) {
  if (rounded == 0) return packed;
  const auto head = wire_bytes(reduced, rounded);
  const auto beside = packed.bytes.subspan(head);
  std::vector<float> values(rounded + beside.size() / sizeof(float));
  decode(reduced, packed.bytes.first(head), std::span(values).first(rounded));
  if (!beside.empty()) std::memcpy(values.data() + rounded, beside.data(), beside.size());
  return payload_of(std::move(values));
}

}  // namespace poseidon
