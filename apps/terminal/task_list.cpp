#include "apps/terminal/task_list.hpp"

#include "apps/terminal/figures.hpp"

#include <algorithm>
#include <utility>

namespace poseidon::app {

std::shared_ptr<void> task_list::begin(long_task task, time_point now,
                                       std::function<void()> ended) {
  auto e = std::make_shared<entry>(entry{std::move(task), now, pace{}});
  if (e->task.total > 0 && e->task.done) e->done.at(static_cast<double>(e->task.done()), now);
  {
    const std::lock_guard lock(entries_->mutex);
    entries_->all.push_back(e);
  }
  auto* raw = e.get();
  return {raw, [list = entries_, e, ended = std::move(ended)](void*) {
            {
              const std::lock_guard lock(list->mutex);
              std::erase(list->all, e);
            }
            if (ended) ended();
          }};
}

bool task_list::over(const entry& e) {
  return e.task.total > 0 && e.task.done && e.task.done() >= e.task.total;
}

bool task_list::any() const {
  const std::lock_guard lock(entries_->mutex);
  return std::any_of(entries_->all.begin(), entries_->all.end(),
                     [](const auto& e) { return !over(*e); });
}

std::vector<styled_line> task_list::lines(std::size_t columns, time_point now, std::size_t most) {
  std::vector<styled_line> out;
  const std::lock_guard lock(entries_->mutex);
  for (auto at = entries_->all.rbegin(); at != entries_->all.rend() && out.size() < most; ++at) {
    auto& e = **at;
    if (now - e.since < silent_for || over(e)) continue;
    const auto done = e.task.done ? e.task.done() : 0;
    double left = -1;
    if (e.task.total > 0) {
      e.done.at(static_cast<double>(done), now);
      left = e.done.left_s(static_cast<double>(e.task.total), now).value_or(-1);
    }
    const auto lasted = std::chrono::duration<double>(now - e.since).count();
    out.insert(out.begin(), task_line(e.task, done, lasted, left, columns));
  }
  return out;
}

styled_line task_line(const long_task& task, std::uint64_t done, double lasted_s, double left_s,
                      std::size_t columns) {
  constexpr std::size_t widest_bar = 30, least_bar = 8, least_name = 12;
  std::string facts;
  if (task.total == 0) {
    facts = (done > 0 ? std::to_string(done) + "  " : std::string()) + duration(lasted_s);
  } else {
    done = std::min(done, task.total);
    facts = task.in == long_task::unit::bytes
                ? bytes_of(done, task.total)
                : std::to_string(done) + " of " + std::to_string(task.total);
    if (left_s >= 0) facts += "  left " + duration(left_s);
  }
  // The name is shortened first, then the bar.
  const auto used = 1 + 2 + columns_of(facts);
  const auto rest = columns > used ? columns - used : 0;
  const bool has_bar = task.total > 0 && rest > least_name + 2 + least_bar;
  const auto name = shortened(printable(task.what),
                              std::max<std::size_t>(has_bar ? rest - least_bar - 2 : rest, 1));
  styled_line line = {{" " + name + "  ", style::plain}};
  if (has_bar) {
    for (auto& part : bar(static_cast<double>(done) / static_cast<double>(task.total),
                          std::min(rest - columns_of(name) - 2, widest_bar)))
      line.push_back(std::move(part));
    line.push_back({"  ", style::plain});
  }
  line.push_back({facts, style::plain});
  return line;
}

}  // namespace poseidon::app
