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
#include "models/fingerprint.hpp"
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

/// The input of a data layer for one pass. data/ fills it; then it is immutable.
struct batch {
  std::uint64_t first_sample = 0;  ///< global index of tops[*][0]; rises over epochs, never repeats
  std::vector<host_values> tops;   ///< by top, Caffe's layout
  /// Memory for new tops.
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();
};

/// One forward and backward over one micro-batch on one replica.
struct pass {
  std::uint64_t clock = 0;  ///< iteration; with seed, layer and sample it keys every random number
  std::uint64_t first_sample = 0;  ///< global index of the batch's first sample
  std::uint64_t seed = 0;
  /// Passes of this clock that come after this one, over all micro-batches, replicas and workers in
  /// the order in which their gradients are added.
  std::uint64_t passes_after = 0;
  /// When the layer gave this kernel to its stream (steady clock); 0: unknown. replay/ takes the later of this time and
  /// the end of the kernel before for the kernel's begin, however late its thread woke up.
  std::int64_t issued_ns = 0;
  std::uint32_t micro_batch = 0;  ///< which of the clock's on this replica
};

/// One layer of one replica. Called by one thread at a time, always the same replica's stream.
class kernel {
 public:
  virtual ~kernel() = default;

  /// Data layers only: the values that the next forward() writes to the tops. The caller keeps `input` alive until the
  /// replica has used the tops of that forward() for the last time.
  virtual void feed(const batch& input);

  /// Writes the tops' data. Reads the bottoms' data and the parameters' current values.
  virtual void forward(const pass& p) = 0;

  /// Writes (never adds to) the diffs of the bottoms with propagate_down and the gradients of the
  /// parameters. The gradient of a parameter that several layers share is complete when all of them have
  /// run. They may run in any order: the bits are the same.
  virtual void backward(const pass& p) = 0;

  /// InnerProduct layers of replica_options::by_factors only, right after backward() of the same pass: copies
  /// the factors of its weight gradient, u [rows, outputs] and v [rows, inputs] (models/device/factors.hpp). Where
  /// the pass has fewer rows than the net says, the rest is zero.
  virtual void factors(std::span<float> u, std::span<float> v);
};

/// Values of one parameter as its owner keeps them; read by every replica of the node.
/// The owner may move `values` to another buffer between passes and then raises `version`, so kernels
/// load both in each pass, and pack private layouts again when `version` differs from the packed one.
struct parameter_values {
  std::atomic<const float*> values{nullptr};
  std::atomic<std::uint64_t> version{0};
};

/// Copies of values from one memory layout to another, which a net whose layers agree does without.
struct reorder_count {
  std::uint64_t copies = 0, bytes = 0;
};

/// Called once, in a thread of the device's own, when the work that it was given for has finished: with an error, or
/// null. It may only pass this on.
using completion = std::function<void(std::exception_ptr)>;

/// Values of blobs that are copied to the host: replica::fetch().
class fetched_values {
 public:
  virtual ~fetched_values() = default;
  /// At most once.
  virtual void when_here(completion done) = 0;
  /// By blob, in the order of fetch(), Caffe's layout. After `done`.
  [[nodiscard]] virtual std::vector<std::vector<float>> values() const = 0;
};

/// One copy of a net on one device.
///
/// On an asynchronous device (device::is_asynchronous()) kernels return when their work has been issued, and:
///   the stream's thread      calls kernels, then fetch() or keep() for the blobs that the kernel has written or read
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
  /// over the samples of the batch as the loss layer normalised them. Empty in phase TEST. On an asynchronous device it is
  /// complete after bring_gradients() or finish(); the sum of several replicas (device::join_gradients()) is complete when
  /// bring_gradients() has been called for all and has finished for the first.
  [[nodiscard]] virtual std::span<float> gradient(std::size_t parameter) = 0;

  /// The shape of a blob in the pass before; the net's, but behind a Filter the batch may be smaller.
  [[nodiscard]] virtual shape extents(std::size_t blob) const = 0;

  /// Blob contents in Caffe's layout, with the size that the net says. The values behind a smaller batch's are zero when
  /// read and ignored when written. Only while no kernel of this replica runs.
  virtual void read_data(std::size_t blob, std::span<float> to) const = 0;
  virtual void write_data(std::size_t blob, std::span<const float> from) = 0;
  virtual void read_diff(std::size_t blob, std::span<float> to) const = 0;
  virtual void write_diff(std::size_t blob, std::span<const float> from) = 0;

  /// Copies the gradients that backward() of the layer computes to gradient(), and its factors to memory for factors();
  /// then calls `done`. Where gradient() is another replica's, `done` is called when this replica's part has been read.
  virtual void bring_gradients(std::size_t layer, completion done);
  /// The data of these blobs after the kernels issued so far. Only on asynchronous devices.
  [[nodiscard]] virtual std::shared_ptr<fetched_values> fetch(std::span<const std::size_t> blobs);
  /// Has the newest values of the layer's parameters copied to the device before forward() would.
  virtual void bring_parameters(std::size_t layer);
  /// Holds `what`, which kernels issued so far may still read, until they have finished.
  virtual void keep(std::shared_ptr<const void> what);
  /// Waits until all kernels issued so far have finished; gradients stay where they are. Outside of training, to time layers.
  virtual void finish_kernels() {}
  /// Waits until all work issued so far has finished and all gradients are in gradient(). Outside of training.
  virtual void finish() {}

  /// The copies of its kernels so far from one layout to another: of blobs, and of parameters that a kernel packs.
  [[nodiscard]] virtual reorder_count reorders() const { return {}; }

  /// Name of the first layer in net order that has a NaN or an infinity in a parameter or a top.
  /// Fusion may let a kernel stand for several layers; the name is then that of the first of them.
  [[nodiscard]] virtual std::optional<std::string> first_nonfinite() const = 0;
};

