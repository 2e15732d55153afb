// The waits of streams for each other when the gradients of several replicas are added on the first one's device. Streams
// delay work that nothing waits for; a test holds back the thread that waits for one device, so that the other devices
// are ahead of it.
#include "gpu/gradient_group.hpp"
#include "gpu/host_memory.hpp"
#include "tests/gpu/streams/rig.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using namespace poseidon::test;
using gpu::simulated::lateness;

namespace {

constexpr std::size_t piece = 64;  // values
/// Of parameters: several pieces and a rest, one value, one piece.
constexpr std::size_t sizes[] = {5 * piece + 3, 1, piece};

/// The gradients of a net with a layer, on these devices; the "backward pass" is a copy of numbers.
class team {
 public:
  team(lateness late, const std::vector<int>& ordinals) {
    configure(machine(late));
    memory_ = gpu::make_host_memory();
    for (const std::size_t n : sizes) home_.emplace_back(n, memory_.get());
    std::vector<gpu::gradient_group::member> of_group;
    for (const int ordinal : ordinals) {
      auto& r = *replicas_.emplace_back(std::make_unique<one>(ordinal));
      REQUIRE(gpu::enable_copies(ordinal, ordinals.front()));
      std::vector<float*> gradients;
      for (const std::size_t n : sizes) {
        r.gradients.emplace_back(ordinal, n * sizeof(float));
        gradients.push_back(r.gradients.back().floats());
      }
      of_group.push_back({r.with, gradients});
    }
    const std::vector<std::span<float>> home(home_.begin(), home_.end());
    group_ = std::make_unique<gpu::gradient_group>(of_group, home, "small", piece * sizeof(float));
  }
  ~team() {
    group_->leave();
    for (auto& r : replicas_)
      for (gpu::stream* s : {&r->with->compute, &r->with->copy_out}) gpu::finish(*s);
  }

  [[nodiscard]] std::size_t size() const { return replicas_.size(); }
  [[nodiscard]] gpu::context& with(std::size_t r) { return *replicas_[r]->with; }

  /// Overwrites the replica's gradients.
  void backward(std::size_t r, std::uint32_t pass) {
    one& it = *replicas_[r];
    for (std::size_t p = 0; p < std::size(sizes); ++p) {
      auto& from = it.made_of.emplace_back(sizes[p], memory_.get());
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = value(r, pass, p, i);
      copy_to_device(it.with->compute, it.gradients[p].bytes(), from.data(),
                     from.size() * sizeof(float));
    }
    record(it.made, it.with->compute);
  }
  /// As replica::bring_gradients() does.
  std::future<void> bring(std::size_t r) {
    one& it = *replicas_[r];
    wait(it.with->copy_out, it.made);
    const auto told = std::make_shared<std::promise<void>>();
    constexpr std::size_t all[] = {0, 1, 2};
    group_->contribute(r, all, it.made, [told](const std::exception_ptr& failed) {
      failed ? told->set_exception(failed) : told->set_value();
    });
    return told->get_future();
  }
  /// Its memory is freed, and may be another object's from now on.
  void leave(std::size_t r) {
    group_->leave();
    for (gpu::stream* s : {&with(r).compute, &with(r).copy_out}) gpu::finish(*s);
    for (auto& g : replicas_[r]->gradients)
      std::fill_n(g.floats(), g.size() / sizeof(float), -1.0f);
  }
  /// Are these the bits of the host's sum?
  [[nodiscard]] bool sum_is_home(std::uint32_t pass) const {
    for (std::size_t p = 0; p < std::size(sizes); ++p)
      for (std::size_t i = 0; i < sizes[p]; ++i) {
        float sum = value(0, pass, p, i);
        for (std::size_t r = 1; r < size(); ++r) sum += value(r, pass, p, i);
        if (home_[p][i] != sum) return false;
      }
    return true;
  }

