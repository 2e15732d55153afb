#include "actors/links/farewell.hpp"

#include "actors/links/outbox.hpp"

namespace poseidon {

void say_farewell(const link_connection& c, seat_id self, const frames::goodbye& says) noexcept {
  try {
    outbox out(c.peer.keys);
    out.add({std::make_shared<frame_queue::entry>(frame_queue::entry{{says, {}, 0}, 0, 0}),
             {},
             true,
             true},
            {self});
    out.begin_write(0);
    (void)c.socket->write_some(out.unwritten());  // it fits the buffer of a fresh connection
    c.socket->shutdown_writing();
  } catch (const std::exception&) {
    // The peer is gone, and needs no reason.
  }
}

}  // namespace poseidon