struct replica_options {
  int threads = 1;  ///< threads per kernel
  /// For tests and debug_info: after each kernel the blobs hold exactly its layer's results, and every diff can be read.
  /// Costs speed, and may round differently.
  bool keep_all_diffs = false;
  /// The place among the node's replicas; those of train and test nets share a stream.
  std::size_t index = 0;
  /// For devices that do not compute: kernels take this many times their recorded time.
  double time_scale = 1;
  /// By layer, or empty: layers whose backward() leaves the gradients of their parameters to the caller of factors().
  /// They have no gradient().
  std::vector<bool> by_factors = {};
  /// Micro-batches of a clock whose gradients the replica adds, where device::adds_passes(): gradient() is the sum over
  /// the clock's passes so far, and bring_gradients() is called after the last of them; for layers by factors after each.
  /// 1: each pass has a gradient of its own.
  std::uint32_t passes = 1;
};

class device {
 public:
  virtual ~device() = default;
  [[nodiscard]] virtual std::string describe() const = 0;  ///< "cpu: 2 cores, AVX2, oneDNN 2.6.3"

  /// By what its results may differ from those of a device of another machine; empty: they have none that matter.
  [[nodiscard]] virtual fingerprint traits() const { return {}; }

  /// False for replay/: kernels only take time, look at no data, and do not mind the shapes of parameters.
  [[nodiscard]] virtual bool computes() const { return true; }

  /// True where kernels only issue their work, see replica.
  [[nodiscard]] virtual bool is_asynchronous() const { return false; }

  /// Can its replicas add the gradients of several passes on the device? See replica_options::passes.
  [[nodiscard]] virtual bool adds_passes() const { return false; }

  /// Memory on the host that this device copies from and to without the host's help: for parameters and batches.
  [[nodiscard]] virtual std::shared_ptr<std::pmr::memory_resource> host_memory() const;

  /// The number of replicas that make_replica() puts on a device of their own each; 0: any number.
  [[nodiscard]] virtual std::uint32_t replicas() const { return 0; }

  /// The rate of reconstruct_gradient() where it was given to the device, or of the products of device_updates, which the
  /// device has timed. None: the caller has to time it. 0: the rate is unknown, so reconstruct_gradient() cannot be
  /// called and no layer may broadcast factors.
  [[nodiscard]] virtual std::optional<double> told_flop_s() const { return std::nullopt; }

  /// Seconds of a forward and a backward pass over the batch of `n`, where they were given to the device.
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

  /// Has the gradients of a training net's replicas, of which none has computed yet, added on the device. Let n be the
  /// result: from now on gradient() of the first replica is the sum over the first n, in their order, and gradient() of
  /// the other n - 1 is empty. n = 1: each replica has its own. A device does this where replicas have access to each
  /// other's memory, and not with replica_options::keep_all_diffs. A few parameters may be left out; their gradients are
  /// copied to the host from all replicas.
  /// Errors   as make_replica(), for memory.
  [[nodiscard]] virtual std::size_t join_gradients(
      std::span<const std::shared_ptr<replica>> replicas);

  /// Has parameters of a training net's replicas, of which none has computed yet, updated on the device: those of `wanted`
  /// whose gradients can be used there. Their gradient() is empty then. join_gradients() comes before. Null: none. The
  /// replicas themselves add the gradients of several passes of a clock (replica_options::passes).
  /// Errors   as make_replica(), for memory.
  [[nodiscard]] virtual std::shared_ptr<device_updates> make_updates(
      std::span<const std::shared_ptr<replica>> replicas, const updates_wanted& wanted);

  [[nodiscard]] virtual bool supports(std::string_view layer_type) const = 0;

  /// Does it run layers of this type on the host, where each pass waits for their values?
  [[nodiscard]] virtual bool on_host(std::string_view layer_type) const {
    (void)layer_type;
    return false;
  }

  /// Remarks for the user since the last call.
  [[nodiscard]] virtual std::vector<std::string> take_remarks() { return {}; }

  /// For the threads of kernels, and for sums and updates on the host.
  [[nodiscard]] virtual std::shared_ptr<const host_arithmetic> arithmetic() const = 0;
};

}  // namespace poseidon
