// messages/wire/gathered.hpp - bytes that lie in several places, as one call to the kernel takes them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <sys/uio.h>

namespace poseidon {

/// Takes the first `bytes` away, and the parts that have become empty. Returns  the rest.
[[nodiscard]] inline std::span<iovec> without_first(std::span<iovec> parts, std::size_t bytes) {
  while (!parts.empty()) {
    auto& p = parts.front();
    const auto used = std::min(bytes, p.iov_len);
    p.iov_base = static_cast<char*>(p.iov_base) + used;
    p.iov_len -= used;
    bytes -= used;
    if (p.iov_len > 0) break;
    parts = parts.subspan(1);
  }
  return parts;
}

}  // namespace poseidon
