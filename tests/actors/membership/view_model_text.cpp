#include "tests/actors/membership/view_model.hpp"

#include <array>
#include <type_traits>

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
  const auto text = [&](const auto& m) -> std::string {
    using type = std::decay_t<decltype(m)>;
    if constexpr (std::is_same_v<type, box::chosen>) {
      return "chosen " + view_text(m.value);
    } else {
      std::string out = ballot_text(m.number);
      if constexpr (std::is_same_v<type, box::prepare>) return "prepare " + out;
      if constexpr (std::is_same_v<type, box::accept>)
        return "accept " + out + ", " + view_text(m.value);
      if constexpr (std::is_same_v<type, box::promise>)
        out =
            "promise of " + out + (m.accepted ? ", accepted " + view_text(m.accepted->value) : "");
      if constexpr (std::is_same_v<type, box::accepted>) out = "accepted " + out;
      if constexpr (requires { m.promised; })
        if (m.promised > m.number) out = "refused " + out;
      return out;
    }
  };
  const auto epoch = std::visit([](const auto& m) { return m.epoch; }, p.what);
  return std::visit(text, p.what) + " (epoch " + std::to_string(epoch) + ") from node " +
         std::to_string(value(p.from));
}

}  // namespace poseidon::view_model
