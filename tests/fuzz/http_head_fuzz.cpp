// What a browser, or whoever reaches the page's port, sends before its token is known: the head of a request. The first byte says
// where the page is served: bit 0 on loopback, bit 1 with TLS.
#include "apps/web/http.hpp"
#include "apps/web/token.hpp"
#include "tests/fuzz/target.hpp"

#include <algorithm>
#include <string>
#include <string_view>

using namespace poseidon::web;

namespace {

constexpr std::string_view secret = "a token that the fuzzer cannot guess, 7f3a9c";

/// A header of an answer in which a client has put a line end of its own would be two.
void require_one_line(std::string_view header) {
  if (header.empty()) return;
  for (std::size_t at = 0; at < header.size();) {
    const auto end = header.find("\r\n", at);
    const auto line = header.substr(at, end - at);
    if (end == std::string_view::npos || line.find_first_of("\r\n") != std::string_view::npos ||
        line.find(": ") == std::string_view::npos)
      ::abort();
    if (!line.starts_with("Location: ") && !line.starts_with("Set-Cookie: ")) ::abort();
    at = end + 2;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  host_rule hosts;
  hosts.names = {"head", "10.0.0.7"};
  hosts.loopback_only = (bytes[0] & 1) != 0;
  const std::string_view head(reinterpret_cast<const char*>(bytes) + 1,
                              std::min(size - 1, max_head_bytes));
  const auto p = parse_head(head, hosts);
  if (!p.ok) {
    if (p.refused.text.empty() || p.refused.status < 400) ::abort();
    (void)head_of({p.refused.status, "text/plain", p.refused.text, ""}, false, false);
    return 0;
  }
  if (p.ok->path.empty() || p.ok->path.front() != '/') ::abort();
  (void)p.ok->parameter("node");
  (void)p.ok->number("iters", 100);
  const token_gate gate{std::string(secret), (bytes[0] & 2) != 0};
  const auto refused = gate.refusal(*p.ok);
  const bool told = head.find(secret) != std::string_view::npos;
  if (!refused && !told) throw std::logic_error("a stranger without the token is let in");
  if (refused && refused->status == 303 && told) require_one_line(refused->extra);
  return 0;
}
