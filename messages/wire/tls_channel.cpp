#include "messages/wire/tls_channel.hpp"

#include "messages/wire/gathered.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

namespace poseidon {
namespace {

constexpr std::size_t record_bytes = SSL3_RT_MAX_PLAIN_LENGTH;

int verify_mode(tls_side side) {
  switch (side) {
    case tls_side::dials:
      return SSL_VERIFY_PEER;
    case tls_side::accepts:
      return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    case tls_side::serves_pages:
      break;
  }
  return SSL_VERIFY_NONE;
}

}  // namespace

/// OpenSSL's own BIO for sockets writes without MSG_NOSIGNAL: a peer that has closed would end the process with SIGPIPE.
struct tls_channel::calls {
  static tls_channel& channel_of(BIO* b) { return *static_cast<tls_channel*>(BIO_get_data(b)); }

  static int read(BIO* b, char* to, int size) {
    const int n = channel_of(b).receive(to, size);
    BIO_clear_retry_flags(b);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) BIO_set_retry_read(b);
    return n;
  }
  static int write(BIO* b, const char* from, int size) {
    const int n = channel_of(b).send(from, size);
    BIO_clear_retry_flags(b);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) BIO_set_retry_write(b);
    return n;
  }
  static long control(BIO*, int what, long, void*) { return what == BIO_CTRL_FLUSH ? 1 : 0; }

  static BIO* bio(tls_channel& of) {
    static const std::unique_ptr<BIO_METHOD, void (*)(BIO_METHOD*)> method = [] {
      auto* m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "poseidon socket");
      BIO_meth_set_read(m, read);
      BIO_meth_set_write(m, write);
      BIO_meth_set_ctrl(m, control);
      return std::unique_ptr<BIO_METHOD, void (*)(BIO_METHOD*)>(m, BIO_meth_free);
    }();
    auto* b = BIO_new(method.get());
    if (b == nullptr) return nullptr;
    BIO_set_data(b, &of);
    BIO_set_init(b, 1);
    return b;
  }

  /// Keeps why a certificate is refused, because OpenSSL forgets the certificate with its refusal.
  static int verified(int is_right, X509_STORE_CTX* chain) {
    if (is_right == 1) return 1;
    auto* ssl =
        static_cast<SSL*>(X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx()));
    static_cast<tls_channel*>(SSL_get_app_data(ssl))->refused_certificate_ =
        refusal_of(chain, "this node's --tls-ca");
    return 0;
  }
};

void tls_channel::freed::operator()(ssl_st* connection) const {
  SSL_free(connection);
}

tls_channel::tls_channel(const tls_context& context, tls_side side, int descriptor,
                         std::string peer, std::uint64_t key_lasts)
    : descriptor_(descriptor),
      peer_(std::move(peer)),
      key_lasts_(key_lasts),
      connection_(SSL_new(context.newest().get())),
      read_wants_(POLLIN),
      write_wants_(POLLOUT) {
  auto* c = connection_.get();
  auto* b = c == nullptr ? nullptr : calls::bio(*this);
  if (b == nullptr) throw std::runtime_error("cannot begin TLS: no memory for OpenSSL");
  SSL_set_bio(c, b, b);
  SSL_set_app_data(c, this);
  SSL_set_verify(c, verify_mode(side), calls::verified);
  if (side == tls_side::dials)
    SSL_set_connect_state(c);
  else
    SSL_set_accept_state(c);
}

tls_channel::~tls_channel() = default;

// ---- what OpenSSL asks the socket for

