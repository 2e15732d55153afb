#include "actors/run/opening_task.hpp"

#include <atomic>
#include <cstdint>
#include <memory>

namespace poseidon {

opening_progress show_opening(const task_display& display, const std::string& source) {
  if (!display) return {};
  struct bar {
    std::atomic<std::uint64_t> found{0};
    std::shared_ptr<void> shown;  // last: destroyed before `found`, which it reads
  };
  return [display, source, of = std::make_shared<bar>()](std::uint64_t done, std::uint64_t all) {
    of->found.store(done, std::memory_order_relaxed);
    if (!of->shown)
      of->shown = display({"opening " + source, all, [b = of.get()] { return b->found.load(); }});
  };
}

}  // namespace poseidon
