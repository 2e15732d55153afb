// models/device/device.hpp
//
// The contract between when (actors) and how (cpu/, gpu/). A device compiles a net into a replica, whose
// kernels an actor has executed by a stream. Nothing here knows of messages; nothing in actors/ knows of
// oneDNN or CUDA. Layouts, fusion, scratch memory and primitive caches are the replica's own business:
// outside it every value is float32 in Caffe's layout (row-major, NCHW, weights [out,in,...]).
#pragma once
#include "models/device/device_updates.hpp"
#include "models/device/factors.hpp"
#include "models/device/host_arithmetic.hpp"
#include "models/net/net.hpp"
#include "models/solver/solver_rule.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

/// Values in memory that a device may have chosen: see device::host_memory().
using host_values = std::pmr::vector<float>;

/// What a data layer delivers for one pass. Filled by data/, then immutable.
struct batch {
  std::uint64_t first_sample = 0;  ///< global index of tops[*][0]; rises over epochs, never repeats
  std::vector<host_values> tops;   ///< by top, Caffe's layout
  std::pmr::memory_resource* memory =
      std::pmr::get_default_resource();  ///< where new tops are to lie
};

/// One forward and backward over one micro-batch on one replica.
struct pass {
  std::uint64_t clock = 0;  ///< iteration; with seed, layer and sample it keys every random number
  std::uint64_t first_sample = 0;  ///< global index of the batch's first sample
  std::uint64_t seed = 0;
  /// Passes of this clock that come after this one, over all micro-batches, replicas and workers in
  /// the order in which their gradients are added.
  std::uint64_t passes_after = 0;
  /// When the layer gave this kernel to its stream (steady clock); 0: nobody says. A kernel whose turn came
  /// later than that began at once, however late its thread woke up. Only replay/ asks.
  std::int64_t issued_ns = 0;
  std::uint32_t micro_batch = 0;  ///< which of the clock's on this replica
};

/// One layer of one replica. Called by one thread at a time, always the same replica's stream.
class kernel {
 public:
  virtual ~kernel() = default;

  /// Data layers only: the values that the next forward() hands on. The caller keeps `input` alive until
  /// that forward() and the replica's last use of the tops have passed.
  virtual void feed(const batch& input);

  /// Writes the tops' data. Reads the bottoms' data and the parameters' current values.
  virtual void forward(const pass& p) = 0;

  /// Writes (never adds to) the diffs of the bottoms with propagate_down and the gradients of the
  /// parameters. The gradient of a parameter that several layers share is there when all of them have
  /// run, in whatever order: the same bits for every order.
  virtual void backward(const pass& p) = 0;

  /// InnerProduct layers of replica_options::by_factors only, right after backward() of the same pass: copies
  /// the factors of its weight gradient, u [rows, outputs] and v [rows, inputs] (models/device/factors.hpp). Where
  /// the pass has fewer rows than the net says, the rest is zero.
  virtual void factors(std::span<float> u, std::span<float> v);
};

/// Values of one parameter as its owner keeps them; read by every replica of the node.
/// The owner may move `values` to another buffer between passes and then raises `version`, so kernels
/// load both anew in each pass and repack private layouts when `version` differs from what they packed.
struct parameter_values {
  std::atomic<const float*> values{nullptr};
  std::atomic<std::uint64_t> version{0};
};

/// Copies of values from one memory layout to another, which a net whose layers agree does without.
struct reorder_count {
  std::uint64_t copies = 0, bytes = 0;
};

/// Called once, in a thread of the device's own, when what it was given for is over: with what has gone wrong, or
/// null. It may only hand on.
using completion = std::function<void(std::exception_ptr)>;

/// Values of blobs on their way to the host: replica::fetch().
class fetched_values {
 public:
  virtual ~fetched_values() = default;
  /// At most once.
  virtual void when_here(completion done) = 0;
  /// By blob as fetch() was asked, Caffe's layout. After `done`.
  [[nodiscard]] virtual std::vector<std::vector<float>> values() const = 0;
};

/// One copy of a net on one device.
///
/// On a device that goes on by itself (device::is_asynchronous()) kernels return when their work has been issued, and:
///   the stream's thread      calls kernels, then fetch() or keep() for what the kernel before has made or read
///   another thread           calls bring_gradients() of a layer after its backward() of a pass and before that of
///                            the next, which may begin when `done` has been called
///   a third                  calls bring_parameters() of a layer when no kernel that reads the values before is
///                            still to be issued
/// There kernels load parameters as they do elsewhere: whatever is newest when forward() is called.
class replica {
 public:
  virtual ~replica() = default;
  [[nodiscard]] virtual kernel& at(std::size_t layer) = 0;

  /// Host memory into which backward() writes the gradient of one parameter, Caffe's layout; summed
  /// over the samples of the batch as the loss layer normalised them. Empty in phase TEST. On a device that goes
  /// on by itself it is there after bring_gradients() or finish(); the sum of several replicas when bring_gradients()
  /// of all has been called and that of the first is over (device::join_gradients()).
  [[nodiscard]] virtual std::span<float> gradient(std::size_t parameter) = 0;

  /// The shape of a blob in the pass before; the net's, but behind a Filter the batch may be smaller.
  [[nodiscard]] virtual shape extents(std::size_t blob) const = 0;

  /// Blob contents in Caffe's layout, as many values as the net says; those behind a smaller batch's are
  /// zero when read and not used when written. Only while no kernel of this replica runs.
  virtual void read_data(std::size_t blob, std::span<float> to) const = 0;
  virtual void write_data(std::size_t blob, std::span<const float> from) = 0;
  virtual void read_diff(std::size_t blob, std::span<float> to) const = 0;
  virtual void write_diff(std::size_t blob, std::span<const float> from) = 0;

