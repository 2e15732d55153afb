#include "tests/actors/membership/view_model.hpp"

#include <array>

namespace poseidon::view_model {

std::string to_string(mutation m) {
  constexpr std::array names{"none",
                             "minority_decides",
                             "ignores_accepted",
                             "forgets_promise",
                             "tells_after_freezing",
                             "counts_older_epochs",
                             "hears_older_ballots",
                             "returns_to_newest",
                             "floor_ignores_youngest",
                             "proofs_shrink_majority",
                             "proves_without_farewell",
                             "plan_waits_for_nobody",
                             "answers_as_it_trains",
                             "follows_twice",
                             "witness_forgets_promise",
                             "witness_has_first_version"};
  return names[static_cast<std::size_t>(m)];
}

std::string to_string(const post& p) {
  const auto ballot_text = [](const ballot& b) {
    return std::to_string(b.round) + "." + std::to_string(value(b.seat));
  };
  const auto view_text = [](const view& v) {
    std::string seats;
    for (const auto m : seats_of(v.members)) seats += " " + std::to_string(value(m));
    return "view " + std::to_string(v.epoch) + " (" + seats.substr(seats.empty() ? 0 : 1) +
           ") from " + std::to_string(v.first);
  };
  const auto& m = p.what;
  const auto refused = [&](const std::string& what) {
    return (m.promised > m.number ? "refused " : "") + what + ballot_text(m.number);
  };
  const auto text = [&]() -> std::string {
    switch (m.is) {
      case message::kind::prepare:
        return "prepare " + ballot_text(m.number);
      case message::kind::promise:
        return refused("promise of ") +
               (m.accepted.round > 0 ? ", accepted " + view_text(m.value) : "");
      case message::kind::accept:
        return "accept " + ballot_text(m.number) + ", " + view_text(m.value);
      case message::kind::accepted:
        return refused("accepted ");
      case message::kind::chosen:
        break;
    }
    return "chosen " + view_text(m.value);
  };
  return text() + " (epoch " + std::to_string(m.epoch) + ") from node " +
         std::to_string(value(p.from));
}

}  // namespace poseidon::view_model
