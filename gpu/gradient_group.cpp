#include "gpu/gradient_group.hpp"

#include "gpu/blob_memory.hpp"
#include "gpu/kernels/elementwise.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

namespace poseidon::gpu {

std::vector<float*> addable(const net& n, std::vector<float*> gradients) {
  const std::vector<bool> whole = have_whole_gradients(n);
  for (std::size_t p = 0; p < gradients.size(); ++p)
    if (!whole[p]) gradients[p] = nullptr;
  return gradients;
}

gradient_group::gradient_group(std::vector<member> members, std::vector<std::span<float>> home,
                               const std::string& net, std::size_t piece_bytes)
    : members_(std::move(members)),
      home_(std::move(home)),
      piece_(piece_bytes / sizeof(float)),
      gathered_(home_.size()) {
  std::size_t largest = 0;
  for (std::size_t p = 0; p < home_.size(); ++p) {
    gathered_[p].parts.resize(members_.size());
    values_.push_back(home_[p].size());
    if (adds(p)) largest = std::max(largest, home_[p].size());
  }
  const auto bytes = std::min(largest, piece_) * sizeof(float);
  context& first = *members_.front().with;
  for (std::size_t r = 0; r < members_.size(); ++r) {
    const int other = members_[r].with->device;
    way& w = ways_.emplace_back(first.device);
    if (other == first.device) continue;
    for (int i = 0; i < 2; ++i)
      w.places.emplace_back(
          first.device, other,
          claim(first.copy_out, bytes,
                "gradients that GPU " + std::to_string(other) + " sends there, of net \"" + net +
                    "\"",
                "Name a GPU with more memory first in --devices, try a smaller batch_size, or "
                "fewer devices."));
  }
}

void gradient_group::contribute(std::size_t who, std::span<const std::size_t> parameters,
                                const event& made, completion done) {
  const std::lock_guard lock(mutex_);
  if (left_) return tell_left({who, &made, 0, std::move(done)});
  const auto mine =
      std::make_shared<contribution>(contribution{who, &made, parameters.size(), std::move(done)});
  for (const std::size_t p : parameters) {
    gathered& all = gathered_.at(p);
    if (std::exchange(all.parts[who], mine) != nullptr)
      throw std::logic_error("replica " + std::to_string(who) + " adds its gradient of parameter " +
                             std::to_string(p) + " twice");
    if (++all.here < members_.size()) continue;
    add(p, all);
    all.here = 0;
    for (auto& part : all.parts) {
      if (--part->missing == 0) tell_when_read(*part);
      part = nullptr;
    }
  }
}

void gradient_group::add(std::size_t parameter, const gathered& all) {
  stream& on = members_.front().with->copy_out;
  float* const sum = members_.front().gradients[parameter];
  const std::span<float> home = home_[parameter];
  for (std::size_t r = 1; r < members_.size(); ++r)
    if (!ways_[r].copies()) wait(on, *all.parts[r]->made);
  const std::size_t values = values_[parameter];
  for (std::size_t at = 0; at < values; at += piece_) {
    const std::size_t n = std::min(piece_, values - at);
    for (std::size_t r = 1; r < members_.size(); ++r) {
      const float* const part = members_[r].gradients[parameter] + at;
      if (ways_[r].copies())
        add_landed(land(r, part, n), n, sum + at);
      else
        add_scaled(on, n, 1, sum + at, 1, part, sum + at);
    }
    if (!home.empty()) copy_to_host(on, home.data() + at, sum + at, n * sizeof(float));
  }
  for (std::size_t r = 1; r < members_.size(); ++r)
    if (!ways_[r].copies()) record(ways_[r].read, on);
}

/// Enqueues the copy of a piece to the next place.
gradient_group::place& gradient_group::land(std::size_t who, const float* from,
                                            std::size_t values) {
  context& with = *members_[who].with;
  way& w = ways_[who];
  place& to = w.places[w.turn];
  w.turn = (w.turn + 1) % w.places.size();
  wait(with.copy_out, to.taken);
  copy_between_devices(with.copy_out, to.memory.bytes(), members_.front().with->device, from,
                       with.device, values * sizeof(float));
  record(to.arrived, with.copy_out);
  return to;
}

void gradient_group::add_landed(place& from, std::size_t values, float* sum) {
  stream& on = members_.front().with->copy_out;
  wait(on, from.arrived);
  add_scaled(on, values, 1, sum, 1, from.memory.floats(), sum);
  record(from.taken, on);
}

/// Calls `done` in the reaper of the member's own device: the first device does not know that device's errors.
void gradient_group::tell_when_read(contribution& c) {
  context& with = *members_[c.who].with;
  if (c.who != 0 && !ways_[c.who].copies()) wait(with.copy_out, ways_[c.who].read);
  with.waits.after(with.copy_out, std::move(c.done));
}

void gradient_group::tell_left(const contribution& c) {
  const auto left = std::make_exception_ptr(std::runtime_error(
      "replica " + std::to_string(c.who) +
      " has gradients that are not added: another replica of the net, or this one, has ended"));
  context& with = *members_[c.who].with;
  try {
    with.waits.after(with.copy_out, [done = c.done, left](const std::exception_ptr& failed) {
      done(failed ? failed : left);
    });
  } catch (const error&) {  // the device is lost: its reaper has nothing to wait for
    c.done(std::current_exception());
  }
}

void gradient_group::leave() {
  const std::lock_guard lock(mutex_);
  left_ = true;
  std::set<std::shared_ptr<contribution>> open;
  for (gathered& all : gathered_)
    for (auto& part : all.parts)
      if (part != nullptr) open.insert(std::exchange(part, nullptr));
  for (const auto& c : open) tell_left(*c);
}

}  // namespace poseidon::gpu
