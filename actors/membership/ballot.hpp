// actors/membership/ballot.hpp - what proposers and acceptors of one view say to each other (ballot_box has the protocol).
#pragma once
#include "actors/membership/view_rules.hpp"
#include "messages/frames.hpp"

#include <cstdint>
#include <optional>
#include <variant>

namespace poseidon {

using ballot = frames::ballot;

/// `epoch` is in each message that of the view which is to be followed; in `chosen` it is that of the view told.
template <class Value>
struct ballot_messages {
  struct vote {
    ballot number;
    Value value;
    auto operator<=>(const vote&) const = default;
  };
  /// A proposer to all members.
  struct prepare {
    std::uint64_t epoch = 0;
    ballot number;
    auto operator<=>(const prepare&) const = default;
  };
  /// The answer. `promised` above `number`: refused.
  struct promise {
    std::uint64_t epoch = 0;
    ballot number, promised;
    std::optional<vote> accepted;  ///< the highest ballot that this member has accepted
    testimony says;
    auto operator<=>(const promise&) const = default;
  };
  /// A proposer to all members.
  struct accept {
    std::uint64_t epoch = 0;
    ballot number;
    Value value;
    auto operator<=>(const accept&) const = default;
  };
  /// The answer. `promised` above `number`: refused.
  struct accepted {
    std::uint64_t epoch = 0;
    ballot number, promised;
    auto operator<=>(const accepted&) const = default;
  };
  /// What has been decided: this value is the view of `epoch`. From whoever knows to whoever does not.
  struct chosen {
    std::uint64_t epoch = 0;
    Value value;
    auto operator<=>(const chosen&) const = default;
  };
  using message = std::variant<prepare, promise, accept, accepted, chosen>;
  struct letter {
    seat_id to{};
    message what;
  };
};

}  // namespace poseidon
