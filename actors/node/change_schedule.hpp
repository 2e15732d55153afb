// actors/node/change_schedule.hpp
//
// The changes that the user has planned for iterations before the run begins: routes that a file given to --routes names, and numbers of
// nodes of --views. Each becomes the reason of a view. Where a member is lost first, another view comes between, and the change still
// has to come. A part of `leading`, without a mailbox.
#pragma once
#include "actors/membership/view_plan.hpp"
#include "messages/frames.hpp"
#include "models/plan/routes.hpp"
#include "models/plan/view_schedule.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace poseidon {

class change_schedule {
 public:
  /// By the first clock of each. `file` is what the reason calls the one that names the routes.
  void plan_routes(std::map<std::uint64_t, parameter_routes> routes, std::string file) {
    routes_ = std::move(routes);
    file_ = std::move(file);
  }
  void plan_views(view_schedule views) { views_ = std::move(views); }

  /// The next change, if there is one, of a view that has `routes_now`. From now on it is under way.
  [[nodiscard]] std::optional<change_wanted> take_next(const parameter_routes& routes_now);
  /// A view that nobody has planned comes first. What it does not bring of the change that was under way is next again.
  void overtaken_by(const frames::next_view& next);

 private:
  std::map<std::uint64_t, parameter_routes> routes_;
  std::string file_;
  view_schedule views_;
  struct taken {
    std::uint64_t clock;
    std::optional<parameter_routes> routes;
    std::optional<std::size_t> members;
  };
  std::optional<taken> under_way_;
};

}  // namespace poseidon
