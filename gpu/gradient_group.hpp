// gpu/gradient_group.hpp
//
// The gradients of several replicas of one net, added in the memory of the first one's device, so that only the sum
// comes home: bytes to the host do not grow with the number of replicas.
//
//   device of replica r    compute: backward ..made|   copy_out:  made> copy, place 0 |arrived   taken> copy, place 1 ...
//   device of the first    compute: backward ..made|   copy_out:  made> arrived> first += place 0 |taken, sum home ...
//
// Parts of a replica on another device land in two places of `piece_bytes`, in turns: the next piece is on its way
// while the one before is added and the one before that leaves. Replicas on the first one's own device are read where
// they lie. Added is in the order of the replicas, into the first one's gradient: the bits are those of the host's sum.
//
// Nothing is enqueued for a parameter before all replicas have said that their backward pass is: an event that is yet
// to be recorded holds nobody up. So whoever comes last enqueues all of it, to everybody's copy_out streams.
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

/// Those of the gradients of a net, by parameter, that a group can add; null instead of those that are not whole.
[[nodiscard]] std::vector<float*> addable(const net& n, std::vector<float*> gradients);

/// Threads: any; one enqueues at a time.
class gradient_group {
 public:
  /// A replica, and its gradients by parameter of the net, in its device's memory; null: not added here. The same ones
  /// for every member. They live until leave().
  struct member {
    std::shared_ptr<context> with;
    std::vector<float*> gradients;
  };

  /// Large enough for a copy to run at its link's rate, small beside what a net takes. Not measured on a GPU yet.
  static constexpr std::size_t usual_piece_bytes = std::size_t{16} << 20;

  /// `home`: pinned memory for the sums, by parameter. Every device has been told to reach the first one's.
  /// Errors   gpu::error (memory): how much the places of which device's gradients want, and what to try.
  gradient_group(std::vector<member> members, std::vector<std::span<float>> home,
                 const std::string& net, std::size_t piece_bytes = usual_piece_bytes);

  /// The backward pass that makes these gradients of a member is enqueued, `made` is recorded behind it, and the
  /// member's copy_out stream waits for that. Not again for a parameter before `done`: of the first member, the sums
  /// are at home; of others, theirs have been read. Either way the next backward pass may overwrite them then.
  /// Errors   gpu::error of whichever device it is. What has failed on a member's device later is told its `done`.
  void contribute(std::size_t who, std::span<const std::size_t> parameters, const event& made,
                  completion done);

  /// A member is about to end: nothing more is added, and every `done` that has not been called yet is called with an
  /// error. Work in the stream has read the member's memory when its copy_out stream has finished.
  void leave();

  /// From now on this sum is used where it is and does not come home. Before the first pass.
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
  /// How a member's gradients get to the first device.
  struct way {
    explicit way(int first) : read(first) {}
    [[nodiscard]] bool copies() const { return !places.empty(); }
    std::vector<place> places;  ///< none: they are there
    std::size_t turn = 0;
    event read;  ///< without places: they have been added
  };
  struct contribution {
    std::size_t who = 0;
    const event* made = nullptr;
    std::size_t missing = 0;  ///< parameters whose sums are not enqueued
    completion done;
  };
  /// Of one parameter and pass.
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
  std::vector<std::size_t> values_;     // by parameter
  const std::size_t piece_;             // values
  std::vector<way> ways_;
  std::mutex mutex_;
  std::vector<gathered> gathered_;  // by parameter
  bool left_ = false;               // a member has ended
};

}  // namespace poseidon::gpu