int tls_channel::receive(char* to, int size) {
  for (;;) {
    const auto n = ::recv(descriptor_, to, static_cast<std::size_t>(size), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    error_ = n < 0 && errno != EAGAIN && errno != EWOULDBLOCK ? errno : 0;
    const auto got = static_cast<std::size_t>(std::max<ssize_t>(n, 0));
    missing_ = static_cast<std::size_t>(size) - got;
    received_ += got;
    for (std::size_t i = 0; i < got && first_size_ < first_.size(); ++i)
      first_[first_size_++] = static_cast<std::byte>(to[i]);
    return static_cast<int>(n);
  }
}

int tls_channel::send(const char* from, int size) {
  for (;;) {
    const auto n =
        ::send(descriptor_, from, static_cast<std::size_t>(size), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    error_ = n < 0 && errno != EAGAIN && errno != EWOULDBLOCK ? errno : 0;
    has_sent_ = has_sent_ || n > 0;
    return static_cast<int>(n);
  }
}

// ---- calls into OpenSSL, with the mutex

void tls_channel::begin_call() {
  if (failure_) throw tls_error(*failure_);
  ERR_clear_error();  // of this thread, from whatever came before
  error_ = 0;
}

void tls_channel::fail(const tls_error& why) {
  failure_ = why;
  throw tls_error(why);
}

/// After a call that has not succeeded. False: the peer has closed.
bool tls_channel::is_blocked(int returned, short& wants) {
  const int why = SSL_get_error(connection_.get(), returned);
  if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
    wants = why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    return true;
  }
  if (why == SSL_ERROR_SSL) fail(fault_of(peer_, refused_certificate_, first_bytes()));
  // A write that fails ends no read: the peer may have said why before it closed.
  if (why == SSL_ERROR_SYSCALL && error_ != 0)
    throw socket_error("the connection to " + peer_ + " is broken: " + std::strerror(error_),
                       error_);
  return false;  // with or without TLS's own goodbye: frames and HTTP say where they end
}

/// That the peer has sent, with those that OpenSSL has not read.
std::span<const std::byte> tls_channel::first_bytes() {
  if (received_ == first_size_) {
    const auto rest = std::span(first_).subspan(first_size_);
    const auto n = ::recv(descriptor_, rest.data(), rest.size(), MSG_PEEK | MSG_DONTWAIT);
    if (n > 0) return std::span(first_).first(first_size_ + static_cast<std::size_t>(n));
  }
  return std::span(first_).first(first_size_);
}

bool tls_channel::shake() {
  const std::lock_guard lock(mutex_);
  begin_call();
  const int returned = SSL_do_handshake(connection_.get());
  if (returned == 1) return true;
  if (is_blocked(returned, read_wants_)) return false;
  fail({tls_fault::closed, peer_ +
                               " closed the connection during the TLS handshake. It may have no "
                               "--tls-cert, or be no poseidon-node; its log says more."});
}

std::optional<std::size_t> tls_channel::read_record(std::byte* into, std::size_t size) {
  const std::lock_guard lock(mutex_);
  begin_call();
  std::size_t got = 0;
  const int returned = SSL_read_ex(connection_.get(), into, size, &got);
  if (returned == 1) return got;
  if (is_blocked(returned, read_wants_)) return std::nullopt;
  return 0;
}

/// Returns  how many bytes have gone to the kernel; 0: it takes no more now.
std::size_t tls_channel::write_record(std::span<const std::byte> record) {
  const std::lock_guard lock(mutex_);
  begin_call();
  if (pending_ == 0 && !change_key()) return 0;
  std::size_t taken = 0;
  const int returned = SSL_write_ex(connection_.get(), record.data(), record.size(), &taken);
  if (returned == 1) {
    ++records_;
    return taken;
  }
  if (is_blocked(returned, write_wants_)) return 0;
  throw socket_error("cannot send to " + peer_ + ": it has closed the connection", EPIPE);
}

/// OpenSSL sends the change before the next record. It has to go out whole: the reading thread would otherwise have to wait until
/// it can be sent, and if both sides did so, neither would read. So the kernel has to have room for it.
bool tls_channel::change_key() {
  if (records_ < key_lasts_) return true;
  pollfd p{descriptor_, POLLOUT, 0};
  if (::poll(&p, 1, 0) == 0) {
    write_wants_ = POLLOUT;
    return false;
  }
  if (SSL_key_update(connection_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1)
    fail({tls_fault::damaged,
          "cannot change the key of the connection to " + peer_ + ": " + last_tls_words()});
  records_ = 0;
  ++key_changes_;
  return true;
}

bool tls_channel::has_read_ahead() const {
  const std::lock_guard lock(mutex_);
  return SSL_pending(connection_.get()) > 0;
}

std::string tls_channel::description() const {
  const std::lock_guard lock(mutex_);
  return std::string(SSL_get_version(connection_.get())) + ", " +
         SSL_get_cipher_name(connection_.get());
}

void tls_channel::end_writing() noexcept {
  const std::lock_guard lock(mutex_);
  if (failure_ || pending_ > 0 || SSL_is_init_finished(connection_.get()) != 1) return;
  ERR_clear_error();
  (void)SSL_shutdown(connection_.get());
}

// ---- whole reads and writes

std::optional<std::size_t> tls_channel::read(std::span<const iovec> parts) {
  if (read_failure_) std::rethrow_exception(std::exchange(read_failure_, nullptr));
  std::size_t got = 0;
  try {
    for (const auto& p : parts) {
      for (std::size_t done = 0; done < p.iov_len;) {
        const auto n = read_record(static_cast<std::byte*>(p.iov_base) + done, p.iov_len - done);
        if (!n) return got > 0 ? std::optional(got) : std::nullopt;
        if (*n == 0) return got;
        done += *n;
        got += *n;
      }
    }
  } catch (const socket_error&) {
    if (got == 0) throw;
    read_failure_ = std::current_exception();  // of the next call: these bytes are good
  }
  return got;
}

std::span<iovec> tls_channel::write(std::span<iovec> parts) {
  for (parts = without_first(parts, 0); !parts.empty();) {
    const auto record = next_record(parts);
    const auto taken = write_record(record);
    pending_ = taken == 0 ? record.size() : 0;
    if (taken == 0) break;
    parts = without_first(parts, taken);
  }
  return parts;
}

/// Small parts are gathered: each record costs 22 bytes and a call to the kernel.
std::span<const std::byte> tls_channel::next_record(std::span<const iovec> parts) {
  const auto limit = pending_ > 0 ? pending_ : record_bytes;
  const auto bytes_of = [](const iovec& p) {
    return std::span(static_cast<const std::byte*>(p.iov_base), p.iov_len);
  };
  const auto first = bytes_of(parts.front());
  if (first.size() >= limit || parts.size() == 1) return first.first(std::min(limit, first.size()));
  staged_.clear();
  for (const auto& p : parts) {
    const auto bytes = bytes_of(p);
    const auto room = limit - staged_.size();
    staged_.insert(staged_.end(), bytes.begin(),
                   bytes.begin() + static_cast<std::ptrdiff_t>(std::min(room, bytes.size())));
    if (staged_.size() == limit) break;
  }
  return staged_;
}

std::size_t tls_channel::bytes_to_come(std::size_t surely) const {
  return std::max(missing_, surely > record_bytes ? surely - record_bytes : 0);
}

}  // namespace poseidon
