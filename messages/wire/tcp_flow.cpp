#include "messages/wire/tcp_flow.hpp"

#include <cstddef>
#include <linux/tcp.h>  // glibc's own header ends before the fields that are wanted
#include <netinet/in.h>
#include <sys/socket.h>

namespace poseidon {

std::optional<tcp_flow> flow_of(int descriptor) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  // An older kernel fills in less.
  if (size < offsetof(tcp_info, tcpi_sndbuf_limited)) return std::nullopt;
  return tcp_flow{info.tcpi_bytes_acked, info.tcpi_busy_time, info.tcpi_rwnd_limited, 0};
}

}  // namespace poseidon
