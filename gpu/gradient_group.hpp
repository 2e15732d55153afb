// gpu/gradient_group.hpp
//
// The gradients of several replicas of one net, added in the memory of the first one's device. Only the sum is copied to
// the host, so the bytes to the host do not grow with the number of replicas.
//
//   device of replica r    compute: backward ..made|   copy_out:  made> copy, place 0 |arrived   taken> copy, place 1 ...
//   device of the first    compute: backward ..made|   copy_out:  made> arrived> first += place 0 |taken, sum to host ...
//
// Gradients from another device land in two places of `piece_bytes`, in turns: a piece is copied while the one before is
// added and the one before that is copied to the host. Gradients of replicas on the first one's device are read in
// place. They are added in the order of the replicas, into the first one's gradient: the bits are those of the host's
// sum.
//
// Work for a parameter is enqueued when all replicas have enqueued their backward pass, because a stream does not wait
// for an event that is not recorded yet. So the last replica to contribute enqueues all of it, to the copy_out streams
// of all.
#pragma once
#include "gpu/context.hpp"
#include "models/net/net.hpp"

#include <array>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace poseidon::gpu {

/// The gradients of a net, by parameter, that a group can add; null for gradients that are not whole.
[[nodiscard]] std::vector<float*> addable(const net& n, std::vector<float*> gradients);

/// Any thread; one enqueues at a time.
class gradient_group {
 public:
  /// A replica, and its gradients by parameter of the net, in its device's memory; null, in all members alike: not
  /// added here. They live until leave().
  struct member {
    std::shared_ptr<context> with;
    std::vector<float*> gradients;
  };

  /// Large enough for a copy to run at its link's rate, small beside a net's memory. Not measured on a GPU yet.
  static constexpr std::size_t usual_piece_bytes = std::size_t{16} << 20;

  /// `home`: pinned memory for the sums, by parameter. Every device has access to the first one's memory.
  /// Errors   gpu::error (memory): the device, the memory that the places for its gradients need, and advice.
  gradient_group(std::vector<member> members, std::vector<std::span<float>> home,
                 const std::string& net, std::size_t piece_bytes = usual_piece_bytes);

  /// Called when the backward pass that computes these gradients of a member is enqueued, `made` is recorded behind it,
  /// and the member's copy_out stream waits for `made`; not again for a parameter before `done`. For the first member
  /// `done` means that the sums are on the host, for others that their gradients have been read: the next backward pass
  /// may overwrite them.
  /// Errors   gpu::error of the device that fails. Later failures of a member's device go to its `done`.
  void contribute(std::size_t who, std::span<const std::size_t> parameters, const event& made,
                  completion done);

  /// A member is about to end: nothing more is added, and every `done` that has not been called yet is called with an
  /// error. Work in the stream has read the member's memory when its copy_out stream has finished.
  void leave();

  /// From now on this sum is used on the device and not copied to the host. Before the first pass.
  void keep(std::size_t parameter) { home_.at(parameter) = {}; }

  [[nodiscard]] bool adds(std::size_t parameter) const {
    return members_.front().gradients[parameter] != nullptr;
  }

 private:
  /// Memory of the first device for a piece from another one.
  struct place {
    place(int first, int other, device_memory m)
        : memory(std::move(m)), arrived(other), taken(first) {}
    device_memory memory;
    event arrived, taken;
  };
  /// The way of a member's gradients to the first device.
  struct way {
    explicit way(int first) : read(first) {}
    [[nodiscard]] bool copies() const { return !places.empty(); }
    std::vector<place> places;  ///< none: the gradients are there already
    std::size_t turn = 0;
    event read;  ///< without places: the gradients have been added
  };
  struct contribution {
    std::size_t who = 0;
    const event* made = nullptr;
    std::size_t missing = 0;  ///< parameters whose sums are not enqueued
    completion done;
  };
  /// The contributions to one parameter in one pass.
  struct gathered {
    std::vector<std::shared_ptr<contribution>> parts;  ///< by member
    std::size_t here = 0;
  };

  void add(std::size_t parameter, const gathered& all);
  place& land(std::size_t who, const float* from, std::size_t values);
  void add_landed(place& from, std::size_t values, float* sum);
  void tell_when_read(contribution& c);
  void tell_left(const contribution& c);

  const std::vector<member> members_;
  std::vector<std::span<float>> home_;  // by parameter; empty: stays
  std::vector<std::size_t> values_;     // number of values, by parameter
  const std::size_t piece_;             // number of values
  std::vector<way> ways_;
  std::mutex mutex_;
  std::vector<gathered> gathered_;  // by parameter
  bool left_ = false;               // a member has ended
};

}  // namespace poseidon::gpu
