// actors/node/kept_state.hpp
//
// Solver state that this node's actors have given away for the next view. If a view begins with the version that the one before it began
// with, that one's state goes to it: what has been handed over may have been on its way. So it is kept until the next change.
#pragma once
#include "actors/membership/view_action.hpp"
#include "messages/training.hpp"
#include "models/plan/partition.hpp"

#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace poseidon {

class kept_state {
 public:
  void add(const history_released& m) {
    if (m.history != nullptr) now_.histories.push_back(m.history);
    now_.copies.insert(m.copies.begin(), m.copies.end());
  }
  /// Parameters were cut like this in the view that all have drained. Where state from before that view is given again, that is known.
  void was_cut(std::shared_ptr<const partition> cut) {
    if (!now_.cut) now_.cut = std::move(cut);
  }
  /// The first node has what training begins with, as the only member of a view before would: `state` was cut like this.
  void begin_with(std::shared_ptr<const partition> cut,
                  std::shared_ptr<const chunk_histories> state) {
    now_ = {{std::move(state)}, {}, std::move(cut)};
  }
  /// The next view begins with the version that this one began with.
  void give_again() { now_ = former_; }
  /// A view begins. `keeps`: the state that it begins with may be needed again.
  void view_begins(bool keeps) {
    former_ = keeps ? std::exchange(now_, {}) : state();
    former_.arrived = keeps && !former_.cut;
    now_ = {};
  }
  [[nodiscard]] view_facts::former_state former() const {
    using is = view_facts::former_state;
    return former_.arrived ? is::arrived : former_.cut ? is::here : is::gone;
  }

  /// The partition of the old view; null before the next one is built, and at a newcomer.
  [[nodiscard]] const std::shared_ptr<const partition>& before() const { return now_.cut; }
  /// How parameters were cut where the state of the next view comes from; null: as they are cut now. `again`: it comes from before the
  /// view that holds.
  [[nodiscard]] std::shared_ptr<const partition> cut_of(bool again) const {
    return now_.cut ? now_.cut : again ? former_.cut : nullptr;
  }
  [[nodiscard]] const std::vector<std::shared_ptr<const chunk_histories>>& histories() const {
    return now_.histories;
  }
  /// Its copies of the solver state that another worker of the old view owned; null: it kept none of it.
  [[nodiscard]] std::shared_ptr<const chunk_histories> copies_of(worker_id owner) const {
    const auto it = now_.copies.find(owner);
    return it == now_.copies.end() ? nullptr : it->second;
  }

 private:
  struct state {
    std::vector<std::shared_ptr<const chunk_histories>> histories;
    std::map<worker_id, std::shared_ptr<const chunk_histories>> copies;
    std::shared_ptr<const partition> cut;
    bool arrived = false;  // this node came with that view
  };
  state now_, former_;
};

}  // namespace poseidon
