// What a stranger sends where TLS is spoken, before it has shown a certificate: bytes for one side of TLS's handshake, after a byte
// that says which. 0: a node accepts. 1: a node dials. 2: a page is served. Nothing that a stranger sends may finish a handshake
// with a node, and each refusal is a sentence that names the peer.
#include "messages/wire/socket.hpp"
#include "tests/fuzz/target.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <sys/socket.h>

using namespace poseidon;

namespace {

std::string text_of(BIO* memory) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(memory, &data);
  std::string out(data, static_cast<std::size_t>(size));
  BIO_free(memory);
  return out;
}

/// A certificate that is its own authority, with its key: made here, so that none lies in the tree.
std::shared_ptr<const tls_context> own_context() {
  auto* key = EVP_EC_gen("P-256");
  auto* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 365L * 24 * 3600);
  X509_set_pubkey(certificate, key);
  auto* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("fuzz"), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  if (X509_sign(certificate, key, EVP_sha256()) == 0) ::abort();
  auto* certificate_text = BIO_new(BIO_s_mem());
  auto* key_text = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(certificate_text, certificate);
  PEM_write_bio_PrivateKey(key_text, key, nullptr, nullptr, 0, nullptr, nullptr);
  X509_free(certificate);
  EVP_PKEY_free(key);
  const auto file_of = [](const std::string& text) {
    return fuzz::memory_file(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  };
  const auto certificate_file = file_of(text_of(certificate_text));
  const auto key_file = file_of(text_of(key_text));
  return std::make_shared<const tls_context>(
      tls_files{certificate_file.path(), key_file.path(), certificate_file.path()});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const auto context = own_context();
  if (size == 0) return 0;
  constexpr std::array sides{tls_side::accepts, tls_side::dials, tls_side::serves_pages};
  const auto side = sides[bytes[0] % sides.size()];
  const std::span<const std::uint8_t> stream(bytes + 1, std::min<std::size_t>(size - 1, 65536));
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) ::abort();
  if (::write(ends[1], stream.data(), stream.size()) != static_cast<ssize_t>(stream.size()))
    ::abort();
  ::shutdown(ends[1], SHUT_WR);  // so no read waits
  bool shaken = false;
  try {
    tcp_socket socket(ends[0], "10.0.0.7:40000");
    socket.use_tls(*context, side);
    socket.shake_tls(std::chrono::steady_clock::now() + std::chrono::minutes{1});
    shaken = true;
    std::array<std::byte, 4096> into;
    (void)socket.read_now(into);
  } catch (const socket_error& e) {
    if (std::string(e.what()).find("10.0.0.7:40000") == std::string::npos) ::abort();
  }
  ::close(ends[1]);
  // A stranger would need the authority's key, or at least to choose its own bytes by what this side has said.
  if (shaken) throw std::logic_error("bytes that were fixed before have finished a handshake");
  return 0;
}
