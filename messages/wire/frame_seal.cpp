#include "messages/wire/frame_seal.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>

#include <stdexcept>
#include <string_view>
#include <vector>

namespace poseidon {

namespace {

/// As a process ends, OpenSSL would free what its threads share, while the thread of a link may be giving back its own part of
/// that. Only OpenSSL's first call can tell it to leave that to the system, so this one comes before main().
[[maybe_unused]] const bool keeps_its_memory =
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr) == 1;

void require(bool done, const char* what) {
  if (!done)
    throw std::runtime_error(std::string("cannot ") + what + " a link's frames: OpenSSL refused");
}

const unsigned char* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

seal_key derive(const std::string& token, std::span<const std::byte> salt, std::string_view use) {
  const std::unique_ptr<EVP_PKEY_CTX, void (*)(EVP_PKEY_CTX*)> kdf(
      EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr), EVP_PKEY_CTX_free);
  seal_key out;
  std::size_t size = out.size();
  require(
      kdf && EVP_PKEY_derive_init(kdf.get()) > 0 &&
          EVP_PKEY_CTX_set_hkdf_md(kdf.get(), EVP_sha256()) > 0 &&
          EVP_PKEY_CTX_set1_hkdf_salt(kdf.get(), raw(salt), static_cast<int>(salt.size())) > 0 &&
          EVP_PKEY_CTX_set1_hkdf_key(kdf.get(),
                                     reinterpret_cast<const unsigned char*>(token.data()),
                                     static_cast<int>(token.size())) > 0 &&
          EVP_PKEY_CTX_add1_hkdf_info(kdf.get(), reinterpret_cast<const unsigned char*>(use.data()),
                                      static_cast<int>(use.size())) > 0 &&
          EVP_PKEY_derive(kdf.get(), reinterpret_cast<unsigned char*>(out.data()), &size) > 0,
      "derive the keys for");
  return out;
}

}  // namespace

link_keys keys_of_link(const std::string& token, std::span<const std::byte> dialers_hello,
                       std::span<const std::byte> acceptors_hello, bool dialer) {
  std::vector<std::byte> salt(dialers_hello.begin(), dialers_hello.end());
  salt.insert(salt.end(), acceptors_hello.begin(), acceptors_hello.end());
  const auto of_dialer = derive(token, salt, "poseidon frames of the dialer");
  const auto of_acceptor = derive(token, salt, "poseidon frames of the acceptor");
  return dialer ? link_keys{of_dialer, of_acceptor} : link_keys{of_acceptor, of_dialer};
}

struct frame_seal::cipher {
  std::unique_ptr<EVP_CIPHER_CTX, void (*)(EVP_CIPHER_CTX*)> context{EVP_CIPHER_CTX_new(),
                                                                     EVP_CIPHER_CTX_free};
};

frame_seal::frame_seal(const seal_key& key) : cipher_(std::make_unique<cipher>()) {
  require(cipher_->context && EVP_EncryptInit_ex(cipher_->context.get(), EVP_aes_128_gcm(), nullptr,
                                                 raw(key), nullptr) > 0,
          "seal");
}
frame_seal::~frame_seal() = default;
frame_seal::frame_seal(frame_seal&&) noexcept = default;
frame_seal& frame_seal::operator=(frame_seal&&) noexcept = default;

seal_tag frame_seal::next(std::span<const std::span<const std::byte>> parts) {
  auto* const c = cipher_->context.get();
  std::array<unsigned char, 12> nonce{};
  for (std::size_t i = 0; i < sizeof pieces_; ++i)
    nonce[4 + i] = static_cast<unsigned char>(pieces_ >> (8 * i));
  ++pieces_;
  seal_tag tag;
  int ignored = 0;
  bool done = EVP_EncryptInit_ex(c, nullptr, nullptr, nullptr, nonce.data()) > 0;
  // Everything is authenticated, nothing is encrypted.
  for (const auto part : parts)
    if (!part.empty())
      done = done &&
             EVP_EncryptUpdate(c, nullptr, &ignored, raw(part), static_cast<int>(part.size())) > 0;
  std::array<unsigned char, 16> nothing;
  done = done && EVP_EncryptFinal_ex(c, nothing.data(), &ignored) > 0 &&
         EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, seal_bytes, tag.data()) > 0;
  require(done, "seal");
  return tag;
}

bool same_tag(const seal_tag& a, const seal_tag& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace poseidon
