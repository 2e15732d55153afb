#include "messages/wire/digest.hpp"

#include <openssl/core_names.h>
#include <openssl/evp.h>

#include <array>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace poseidon {

namespace {

void require(bool done) {
  if (!done) throw std::runtime_error("cannot make a digest: OpenSSL has no GMAC of AES-128-GCM");
}

using mac_context = std::unique_ptr<EVP_MAC_CTX, void (*)(EVP_MAC_CTX*)>;

mac_context made_context() {
  const std::unique_ptr<EVP_MAC, void (*)(EVP_MAC*)> gmac(EVP_MAC_fetch(nullptr, "GMAC", nullptr),
                                                          EVP_MAC_free);
  require(gmac != nullptr);
  mac_context out(EVP_MAC_CTX_new(gmac.get()), EVP_MAC_CTX_free);
  constexpr std::array<unsigned char, 16> key{'p', 'o', 's', 'e', 'i', 'd', 'o', 'n', '\'', 's'};
  std::array<unsigned char, 12> nonce{};
  char cipher[] = "AES-128-GCM";
  const std::array<OSSL_PARAM, 3> how{
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_CIPHER, cipher, 0),
      OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_IV, nonce.data(), nonce.size()),
      OSSL_PARAM_construct_end()};
  require(out && EVP_MAC_init(out.get(), key.data(), key.size(), how.data()) > 0);
  return out;
}

}  // namespace

frames::byte_digest digest_of(std::span<const std::byte> bytes) {
  thread_local const mac_context made = made_context();
  const mac_context context(EVP_MAC_CTX_dup(made.get()), EVP_MAC_CTX_free);
  std::array<unsigned char, 16> sum{};
  std::size_t size = 0;
  require(context &&
          EVP_MAC_update(context.get(), reinterpret_cast<const unsigned char*>(bytes.data()),
                         bytes.size()) > 0 &&
          EVP_MAC_final(context.get(), sum.data(), &size, sum.size()) > 0 && size == sum.size());
  frames::byte_digest out;
  std::memcpy(&out.high, sum.data(), sizeof out.high);
  std::memcpy(&out.low, sum.data() + sizeof out.high, sizeof out.low);
  return out;
}

}  // namespace poseidon
