#include "messages/wire/tls_context.hpp"

#include "messages/wire/tls_error.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <sys/stat.h>
#include <utility>

namespace poseidon {
namespace {

[[noreturn]] void refuse(const char* option, const std::filesystem::path& file,
                         const std::string& why) {
  throw std::invalid_argument(std::string(option) + " " + file.string() + ": " + why);
}

constexpr const char* certificate_option = "--tls-cert";
constexpr const char* key_option = "--tls-key";
constexpr const char* authority_option = "--tls-ca";

/// OpenSSL's own errors for a missing file name neither the file nor the reason well.
void require_readable(const char* option, const std::filesystem::path& file) {
  errno = 0;
  std::ifstream in(file);
  char first = 0;
  if (in && in.get(first)) return;
  refuse(option, file,
         errno != 0 ? std::string("cannot be read: ") + std::strerror(errno) : "is empty");
}

/// OpenSSL would ask for a passphrase at the terminal; instead the key is refused.
int no_passphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return 0;
}

struct store_check {
  X509_STORE_CTX* context = X509_STORE_CTX_new();
  store_check() = default;
  store_check(const store_check&) = delete;
  store_check& operator=(const store_check&) = delete;
  ~store_check() { X509_STORE_CTX_free(context); }
};

void read_authority(SSL_CTX* c, const tls_files& files) {
  require_readable(authority_option, files.authority);
  ERR_clear_error();
  if (SSL_CTX_load_verify_file(c, files.authority.c_str()) != 1)
    refuse(authority_option, files.authority,
           "holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)");
}

void read_certificate(SSL_CTX* c, const tls_files& files) {
  require_readable(certificate_option, files.certificate);
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(c, files.certificate.c_str()) == 1) return;
  const auto reason = ERR_GET_REASON(ERR_peek_error());
  refuse(certificate_option, files.certificate,
         reason == PEM_R_NO_START_LINE
             ? "holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)"
             : "cannot be used as a certificate: " + last_tls_words());
}

void read_key(SSL_CTX* c, const tls_files& files) {
  require_readable(key_option, files.key);
  ERR_clear_error();
  bool asked = false;
  const std::unique_ptr<BIO, int (*)(BIO*)> file(BIO_new_file(files.key.c_str(), "r"), BIO_free);
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(
      file ? PEM_read_bio_PrivateKey(file.get(), nullptr, no_passphrase, &asked) : nullptr,
      EVP_PKEY_free);
  if (!key && asked)
    refuse(key_option, files.key,
           "is encrypted, and nobody is there to type its passphrase. Give a key without one, that "
           "only its owner can read (chmod 600).");
  if (!key)
    refuse(key_option, files.key, "holds no private key in PEM form (-----BEGIN PRIVATE KEY-----)");
  ERR_clear_error();
  if (X509_check_private_key(SSL_CTX_get0_certificate(c), key.get()) != 1)
    refuse(key_option, files.key,
           "is not the key of the certificate in " + files.certificate.string() + " (" +
               certificate_option + "). Give the two that were made together.");
  if (SSL_CTX_use_PrivateKey(c, key.get()) != 1)
    refuse(key_option, files.key, "cannot be used: " + last_tls_words());
}

/// No peer would accept a certificate that this node itself would refuse.
void check_certificate(SSL_CTX* c, const tls_files& files, std::optional<std::time_t> now) {
  auto* own = SSL_CTX_get0_certificate(c);
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(c, &chain);
  const store_check check;
  if (X509_STORE_CTX_init(check.context, SSL_CTX_get_cert_store(c), own, chain) != 1)
    throw std::runtime_error("cannot check a certificate: OpenSSL refused");
  if (now) X509_STORE_CTX_set_time(check.context, 0, *now);
  ERR_clear_error();
  if (X509_verify_cert(check.context) == 1) return;
  refuse(certificate_option, files.certificate,
         refusal_of(check.context, files.authority.string() + " (" + authority_option + ")"));
}

/// Errors   as tls_context.
std::shared_ptr<SSL_CTX> read(const tls_files& files, std::optional<std::time_t> now) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_method()), SSL_CTX_free);
  auto* c = context.get();
  if (c == nullptr || SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256") != 1)
    throw std::runtime_error("cannot prepare TLS 1.3: OpenSSL refused (" + last_tls_words() + ")");
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                          SSL_MODE_NO_AUTO_CHAIN);
  // Else a read would not return while a peer sends changes of its key and no data.
  SSL_CTX_clear_mode(c, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(c, 0);  // connections are few and long: none is resumed
  if (now) X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param(c), *now);
  read_authority(c, files);
  if (files.certificate.empty()) return context;
  read_certificate(c, files);
  read_key(c, files);
  check_certificate(c, files, now);
  return context;
}

}  // namespace

tls_context::tls_context(const tls_files& files, std::optional<std::time_t> now)
    : files_(files), now_(now), seen_(stamps()), context_(read(files, now)) {}

tls_context::~tls_context() = default;

std::array<tls_context::stamp, 3> tls_context::stamps() const {
  std::array<stamp, 3> out{};
  std::size_t i = 0;
  for (const auto* file : {&files_.certificate, &files_.key, &files_.authority}) {
    struct stat now {};
    if (::stat(file->c_str(), &now) == 0)
      out[i] = {static_cast<std::int64_t>(now.st_ino), now.st_mtim.tv_sec, now.st_mtim.tv_nsec};
    ++i;
  }
  return out;
}

std::shared_ptr<ssl_ctx_st> tls_context::newest() const {
  const std::lock_guard lock(mutex_);
  if (const auto now = stamps(); now != seen_) {
    seen_ = now;
    try {
      context_ = read(files_, now_);
      why_unused_.clear();
    } catch (const std::exception& e) {
      why_unused_ = e.what();
    }
  }
  return context_;
}

std::string tls_context::why_unused() const {
  const std::lock_guard lock(mutex_);
  return why_unused_;
}

std::shared_ptr<const tls_context> tls_of_links(const tls_files& files) {
  if (files.none()) return nullptr;
  std::string missing;
  for (const auto& [option, file] :
       {std::pair{certificate_option, files.certificate}, std::pair{key_option, files.key},
        std::pair{authority_option, files.authority}})
    if (file.empty()) missing += (missing.empty() ? "" : " and ") + std::string(option);
  if (!missing.empty())
    throw std::invalid_argument(
        "TLS needs --tls-cert, --tls-key and --tls-ca together, because both sides of a link prove "
        "themselves. Missing: " +
        missing + ".");
  return std::make_shared<const tls_context>(files);
}

std::shared_ptr<const tls_context> tls_of_reader(const tls_files& files) {
  if (files.none()) return nullptr;
  if (files.authority.empty() || files.certificate.empty() != files.key.empty())
    return tls_of_links(files);  // which says what is missing
  return std::make_shared<const tls_context>(files);
}

}  // namespace poseidon
