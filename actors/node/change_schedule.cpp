#include "actors/node/change_schedule.hpp"

#include "actors/node/newcomers.hpp"

#include <algorithm>
#include <set>

namespace poseidon {

namespace {

template <class Value>
std::optional<Value> take(std::map<std::uint64_t, Value>& from, std::uint64_t clock) {
  auto found = from.extract(clock);
  return found ? std::optional(std::move(found.mapped())) : std::nullopt;
}

}  // namespace

std::optional<change_wanted> change_schedule::take_next(const parameter_routes& routes_now) {
  under_way_.reset();
  if (routes_.empty() && views_.empty()) return std::nullopt;
  const auto clock = routes_.empty()  ? views_.begin()->first
                     : views_.empty() ? routes_.begin()->first
                                      : std::min(routes_.begin()->first, views_.begin()->first);
  under_way_ = taken{clock, take(routes_, clock), take(views_, clock)};
  change_wanted next{numbers_of(routes_now), clock_id{clock}, {}};
  if (under_way_->routes) {
    next.routes = numbers_of(*under_way_->routes);
    next.why = "as --routes " + file_ + " asks";
  }
  if (under_way_->members) {
    next.members = *under_way_->members;
    next.why += (next.why.empty() ? "" : ", ") + std::string("as --views asks");
  }
  return next;
}

void change_schedule::overtaken_by(const frames::next_view& next) {
  const auto late = std::exchange(under_way_, std::nullopt);
  if (!late) return;
  // A view trains one iteration at least before another one is planned.
  const auto clock = std::max(late->clock, value(next.first_clock) + 1);
  if (late->routes && numbers_of(*late->routes) != next.routes)
    routes_.try_emplace(clock, *late->routes);
  if (late->members && *late->members != next.members.size())
    views_.try_emplace(clock, *late->members);
}

}  // namespace poseidon
