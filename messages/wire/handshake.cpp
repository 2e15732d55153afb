#include "messages/wire/handshake.hpp"

#include "messages/wire/handshake_tls.hpp"
#include "messages/wire/little_endian.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

namespace poseidon {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t hello_bytes = 80;
constexpr std::size_t nonce_bytes = 32;
constexpr std::size_t build_bytes = 32;
constexpr std::size_t mac_bytes = 32;
constexpr std::string_view magic = "POSEIDON";

using hello = std::array<std::byte, hello_bytes>;
using mac = std::array<std::byte, mac_bytes>;

// Each part after the hellos starts with one of these.
enum class part : std::uint8_t { proof = 1, welcome = 2, refused = 3 };

// Layout of a hello: magic 0..7, wire version 8..11, token set 12 (2: refuses before it matters),
// zeros 13..15, build 16..47, nonce 48..79.
constexpr std::size_t at_version = 8, at_token = 12, at_build = 16, at_nonce = 48;
constexpr std::byte untold{2};
// With these two bytes begins whoever speaks TLS.
constexpr std::byte tls_handshake{22}, tls_major{3};
static_assert(at_nonce + nonce_bytes == hello_bytes && at_build + build_bytes == at_nonce);

std::string describe(const hello& h) {
  auto text = "protocol version " +
              std::to_string(get<std::uint32_t>(std::span(h).subspan(at_version))) + ", build " +
              printable(std::span(h).subspan(at_build, build_bytes));
  if (h[at_token] == untold) return text;
  return text + (h[at_token] == std::byte{0} ? ", no token" : ", a token");
}

class handshake {
 public:
  handshake(tcp_socket& s, handshake_role role, const handshake_options& o)
      : socket_(s), role_(role), options_(o), deadline_(clock::now() + o.limit) {}

  proved_peer run();

 private:
  link_identity prove();
  void exchange_hellos();
  void send_proof();
  link_identity receive_proof();
  void receive_part(part expected);
  void read(std::span<std::byte> into);
  void write(std::span<const std::byte> bytes);
  [[nodiscard]] mac proof_of(handshake_role who, const identity_block& id) const;
  [[noreturn]] void refuse(refusal why, const std::string& text);
  [[noreturn]] void fail(refusal why, const std::string& text) const {
    throw handshake_error(why, peer() + " " + text);
  }
  [[noreturn]] void peer_refused();
  [[nodiscard]] const std::string& peer() const { return socket_.peer(); }
  [[nodiscard]] std::string versions() const;
  void detail(const std::string& step) const {
    if (options_.detail) options_.detail("handshake with " + peer() + ": " + step);
  }

