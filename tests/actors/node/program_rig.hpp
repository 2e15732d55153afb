// tests/actors/node/program_rig.hpp - workers whose programs compute, as a script of PyTorch in mode ddp does, in a simulated cluster.
#pragma once
#include "actors/client/program.hpp"
#include "tests/actors/node/node_rig.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace poseidon::test {

/// What the means of a clock were: by parameter, its values; no values: nobody had a gradient.
using clock_means = std::vector<std::vector<float>>;

/// A program that trains `clocks` clocks. In each it lends a gradient of every parameter, one at a time and in any order, waits until all
/// means are here, reads them, and writes over what it has lent. A gradient's values are a power of two that only this worker has, so a mean
/// says whose gradients it is made of.
class sim_program {
 public:
  static constexpr std::size_t parameters = 4;
  static constexpr std::size_t given = 3;     // which worker 0 gives
  static constexpr std::size_t rarely = 2;    // of which nobody has a gradient in every third clock
  static constexpr std::size_t factored = 0;  // which may go as factors

  sim_program(std::size_t number, std::uint64_t clocks, bool offers)
      : number_(number), clocks_(clocks), offers_(offers) {
    const std::vector<declared_parameter> declared{
        {"w", {2, 3}}, {"b", {5}}, {"sometimes", {2}}, {"buffers", {3}, true}};
    std::vector<const float*> values;
    for (const auto& p : declared) {
      const auto size = static_cast<std::size_t>(count(p.shape));
      first_.emplace_back(size, 0.5f);
      lent_.emplace_back(size);
      values.push_back(first_.back().data());
    }
    around = std::make_shared<program>(declared, values);
  }

  /// Does one thing. False: it can do nothing now.
  bool step(std::mt19937& random) {
    if (!has_begun_) return enter();
    if (done_ || !around->fresh.is_whole(clock_)) return false;
    if (clock_ == clocks_ || (leaves_ && !begun_)) return leave();
    if (!begun_) return begin(random);
    if (missing_.empty()) return take_means();
    const auto place = missing_.begin() + static_cast<std::ptrdiff_t>(random() % missing_.size());
    lend(*place);
    missing_.erase(place);
    return true;
  }
  /// It leaves before its next clock, and the others may go on.
  void leave_soon() { leaves_ = true; }
  [[nodiscard]] bool has_left() const { return leaves_; }
  /// For who reads why a test has failed.
  [[nodiscard]] std::string state() const {
    std::string out = "at clock " + std::to_string(clock_) + (begun_ ? ", begun" : "") +
                      ", to lend " + std::to_string(missing_.size()) + ", here";
    for (std::size_t p = 0; p < parameters; ++p)
      for (auto v = clock_ + 1; v + 2 > clock_ && v + 1 > 0; --v)
        if (around->fresh.wait(as_id<parameter_id>(p), v, std::chrono::seconds{0}) !=
            fresh_board::answer::not_yet) {
          out += " " + std::to_string(v);
          break;
        }
    return out;
  }
  /// By clock, as far as it has trained.
  [[nodiscard]] const std::vector<clock_means>& means() const { return means_; }
  [[nodiscard]] bool has_trained() const { return clock_ == clocks_; }
  /// It has all that it begins with.
  [[nodiscard]] bool has_begun() const { return has_begun_; }
  /// The first clock that it trains itself.
  [[nodiscard]] std::uint64_t first_clock() const { return first_clock_; }

  std::shared_ptr<program> around;

