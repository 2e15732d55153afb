// actors/links/link_receiver.hpp
//
// The reading half of a network_link. One long handler on its own thread repeats until the connection ends: it
// reads a header, validates it, reads the payload to its place and tells the actor that uses it.
//
// Accepts  begin_receiving   once, from open_link(); the handler returns when the connection has ended
// Sends    gradient_arrived, sum_arrived, squares_arrived, chunk_landed, factors_landed, lowrank_landed,
//          history_inherited, history_arrived, control_arrived, shared_landed (to caller), report_arrived (to telemetry)
//                            along link_routes
//          older_frames_ended   to network_link   after a bind_link
//          receiver_ended    to network_link, last
// State    the frames begun and not complete, at most max_open_frames; a pool for gradients and history
// Fails    a bad frame, silence and the connection's end all become receiver_ended with a line for the user.
//          The actor ends only when its socket is shut down, which network_link does.
#pragma once
#include "actors/links/control_budget.hpp"
#include "actors/links/network_link.hpp"
#include "actors/links/silence_watch.hpp"
#include "messages/wire/buffer_pool.hpp"
#include "messages/wire/codec.hpp"

#include <array>
#include <mutex>
#include <vector>

namespace poseidon {

struct begin_receiving {};

struct link_shared {
  link_options options;

  [[nodiscard]] std::shared_ptr<const link_binding> binding() const {
    const std::lock_guard lock(mutex);
    return current;
  }
  /// Returns  whether no frame is being read that has begun before; else end_frame() says when.
  [[nodiscard]] bool bind(std::shared_ptr<const link_binding> next) {
    const std::lock_guard lock(mutex);
    current = std::move(next);
    older = begun;
    return older == 0;
  }
  /// The receiver begins to read a frame: the binding that is in force for it.
  [[nodiscard]] std::shared_ptr<const link_binding> begin_frame() {
    const std::lock_guard lock(mutex);
    ++begun;
    return current;
  }
  /// It has delivered one. True: that was the last one of those that had begun before bind().
  [[nodiscard]] bool end_frame(const std::shared_ptr<const link_binding>& of) {
    const std::lock_guard lock(mutex);
    --begun;
    return of != current && --older == 0;
  }
  [[nodiscard]] std::string peer() const {
    return peer_name(binding()->peer, options.address, options.kind);
  }

  mutable std::mutex mutex;
  std::shared_ptr<const link_binding> current;
  // Frames that are being read; of them, those that began before bind().
  std::size_t begun = 0, older = 0;
};

/// Bytes in order from a socket, read ahead a little: the next header comes with the payload before
/// it in one call to the kernel.
class stream_reader {
 public:
  stream_reader(tcp_socket& s, link_counters& counters, silence_watch silence)
      : socket_(s), counters_(counters), silence_(silence) {}

  struct silent {};  ///< thrown: nothing came for the silence limit
  struct ended {};   ///< thrown: the peer has closed
  /// `beyond`: how many bytes of the same frame follow after `into`.
  void read(std::span<std::byte> into, std::size_t beyond = 0);
  [[nodiscard]] silence_watch& silence() { return silence_; }
  [[nodiscard]] const silence_watch& silence() const { return silence_; }

 private:
  void note_gap();

  tcp_socket& socket_;
  link_counters& counters_;
  silence_watch silence_;
  std::array<std::byte, 256> ahead_;  // more would be copied from here to where it belongs
  std::size_t begin_ = 0, end_ = 0;
};

class link_receiver : public actor<link_receiver> {
 public:
  static constexpr const char* type_name = "network_link";
  using accepts = messages<begin_receiving>;
  using sends =
      messages<control_arrived, gradient_arrived, sum_arrived, squares_arrived, chunk_landed,
               factors_landed, lowrank_landed, history_inherited, history_arrived, shared_landed,
               report_arrived, older_frames_ended, receiver_ended>;

  link_receiver(actor_context context, std::shared_ptr<link_shared> shared,
                handle<network_link> link);
  void on(const begin_receiving&);

 private:
  struct open_frame {
    decoded_header head;
    std::shared_ptr<const link_binding> binding;  // in force when the frame began
    std::shared_ptr<const void> owner;            // keeps a pooled buffer
    std::span<std::byte> place;
    std::size_t filled = 0;
    std::int64_t start_ns = 0;
    bool late = false;  // of another view
  };

  receiver_ended receive_all();
  void receive_piece();
  open_frame begin_frame(std::size_t header_bytes, std::uint32_t checksum);
  void check_seal(std::span<const std::byte> preamble, std::span<const std::byte> header,
                  std::span<const std::byte> payload);
  [[nodiscard]] static bool is_late(const open_frame& f);
  void find_place(open_frame& f);
  void deliver(open_frame f);
  void count_and_trace(const open_frame& f) const;

  std::shared_ptr<link_shared> shared_;
  port<receiver_ended> link_;
  port<older_frames_ended> older_ended_;
  stream_reader stream_;
  buffer_pool pool_;
  control_budget budget_;
  std::optional<frame_seal> seal_;
  std::vector<open_frame> open_;
  std::vector<std::byte> header_;
  bool between_frames_ = true;  // the stream may end here
  std::optional<frames::goodbye> goodbye_;
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::begin_receiving)
