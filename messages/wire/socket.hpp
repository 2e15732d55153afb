// messages/wire/socket.hpp - TCP as the links need it: blocking, gathered, and stoppable from another
// thread. With TLS or without, what is read and written is the same.
#pragma once
#include "messages/wire/host_port.hpp"
#include "messages/wire/tls_channel.hpp"
#include "messages/wire/wake_up.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/uio.h>

namespace poseidon {

/// A TCP connection. One thread may read while another writes; any thread may shut it down, which
/// wakes both.
class tcp_socket {
 public:
  /// Takes the descriptor over, makes it blocking and sets write_patience.
  /// Errors   socket_error if one of these is refused; the descriptor is closed then.
  tcp_socket(int fd, std::string peer);
  ~tcp_socket();
  tcp_socket(const tcp_socket&) = delete;
  tcp_socket& operator=(const tcp_socket&) = delete;

  /// The other end as a number: "10.0.0.7:53412".
  [[nodiscard]] const std::string& peer() const { return peer_; }
  /// This end as a number.  Errors   socket_error.
  [[nodiscard]] host_port local() const;

  /// Writes all of it in order, blocking. `parts` is used up.
  /// Errors   socket_error; how much was written is unknown then.
  void write(std::span<iovec> parts);
  void write(std::span<const std::byte> bytes);
  /// Writes in order as long as the other side takes something at least every write_patience.
  /// Returns  what is left of `parts`, which are used up as far as they were written.
  /// Errors   socket_error.
  [[nodiscard]] std::span<iovec> write_some(std::span<iovec> parts);
  static constexpr std::chrono::milliseconds write_patience{100};

  /// Reads what is there into `parts`, at least a byte, blocking at most `limit`. 0: the peer has
  /// closed. Returns nothing if the limit has passed. Errors   socket_error.
  /// `surely`: a number of bytes that will come in any case. If they are many it sleeps until those of a tenth of a
  /// millisecond have arrived: a thread that is woken for every segment spends more time being woken than copying.
  [[nodiscard]] std::optional<std::size_t> read_some(std::span<iovec> parts,
                                                     std::chrono::milliseconds limit,
                                                     std::size_t surely = 1);
  /// Reads exactly `bytes`, all of it before `deadline`. 0 or fewer bytes than asked: the peer has
  /// closed; nothing: the deadline has passed. `stop` ends it. Errors   socket_error, ECANCELED
  /// if stopped.
  [[nodiscard]] std::optional<std::size_t> read_exactly(
      std::span<std::byte> bytes, std::chrono::steady_clock::time_point deadline,
      const wake_up* stop = nullptr);

  // For a loop that serves many connections: neither waits. Errors   socket_error.
  /// Returns  0: the peer has closed; nothing: nothing is there, see what read_wants() says.
  [[nodiscard]] std::optional<std::size_t> read_now(std::span<std::byte> into);
  /// Returns  how much was taken. The rest is to be offered again, when write_wants() is there, before anything else.
  [[nodiscard]] std::size_t write_now(std::span<const std::byte> bytes);
  [[nodiscard]] short read_wants() const;
  [[nodiscard]] short write_wants() const;

  /// All that is read and written from now on goes through TLS. On a fresh connection. `key_lasts`: as tls_channel.
  void use_tls(const tls_context& context, tls_side side,
               std::uint64_t key_lasts = tls_channel::records_per_key);
  /// Runs TLS's handshake now, blocking; otherwise the first read and write do.
  /// Errors   tls_error; socket_error, ECANCELED if stopped.
  void shake_tls(std::chrono::steady_clock::time_point deadline, const wake_up* stop = nullptr);
  /// The peer speaks no TLS: it is answered without.
  void drop_tls() noexcept;
  [[nodiscard]] const tls_channel* tls() const { return tls_.get(); }
  /// Nothing more is written, and what still comes is thrown away, until the peer closes or `deadline`. Closing with the peer's
  /// bytes unread would reset the connection, and it would never read the last that was written.
  void linger(std::chrono::steady_clock::time_point deadline) noexcept;

  /// Ends the read in progress and all later ones, as if the peer had closed.
  void shutdown_reading() noexcept;
  void shutdown_writing() noexcept;  ///< the peer reads to the end and then sees it
  void shutdown() noexcept;  ///< wakes every thread in read or write; the descriptor stays ours

  [[nodiscard]] int descriptor() const { return fd_; }

 private:
  /// How fast bytes come, over the last few milliseconds.
  class inflow {
   public:
    void add(std::size_t bytes, std::chrono::steady_clock::time_point now);
    [[nodiscard]] std::size_t worth_a_wake() const;

   private:
    static constexpr std::chrono::milliseconds window{2};
    std::size_t bytes_ = 0;
    std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
    double rate_ = 0;  // bytes/s
  };

  [[nodiscard]] std::span<iovec> write_tls(std::span<iovec> parts);
  [[nodiscard]] std::optional<std::size_t> read_some_tls(std::span<const iovec> parts,
                                                         std::chrono::milliseconds limit,
                                                         std::size_t surely);
  [[nodiscard]] std::optional<std::size_t> read_tls(std::span<const iovec> parts,
                                                    std::chrono::steady_clock::time_point deadline,
                                                    std::size_t surely, const wake_up* stop);
  void wake_for(std::size_t bytes);
  [[noreturn]] void stopped() const;

  // A reader sleeps until what comes in a tenth of a millisecond has arrived, within these bounds. The kernel wakes it earlier when
  // the window is about to close, so a small receive buffer is no deadlock.
  static constexpr std::size_t worth_waiting_for = 16 << 10, most_waited_for = 1 << 20;

  int fd_;
  std::string peer_;
  std::unique_ptr<tls_channel> tls_;
  std::chrono::milliseconds read_limit_{-1};  // as set on the socket; of the reading thread
  int wakes_for_ = 1;                         // bytes, likewise
  inflow inflow_;                             // likewise
};

/// Connects, waiting at most `limit`; `stop` ends the wait. (Looking up a name is the system's, and is
/// not ended by it.)
/// Errors   socket_error: host unknown, refused, unreachable, no answer in time; each says what to
/// do. ECANCELED if stopped.
[[nodiscard]] std::shared_ptr<tcp_socket> connect_to(const host_port& to,
                                                     std::chrono::milliseconds limit,
                                                     const wake_up* stop = nullptr);

/// A listening socket. Port 0 lets the system choose.
class tcp_listener {
 public:
  /// Errors   socket_error: port in use, not allowed, address not of this machine; each says what
  /// to do.
  explicit tcp_listener(const host_port& at);
  ~tcp_listener();
  tcp_listener(const tcp_listener&) = delete;
  tcp_listener& operator=(const tcp_listener&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// "10.0.0.7:7600", as the system has bound it.
  [[nodiscard]] const std::string& bound() const { return bound_; }
  /// For poll(): readable when accept() will not wait.
  [[nodiscard]] int to_poll() const { return fd_; }
  /// The next connection, or nothing after `limit` or wake(). Errors   socket_error (say,
  /// no descriptors).
  [[nodiscard]] std::shared_ptr<tcp_socket> accept(std::chrono::milliseconds limit);
  /// Ends the accept() in progress, or the next one, without a connection. Any thread.
  void wake() noexcept;

 private:
  int fd_ = -1;
  wake_up wake_;
  std::uint16_t port_ = 0;
  std::string bound_;
};

}  // namespace poseidon