 private:
  bool begin(std::mt19937& random) {
    if (clock_ == 0 && offers_ && !std::exchange(offered_, true))
      around->caller.tell(loads_measured{{{1.0, 0.5, 1}, {}, {}, {}}});
    if (asked_) return random() % 50 == 0 && give();  // it takes its time
    using answer = clock_gate::answer;
    const auto may = around->clocks.begin(clock_, std::chrono::seconds{0});
    if (may == answer::wants_state) return asked_ = true;
    if (may != answer::begun) return false;
    begun_ = true;
    for (std::size_t p = 0; p < parameters; ++p) missing_.push_back(p);
    return true;
  }
  /// Once the first values are here, and, where it has come later, what the others have given.
  bool enter() {
    const auto joined_at = around->newcomers.joined_at();
    const auto view = around->views.newest();
    if (view.seats.empty() || !around->shared_in_flight.is_over() ||
        !around->fresh.is_whole(joined_at.value_or(0)))
      return false;
    has_begun_ = true;
    if (!joined_at) return true;
    number_ = value(view.seats.at(value(view.self)));
    clock_ = first_clock_ = *joined_at;
    take(around->newcomers.came());
    return true;
  }
  /// Its number, and then the means of all clocks: a list of sizes and values. Between its being asked and this, who needed it may have gone.
  bool give() {
    std::vector<float> all{static_cast<float>(number_)};
    for (const auto& clock : means_)
      for (const auto& mean : clock) {
        all.push_back(static_cast<float>(mean.size()));
        all.insert(all.end(), mean.begin(), mean.end());
      }
    asked_ = false;
    const auto gift = around->clocks.give_state(clock_);
    CHECK(gift != clock_gate::gift::never_asked);
    if (gift != clock_gate::gift::wanted) return true;
    around->newcomers.give(clock_, std::as_bytes(std::span(all)), sizeof(float));
    around->caller.tell(state_given{clock_id{clock_}});
    return true;
  }
  void take(std::span<const std::byte> bytes) {
    std::vector<float> all(bytes.size() / sizeof(float));
    std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(all)).begin());
    for (std::size_t at = 1; at < all.size();) {
      if (means_.empty() || means_.back().size() == parameters) means_.emplace_back();
      const auto size = static_cast<std::size_t>(all[at++]);
      means_.back().emplace_back(all.begin() + static_cast<std::ptrdiff_t>(at),
                                 all.begin() + static_cast<std::ptrdiff_t>(at + size));
      at += size;
    }
  }
  [[nodiscard]] bool has_gradient(std::size_t p) const { return p != rarely || clock_ % 3 != 1; }
  void lend(std::size_t p) {
    const auto value = static_cast<float>(1u << number_) * static_cast<float>(1 + clock_ % 5);
    auto& to = lent_[p];
    std::fill(to.begin(), to.end(), value);
    const auto id = as_id<parameter_id>(p);
    const std::lock_guard lock(around->lending);
    if (const auto [factors, self] = around->factors.of(id); factors != nullptr) {
      const std::vector<float> u(2, value), v(3, 1.0f);
      factors->fill(clock_id{clock_}, self, u, v);
      around->lent[id]->lend(nullptr, {}, wire_format::float32, to.data());
      by_factors_ = true;
    } else {
      around->lent[id]->lend(has_gradient(p) ? to.data() : nullptr);
    }
    around->caller.tell(gradients_lent{{{id, clock_id{clock_}}}});
  }
  bool take_means() {
    if (!around->fresh.is_whole(clock_ + 1)) return false;
    clock_means all;
    for (std::size_t p = 0; p < parameters; ++p) {
      const auto id = as_id<parameter_id>(p);
      const auto is = around->fresh.wait(id, clock_ + 1, std::chrono::seconds{0});
      const bool made_here = p == factored && by_factors_;
      const auto* from = made_here ? lent_[p].data() : around->values(id, clock_ + 1);
      all.emplace_back();
      if (is == fresh_board::answer::here) all.back().assign(from, from + lent_[p].size());
      std::fill(lent_[p].begin(), lent_[p].end(), std::numeric_limits<float>::quiet_NaN());
    }
    means_.push_back(std::move(all));
    begun_ = by_factors_ = false;
    ++clock_;
    return true;
  }
  bool leave() {
    done_ = true;
    around->caller.tell(program_done{clock_, leaves_});
    return true;
  }

  std::size_t number_;
  std::uint64_t clocks_;
  bool has_begun_ = false;
  std::uint64_t first_clock_ = 0;
  bool offers_, offered_ = false, begun_ = false, by_factors_ = false, done_ = false;
  bool asked_ = false;  // for its state
  bool leaves_ = false;
  std::uint64_t clock_ = 0;
  std::vector<std::vector<float>> first_, lent_;
  std::vector<std::size_t> missing_;  // parameters that have not been lent in this clock
  std::vector<clock_means> means_;
};

/// Its programs are stepped between the turns of actors.
class program_rig : public node_rig {
 public:
  std::vector<std::unique_ptr<sim_program>> programs;  // by node
  bool offers_factors = false;
  bool takes_newcomers = false;
  std::size_t began_with = 0;  ///< workers
  std::mt19937 random;

  explicit program_rig(std::uint32_t seed) : random(seed) { survive = 1; }
  ~program_rig() {
    for (auto& n : nodes)
      if (!n->result) caf::anon_send_exit(n->untyped(), caf::exit_reason::user_shutdown);
    sim.settle();
  }

  void cluster_of_programs(std::size_t workers) {
    began_with = workers;
    for (std::size_t w = 0; w < workers; ++w) {
      programs.push_back(std::make_unique<sim_program>(w, clocks, offers_factors));
      const auto& around = programs.back()->around;
      around->takes_newcomers = takes_newcomers;
      node_setup s;
      s.around = around;
      if (w == 0) {
        s.run.emplace();
        s.run->declared = around->declared;
        s.run->workers = workers;
        s.run->survive = survive;
        s.run->takes_newcomers = takes_newcomers;
        s.cluster.listen = host_port{"a", 7600};
        s.choices.routes = offers_factors ? parse_routes("sfb") : parse_routes("ps");
      } else {
        s.cluster.join = {{"a", 7600}};
      }
      begin(std::move(s), {std::string(1, static_cast<char>('a' + w)), 7600});
      while (w > 0 && !nodes.front()->display->said("worker " + std::to_string(w) + " joined") &&
             sim.step()) {
      }
      if (w == 0) sim.settle();
    }
  }
  /// One more, which joins whoever answers of those that live.
  void one_joins() {
    const auto number = programs.size();
    programs.push_back(std::make_unique<sim_program>(number, clocks, false));
    programs.back()->around->takes_newcomers = takes_newcomers;
    node_setup s;
    s.around = programs.back()->around;
    for (std::size_t n = 0; n < nodes.size(); ++n)
      if (!killed.contains(n)) s.cluster.join.push_back(parse_host_port(nodes[n]->at));
    begin(std::move(s), {std::string(1, static_cast<char>('a' + number)), 7600});
  }
  /// One thing happens: at a program, or in an actor.
  bool turn() {
    const auto who = random() % (3 * programs.size());
    if (who < programs.size() && !killed.contains(who) && programs[who]->step(random)) return true;
    return sim.step_any(random);
  }
  void turns(std::size_t most) {
    for (std::size_t n = 0; n < most && !all_ended(); ++n) (void)turn();
  }
  /// Until all have trained two, or more.
  void train_some_clocks() {
    while (std::any_of(programs.begin(), programs.end(),
                       [](const auto& p) { return p->means().size() < 2; })) {
      turns(1);
      if (!sim.step_any(random)) sim.pass(std::chrono::milliseconds{20});
    }
  }
  /// Until all that live have ended, or two minutes have passed.
  void go_on_until_the_end() {
    for (int ticks = 0; ticks < 6000 && !all_ended(); ++ticks) {
      wiring->close_unaccepted();
      turns(600);
      sim.pass(std::chrono::milliseconds{20});
    }
  }
};

}  // namespace poseidon::test