  tcp_socket& socket_;
  handshake_role role_;
  const handshake_options& options_;
  clock::time_point deadline_;
  hello ours_{};
  hello theirs_{};
};

proved_peer handshake::run() {
  if (options_.tls) {
    begin_tls(socket_, role_, options_, deadline_);
    detail("encrypted: " + socket_.tls()->description());
  }
  proved_peer out{prove(), std::nullopt};
  const bool dialing = role_ == handshake_role::dialer;
  if (!options_.token.empty())
    out.keys =
        keys_of_link(options_.token, dialing ? ours_ : theirs_, dialing ? theirs_ : ours_, dialing);
  return out;
}

link_identity handshake::prove() {
  exchange_hellos();
  if (role_ == handshake_role::dialer) {
    send_proof();
    const auto who = receive_proof();
    const std::array<std::byte, 1> welcome{static_cast<std::byte>(part::welcome)};
    write(welcome);
    detail("done, welcomed it");
    return who;
  }
  const auto who = receive_proof();
  send_proof();
  receive_part(part::welcome);
  detail("done, it welcomed this node");
  return who;
}

void handshake::exchange_hellos() {
  std::memcpy(ours_.data(), magic.data(), magic.size());
  put(std::span(ours_).subspan(at_version), options_.version);
  ours_[at_token] = std::byte{!options_.token.empty()};
  std::memcpy(&ours_[at_build], options_.build.data(),
              std::min(options_.build.size(), build_bytes));
  auto* nonce = reinterpret_cast<unsigned char*>(&ours_[at_nonce]);
  if (RAND_bytes(nonce, nonce_bytes) != 1)
    throw std::runtime_error("cannot get random bytes for a handshake: OpenSSL's generator failed");
  write(ours_);
  detail("sent hello: " + describe(ours_));
  // In two steps, because another version's hello may go on differently after its version.
  read(std::span(theirs_).first(at_token));
  if (theirs_[0] == tls_handshake && theirs_[1] == tls_major) {
    refuse(refusal::tls_differs,
           "speaks TLS, and this node has none. Give this node the cluster's --tls-cert, --tls-key "
           "and --tls-ca, or give them to no node.");
  }
  if (std::memcmp(theirs_.data(), magic.data(), magic.size()) != 0) {
    refuse(refusal::not_poseidon, "does not speak Poseidon's protocol: it began with \"" +
                                      printable(std::span(theirs_).first(magic.size())) +
                                      "\", expected \"" + std::string(magic) +
                                      "\". Check that the address is a poseidon-node's.");
  }
  if (get<std::uint32_t>(std::span(theirs_).subspan(at_version)) != options_.version) {
    refuse(refusal::other_version,
           "speaks " + versions() + ". Run the same release of Poseidon on every node.");
  }
  read(std::span(theirs_).subspan(at_token));
  const auto here = ours_[at_token];
  const auto there = theirs_[at_token];
  detail("got hello: " + describe(theirs_));
  if (here != there && there != untold) {
    refuse(
        refusal::token_missing,
        here != std::byte{0}
            ? "has no token, this node has one. Give it the cluster's --token-file."
            : "has a token, this node has none. Start this node with the cluster's --token-file.");
  }
}

std::string handshake::versions() const {
  return "protocol version " +
         std::to_string(get<std::uint32_t>(std::span(theirs_).subspan(at_version))) +
         ", this node speaks version " + std::to_string(options_.version) + " (build " +
         options_.build + ")";
}

mac handshake::proof_of(handshake_role who, const identity_block& id) const {
  // Both compute the same: the dialer's hello always comes first.
  const bool dialing = role_ == handshake_role::dialer;
  const auto& first = dialing ? ours_ : theirs_;
  const auto& second = dialing ? theirs_ : ours_;
  std::array<std::byte, 1 + 2 * hello_bytes + identity_bytes> text;
  text[0] = static_cast<std::byte>(who == handshake_role::dialer ? 'D' : 'A');
  auto* to = std::copy(first.begin(), first.end(), text.begin() + 1);
  to = std::copy(second.begin(), second.end(), to);
  std::copy(id.begin(), id.end(), to);
  mac out;
  unsigned size = 0;
  const auto* ok =
      HMAC(EVP_sha256(), options_.token.data(), static_cast<int>(options_.token.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(out.data()), &size);
  if (ok == nullptr || size != mac_bytes)
    throw std::runtime_error("cannot compute an HMAC for a handshake: OpenSSL refused");
  return out;
}

void handshake::send_proof() {
  const auto self = options_.identify ? options_.identify() : options_.self;
  const auto id = encode(self);
  const auto proof = proof_of(role_, id);
  std::array<std::byte, 1 + identity_bytes + mac_bytes> out;
  out[0] = static_cast<std::byte>(part::proof);
  std::copy(proof.begin(), proof.end(), std::copy(id.begin(), id.end(), out.begin() + 1));
  write(out);
  detail("sent proof as " + name_of(self));
}

link_identity handshake::receive_proof() {
  receive_part(part::proof);
  identity_block id;
  mac sent;
  read(id);
  read(sent);
  const auto expected = proof_of(
      role_ == handshake_role::dialer ? handshake_role::acceptor : handshake_role::dialer, id);
  if (CRYPTO_memcmp(sent.data(), expected.data(), mac_bytes) != 0) {
    refuse(refusal::wrong_token,
           "has another token than this node. Give every node the same --token-file.");
  }
  if (options_.progress) options_.progress->proved = true;
  const auto who = [&] {
    try {
      return decode_identity(id, parse_host_port(peer()).host);
    } catch (const std::invalid_argument& e) {
      refuse(refusal::bad_identity, e.what());
    }
  }();
  detail("its proof is right: it is " + name_of(who));
  return who;
}

void handshake::receive_part(part expected) {
  std::array<std::byte, 1> first;
  read(first);
  if (first[0] == static_cast<std::byte>(expected)) return;
  if (first[0] == static_cast<std::byte>(part::refused)) peer_refused();
  refuse(refusal::not_poseidon,
         "broke the handshake: part " + std::to_string(std::to_integer<unsigned>(first[0])) +
             " came, expected " + std::to_string(static_cast<unsigned>(expected)) + ".");
}

void handshake::peer_refused() {
  std::array<std::byte, 1> code;
  read(code);
  const auto why = static_cast<refusal>(code[0]);
  const auto text = [&]() -> std::string {
    switch (why) {
      case refusal::wrong_token:
        return "refused this node: the tokens differ. Give every node the same --token-file.";
      case refusal::token_missing:
        return "refused this node: one of the two has a token and the other has none. Give every "
               "node the same --token-file.";
      case refusal::other_version:
        return "refused this node: it speaks " + versions() +
               ". Run the same release on every node.";
      case refusal::busy:
        return "is checking too many connections at once. Try again in a few seconds.";
      case refusal::silent:
        return "refused this node: it heard nothing from it in time.";
      case refusal::tls_differs:
        return "refused this node: it has TLS, this node has none. Give this node the cluster's "
               "--tls-cert, --tls-key and --tls-ca, or give them to no node.";
      default:
        return "refused this node: reason " + std::to_string(static_cast<unsigned>(why)) +
               ". Its log says more.";
    }
  }();
  fail(why, text);
}

void handshake::refuse(refusal why, const std::string& text) {
  detail("refused it, reason " + std::to_string(static_cast<unsigned>(why)));
  const std::array<std::byte, 2> out{static_cast<std::byte>(part::refused),
                                     static_cast<std::byte>(why)};
  try {
    socket_.write(out);
    socket_.shutdown_writing();
    socket_.linger(std::min(deadline_, clock::now() + last_words));
  } catch (const socket_error&) {
    // The peer is gone; our own user is told all the same.
  }
  fail(why, text);
}

void handshake::read(std::span<std::byte> into) {
  std::optional<std::size_t> n;
  try {
    n = socket_.read_exactly(into, deadline_, options_.stop.get());
  } catch (
      const tls_error& e) {  // in TLS 1.3 a dialer learns here that its certificate was refused
    throw in_handshake(e);
  } catch (const socket_error& e) {
    if (e.error == ECANCELED) throw;
    fail(refusal::closed, std::string("broke off the handshake: ") + std::strerror(e.error) + ".");
  }
  if (!n) {
    const auto text = "said nothing for " + std::to_string(options_.limit.count()) +
                      " ms during the handshake. It may be frozen, or no poseidon-node.";
    refuse(refusal::silent, text);
  }
  if (*n < into.size() && has_to_give_way(options_)) refuse(refusal::busy, gave_way);
  if (*n < into.size()) {
    fail(refusal::closed,
         "closed the connection during the handshake. It may be an older build, or no "
         "poseidon-node; "
         "its log says more.");
  }
}

void handshake::write(std::span<const std::byte> bytes) {
  try {
    socket_.write(bytes);
  } catch (const socket_error&) {
    // It may have told us why before it closed: what we read next says so, or that it has closed.
  }
}

}  // namespace

proved_peer shake_hands(tcp_socket& s, handshake_role role, const handshake_options& options) {
  return handshake(s, role, options).run();
}

void refuse_unheard(tcp_socket& s, refusal why) noexcept {
  try {
    hello h{};
    std::memcpy(h.data(), magic.data(), magic.size());
    put(std::span(h).subspan(at_version), wire_version);
    h[at_token] = untold;
    s.write(h);
    const std::array<std::byte, 2> out{static_cast<std::byte>(part::refused),
                                       static_cast<std::byte>(why)};
    s.write(out);
    s.shutdown_writing();
  } catch (const std::exception&) {
  }
}

}  // namespace poseidon