 private:
  struct one {
    explicit one(int ordinal)
        : with(std::make_shared<gpu::context>(ordinal, gpu::library_options{})), made(ordinal) {}
    std::shared_ptr<gpu::context> with;
    gpu::event made;
    std::vector<gpu::device_memory> gradients;
    std::deque<host_values> made_of;
  };
  static float value(std::size_t r, std::uint32_t pass, std::size_t p, std::size_t i) {
    return number(static_cast<std::uint32_t>(100 * pass + 10 * p + r), i);
  }

  std::shared_ptr<std::pmr::memory_resource> memory_;
  std::vector<host_values> home_;
  std::vector<std::unique_ptr<one>> replicas_;
  std::unique_ptr<gpu::gradient_group> group_;
};

/// While it lives no thread waits for work that is enqueued to this device from now on.
class held_back {
 public:
  explicit held_back(gpu::context& device) {
    device.waits.after(device.copy_in, [opened = opened_.get_future().share()](
                                           const std::exception_ptr&) { opened.wait(); });
  }
  ~held_back() { opened_.set_value(); }

 private:
  std::promise<void> opened_;
};

const std::vector<int> teams[] = {{0, 1}, {0, 0}, {2, 0, 1, 2}, {0, 0, 1, 1}};

}  // namespace

TEST_CASE(
    "sums: the bits are those of the host's sum, whichever replica is last and whichever stream is "
    "late") {
  for (const lateness late : every_lateness)
    for (const auto& ordinals : teams) {
      CAPTURE(static_cast<int>(late));
      CAPTURE(ordinals.size());
      team t(late, ordinals);
      for (std::uint32_t pass = 0; pass < 5; ++pass) {
        std::vector<std::future<void>> over;
        for (std::size_t i = 0; i < t.size(); ++i) {
          const std::size_t r = (i + pass) % t.size();
          t.backward(r, pass);
          over.push_back(t.bring(r));
        }
        for (auto& o : over) o.get();
        CHECK(t.sum_is_home(pass));
      }
    }
}

TEST_CASE("sums: the first device waits for every part, also if no other stream does") {
  for (const lateness late : {lateness::copy_streams, lateness::all})
    for (const auto& ordinals : teams) {
      team t(late, ordinals);
      std::future<void> home;
      std::vector<std::unique_ptr<held_back>> others;
      for (std::size_t r = 1; r < t.size(); ++r)
        others.push_back(std::make_unique<held_back>(t.with(r)));
      for (std::size_t r = t.size(); r-- > 0;) {
        t.backward(r, 0);
        home = t.bring(r);
      }
      home.get();
      CHECK(t.sum_is_home(0));
    }
}

TEST_CASE("sums: a place is not overwritten, nor a gradient given back, before it has been added") {
  for (const lateness late : {lateness::copy_streams, lateness::all})
    for (const auto& ordinals : teams) {
      team t(late, ordinals);
      std::future<void> home;
      {
        const held_back first(t.with(0));
        std::vector<std::future<void>> read;
        for (std::size_t r = 0; r < t.size(); ++r) {
          t.backward(r, 0);
          r == 0 ? void(home = t.bring(r)) : read.push_back(t.bring(r));
        }
        for (std::size_t r = 1; r < t.size(); ++r) {
          read[r - 1].get();
          t.backward(r, 1);
          gpu::finish(t.with(r).compute);
        }
      }
      home.get();
      CHECK(t.sum_is_home(0));
    }
}

TEST_CASE("sums: when one leaves, what is enqueued has been added, and nothing more will be") {
  for (const auto& ordinals : teams) {
    team t(lateness::all, ordinals);
    std::future<void> home;
    {
      const held_back first(t.with(0));
      for (std::size_t r = t.size(); r-- > 0;) {
        t.backward(r, 0);
        home = t.bring(r);
      }
      t.leave(1);
    }
    home.get();
    CHECK(t.sum_is_home(0));
    CHECK_THROWS_AS(t.bring(0).get(), std::runtime_error);
  }
}