  /// Copies what backward() of the layer makes into gradient(), or to where factors() finds it, then calls `done`.
  /// Where gradient() is another replica's, `done` comes when it has been read.
  virtual void bring_gradients(std::size_t layer, completion done);
  /// The data of these blobs as the kernels issued so far make it. Only on devices that go on by themselves.
  [[nodiscard]] virtual std::shared_ptr<fetched_values> fetch(std::span<const std::size_t> blobs);
  /// Has the newest values of the layer's parameters copied to the device before forward() would.
  virtual void bring_parameters(std::size_t layer);
  /// Holds `what`, which kernels issued so far may still read, until they are over.
  virtual void keep(std::shared_ptr<const void> what);
  /// Waits until everything issued so far is over and all gradients are in gradient(). Outside of training.
  virtual void finish() {}

  /// What its kernels have reordered so far: blobs, and parameters that a kernel wants packed.
  [[nodiscard]] virtual reorder_count reorders() const { return {}; }

  /// Name of the first layer in net order that has a NaN or an infinity in a parameter or a top.
  /// Fusion may let a kernel stand for several layers; the name is then that of the first of them.
  [[nodiscard]] virtual std::optional<std::string> first_nonfinite() const = 0;
};

struct replica_options {
  int threads = 1;  ///< of the lane; 1 unless the caller wants a thread team
  /// Tests and debug_info: after each kernel the blobs are what its layer makes of them, and every diff can
  /// be read. Costs speed, and may round differently.
  bool keep_all_diffs = false;
  std::size_t index =
      0;  ///< which of the node's replicas; those of train and test nets share a stream
  double time_scale =
      1;  ///< devices that do not compute: how much longer than recorded kernels take
  /// By layer, or empty: layers whose backward() leaves the gradients of their parameters to whoever asks for
  /// factors(). They have no gradient().
  std::vector<bool> by_factors = {};
  /// Micro-batches of a clock whose gradients the replica adds, where device::adds_passes(): gradient() is the sum over
  /// the passes so far of the clock, and bring_gradients() is called after the last of them; for layers by factors after
  /// each. 1: each pass has its own.
  std::uint32_t passes = 1;
};

class device {
 public:
  virtual ~device() = default;
  [[nodiscard]] virtual std::string describe() const = 0;  ///< "cpu: 2 cores, AVX2, oneDNN 2.6.3"

  /// False for replay/: kernels only take time, look at no data, and do not mind the shapes of parameters.
  [[nodiscard]] virtual bool computes() const { return true; }

  /// True where kernels only issue their work, see replica.
  [[nodiscard]] virtual bool is_asynchronous() const { return false; }

  /// Can its replicas add the gradients of several passes where they are? See replica_options::passes.
  [[nodiscard]] virtual bool adds_passes() const { return false; }

  /// Memory on the host that this device copies from and to without help: for parameters and batches.
  [[nodiscard]] virtual std::shared_ptr<std::pmr::memory_resource> host_memory() const;

  /// How many of it make_replica() puts on a device each; 0: as many as the caller likes.
  [[nodiscard]] virtual std::uint32_t replicas() const { return 0; }

  /// The rate of reconstruct_gradient(), where the device has been told, or of the products of device_updates, which it has timed;
  /// others have to be timed. 0: nobody knows, so reconstruct_gradient() cannot be called and no layer may broadcast factors.
  [[nodiscard]] virtual std::optional<double> told_flop_s() const { return std::nullopt; }

  /// Seconds of a forward and a backward pass over the batch of `n`, where the device has been told.
  [[nodiscard]] virtual std::optional<double> told_pass_s(const net& /*n*/,
                                                          double /*time_scale*/) const {
    return std::nullopt;
  }

  /// Compiles `n`. `n` and what `parameters` point to outlive the replica; they are by index into
  /// n.parameters.
  /// Errors   spec_error naming the layer, for a type or an option that this device has no kernel for.
  [[nodiscard]] virtual std::unique_ptr<replica> make_replica(
      const net& n, std::span<const parameter_values* const> parameters,
      replica_options options) = 0;

  /// Has the gradients of a training net's replicas, of which none has computed yet, added where they are: from now on
  /// gradient() of the first is the sum over as many of the leading ones as this returns, in their order, and that of
  /// the others of these is empty. 1: none but its own. A device does this where replicas' memory can be reached from
  /// each other's, and not with replica_options::keep_all_diffs. A few parameters may be left out; the gradients of
  /// those come home from all replicas, as they do without.
  /// Errors   as make_replica(), for memory.
  [[nodiscard]] virtual std::size_t join_gradients(
      std::span<const std::shared_ptr<replica>> replicas);

  /// Has parameters of a training net's replicas, of which none has computed yet and which have been joined if they are
  /// to be, updated where they are: those of `wanted` whose gradients can be used there. Their gradient() is empty then.
  /// Null: none. Of several passes of a clock the replicas themselves add the gradients (replica_options::passes).
  /// Errors   as make_replica(), for memory.
  [[nodiscard]] virtual std::shared_ptr<device_updates> make_updates(
      std::span<const std::shared_ptr<replica>> replicas, const updates_wanted& wanted);

  [[nodiscard]] virtual bool supports(std::string_view layer_type) const = 0;

  /// Does it run layers of this type, but on the host, where each pass waits for their values?
  [[nodiscard]] virtual bool on_host(std::string_view layer_type) const {
    (void)layer_type;
    return false;
  }

  /// What it has found out by itself since it was asked last, to be read by its user.
  [[nodiscard]] virtual std::vector<std::string> take_remarks() { return {}; }

  /// For the threads of kernels, and for sums and updates on the host.
  [[nodiscard]] virtual std::shared_ptr<const host_arithmetic> arithmetic() const = 0;
};

}  // namespace poseidon
