// What a stranger sends: the bytes of one side of a handshake, after a byte that says how they are heard. Bit 0: by a
// dialer, else by an acceptor. Bit 1: this target puts in the proof that the token asks for, where the fuzzer cannot
// guess it. Bit 2: without a token. Bit 3: with the version that it says, which otherwise is made this release's: each release has
// another one, and all inputs of the corpus would end there.
#include "messages/wire/handshake.hpp"
#include "messages/wire/little_endian.hpp"
#include "tests/fuzz/target.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <sys/socket.h>
#include <vector>

using namespace poseidon;

// In place of OpenSSL's: with the same hello of ours each time, an input means the same each time.
extern "C" int RAND_bytes(unsigned char* to, int count) {
  std::fill_n(to, count, static_cast<unsigned char>(0x5e));
  return 1;
}

namespace {

// The layout that messages/wire/handshake.hpp keeps: hello, then a part with identity and proof.
constexpr std::size_t version_at = 8, hello_bytes = 80, proof_bytes = 32;
constexpr std::size_t identity_at = hello_bytes + 1, proof_at = identity_at + identity_bytes;

struct heard {
  bool accepted = false;
  link_identity peer;
  std::vector<std::uint8_t> said;  // by our side
};

heard hear(std::span<const std::uint8_t> bytes, handshake_role role, const std::string& token) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) ::abort();
  if (::write(ends[1], bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) ::abort();
  ::shutdown(ends[1], SHUT_WR);  // so no read waits
  handshake_options options;
  options.token = token;
  options.build = "fuzz";
  options.version = wire_version;
  options.self.listen_address = ":7600";
  options.self.seat = seat_id{0};
  options.self.epoch = 1;
  heard out;
  fuzz::accept_or_refuse([&] {
    tcp_socket socket(ends[0], "10.0.0.7:40000");
    out.peer = shake_hands(socket, role, options);
    out.accepted = true;
  });
  out.said.resize(1024);
  const auto size = ::recv(ends[1], out.said.data(), out.said.size(), MSG_DONTWAIT);
  out.said.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  ::close(ends[1]);
  return out;
}

void put_proof(std::span<std::uint8_t> bytes, handshake_role role, const std::string& token) {
  const auto ours = hear({}, role, token).said;
  if (ours.size() < hello_bytes || bytes.size() < proof_at + proof_bytes) return;
  const bool we_dial = role == handshake_role::dialer;
  std::vector<std::uint8_t> text{static_cast<std::uint8_t>(we_dial ? 'A' : 'D')};
  const auto add = [&](const std::uint8_t* from, std::size_t size) {
    text.insert(text.end(), from, from + size);
  };
  add(we_dial ? ours.data() : bytes.data(), hello_bytes);
  add(we_dial ? bytes.data() : ours.data(), hello_bytes);
  add(bytes.data() + identity_at, identity_bytes);
  unsigned size = 0;
  HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()), text.data(), text.size(),
       bytes.data() + proof_at, &size);
}

/// Whether a peer has said all that it has to, but for its proof. Without this an input of the corpus that is meant to be let in
/// would end early, unnoticed, as soon as the layout changes.
bool is_honest(std::span<const std::uint8_t> bytes, handshake_role we_are, bool token) {
  constexpr std::string_view magic = "POSEIDON";
  const std::size_t welcome_at = proof_at + proof_bytes;
  const bool welcomes = we_are == handshake_role::acceptor;
  if (bytes.size() < welcome_at + (welcomes ? 1 : 0)) return false;
  if (std::memcmp(bytes.data(), magic.data(), magic.size()) != 0) return false;
  if (bytes[version_at + 4] != (token ? 1 : 0) || bytes[hello_bytes] != 1) return false;
  if (welcomes && bytes[welcome_at] != 2) return false;
  identity_block id;
  std::memcpy(id.data(), bytes.data() + identity_at, id.size());
  try {
    (void)decode_identity(id, "10.0.0.7");
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const auto role = (bytes[0] & 1) != 0 ? handshake_role::dialer : handshake_role::acceptor;
  const bool prove = (bytes[0] & 2) != 0;
  const std::string token = (bytes[0] & 4) != 0 ? "" : "the cluster's token";
  std::vector<std::uint8_t> stream(bytes + 1, bytes + std::min<std::size_t>(size, 4096));
  if ((bytes[0] & 8) == 0 && stream.size() >= version_at + sizeof wire_version)
    put(std::as_writable_bytes(std::span(stream)).subspan(version_at), wire_version);
  if (prove) put_proof(stream, role, token);
  const auto out = hear(stream, role, token);
  if (prove && (bytes[0] & 8) == 0 && !out.accepted && is_honest(stream, role, !token.empty()))
    throw std::logic_error("a peer with the right proof is refused");
  if (!out.accepted) return 0;
  if (!prove && !token.empty()) throw std::logic_error("a stranger without the token is let in");
  (void)parse_host_port(out.peer.listen_address);  // as node does
  return 0;
}
