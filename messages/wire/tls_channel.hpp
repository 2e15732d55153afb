// messages/wire/tls_channel.hpp
//
// TLS on one connection: what a tcp_socket writes goes out encrypted, what it reads has been decrypted and is what the peer wrote.
// Nothing here waits. The socket waits, for what wants() says, and outside of the channel's mutex.
//
// OpenSSL forbids two threads in one SSL object, and a link has two: one reads while another writes. So each call into OpenSSL has
// the mutex, for one record (16 KiB, some ten microseconds) at a time. A record that the kernel takes only in part stays pending in
// OpenSSL: the caller writes the same bytes again, and the channel knows how many of them the record has.
//
// The writer changes its key after `records_per_key` records, for AES-GCM is safe for 2^24.5 with one key (RFC 8446, 5.5).
#pragma once
#include "messages/wire/tls_context.hpp"
#include "messages/wire/tls_error.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <sys/uio.h>
#include <vector>

struct ssl_st;  // OpenSSL's

namespace poseidon {

enum class tls_side {
  dials,        ///< shows its certificate if it has one, and checks the peer's
  accepts,      ///< shows its certificate and wants the peer's
  serves_pages  ///< shows its certificate and asks for none: browsers rarely have one
};

class tls_channel {
 public:
  static constexpr std::uint64_t records_per_key = std::uint64_t{1} << 22;

  /// `descriptor` is the socket's and outlives this. `key_lasts`: records, less in tests.
  tls_channel(const tls_context& context, tls_side side, int descriptor, std::string peer,
              std::uint64_t key_lasts = records_per_key);
  ~tls_channel();
  tls_channel(const tls_channel&) = delete;
  tls_channel& operator=(const tls_channel&) = delete;

  /// One step of the handshake, as far as bytes are there. Returns  whether it is done. read() and write() take these steps, too.
  /// Errors   tls_error.
  [[nodiscard]] bool shake();
  /// What has arrived, into `parts` in order. 0: the peer has closed. Nothing: nothing has arrived.
  /// Errors   tls_error; socket_error.
  [[nodiscard]] std::optional<std::size_t> read(std::span<const iovec> parts);
  /// Returns  what the kernel did not take of `parts`, which is to be offered again before anything else.
  /// Errors   tls_error; socket_error.
  [[nodiscard]] std::span<iovec> write(std::span<iovec> parts);
  /// Tells the peer that nothing follows, if that can be told.
  void end_writing() noexcept;

  /// What read() and write() found missing when they last did less than asked: POLLIN or POLLOUT.
  [[nodiscard]] short read_wants() const { return read_wants_; }
  [[nodiscard]] short write_wants() const { return write_wants_; }
  /// Whether read() has something before the descriptor can be read.
  [[nodiscard]] bool has_read_ahead() const;
  /// At least this number of bytes arrive on the descriptor before read() has more, if `surely` bytes follow.
  [[nodiscard]] std::size_t bytes_to_come(std::size_t surely) const;
  /// Bytes that have come over the descriptor. Of the reading thread.
  [[nodiscard]] std::uint64_t received() const { return received_; }
  /// Whether this side has sent anything yet.
  [[nodiscard]] bool has_sent() const { return has_sent_; }
  /// How often the writer has changed its key.
  [[nodiscard]] std::uint64_t key_changes() const { return key_changes_; }
  /// "TLSv1.3, TLS_AES_128_GCM_SHA256"
  [[nodiscard]] std::string description() const;

 private:
  struct freed {
    void operator()(ssl_st* connection) const;
  };
  struct calls;  // what OpenSSL calls
  void begin_call();
  [[nodiscard]] bool is_blocked(int returned, short& wants);
  [[nodiscard]] std::optional<std::size_t> read_record(std::byte* into, std::size_t size);
  [[nodiscard]] std::size_t write_record(std::span<const std::byte> record);
  [[nodiscard]] std::span<const std::byte> next_record(std::span<const iovec> parts);
  [[nodiscard]] bool change_key();
  [[nodiscard]] std::span<const std::byte> first_bytes();
  int receive(char* to, int size);
  int send(const char* from, int size);
  [[noreturn]] void fail(const tls_error& why);

  int descriptor_;
  std::string peer_;
  std::uint64_t key_lasts_;
  mutable std::mutex mutex_;
  std::unique_ptr<ssl_st, freed> connection_;
  std::optional<std::string> refused_certificate_;
  std::optional<tls_error> failure_;  // of all later calls
  std::array<std::byte, 8> first_{};  // that the peer has sent
  std::size_t first_size_ = 0;
  int error_ = 0;  // errno of the last call to the kernel
  bool has_sent_ = false;

  // Of the reading thread.
  short read_wants_;
  std::size_t missing_ = 0;  // of the record that has begun to arrive
  std::uint64_t received_ = 0;
  std::exception_ptr read_failure_;
  // Of the writing thread.
  short write_wants_;
  std::vector<std::byte> staged_;  // small parts, gathered to a record
  std::size_t pending_ = 0;        // bytes of the record that the kernel has not taken whole
  std::uint64_t records_ = 0;      // with this key
  std::uint64_t key_changes_ = 0;
};

}  // namespace poseidon
