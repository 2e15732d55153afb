// gpu/cuda/runtime.cpp - gpu/runtime/runtime.hpp with CUDA's runtime.
#include "gpu/runtime/runtime.hpp"

#include "gpu/cuda/check.hpp"

#include <cublas_v2.h>
#include <cudnn_version.h>
#include <utility>

namespace poseidon::gpu {

using cuda::check;

namespace {

std::string version_text(int v) {
  return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10);
}

/// CUDA's calls are about the calling thread's device, and any actor may run in any thread.
void enter(int device) {
  thread_local int entered = -1;
  if (entered == device) return;
  check(cudaSetDevice(device), "choose the device", device);
  entered = device;
}

}  // namespace

std::string describe_runtime() {
  int driver = 0;
  (void)cudaDriverGetVersion(&driver);
  return "CUDA " + version_text(CUDART_VERSION) + ", cuDNN " + std::to_string(CUDNN_MAJOR) + "." +
         std::to_string(CUDNN_MINOR) + "." + std::to_string(CUDNN_PATCHLEVEL) + ", driver " +
         (driver == 0 ? std::string("none") : version_text(driver));
}

int device_count() {
  int n = 0;
  const cudaError_t answer = cudaGetDeviceCount(&n);
  if (answer == cudaErrorInsufficientDriver) {
    int driver = 0;
    (void)cudaDriverGetVersion(&driver);
    throw error(error_kind::absent, static_cast<int>(answer),
                driver == 0
                    ? "no NVIDIA driver answers on this machine. Install one for CUDA " +
                          version_text(CUDART_VERSION) + " or newer, or train with --devices cpu"
                    : "the NVIDIA driver is for CUDA " + version_text(driver) +
                          ", this program needs one for CUDA " + version_text(CUDART_VERSION) +
                          ". Install a newer driver, or train with --devices cpu");
  }
  if (answer == cudaErrorNoDevice || (answer == cudaSuccess && n == 0))
    throw error(error_kind::absent, static_cast<int>(answer),
                "the NVIDIA driver sees no GPU on this machine. Train with --devices cpu");
  if (answer != cudaSuccess)
    throw error(error_kind::absent, static_cast<int>(answer),
                std::string("the NVIDIA driver does not work: ") + cudaGetErrorString(answer));
  return n;
}

device_properties properties(int device) {
  cudaDeviceProp p{};
  check(cudaGetDeviceProperties(&p, device), "ask for its properties", device);
  enter(device);
  device_properties d{p.name, p.major, p.minor, p.multiProcessorCount, 0, 0};
  check(cudaMemGetInfo(&d.free_bytes, &d.total_bytes), "ask for its memory", device);
  return d;
}

struct stream::state {
  int device;
  cudaStream_t stream = nullptr;
};

stream::stream(int device, stream_use use) : state_(new state{device}) {
  enter(device);
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "ask for priorities", device);
  check(cudaStreamCreateWithPriority(&state_->stream, cudaStreamNonBlocking,
                                     use == stream_use::compute ? greatest : least),
        "make a stream", device);
}
stream::~stream() {
  if (state_ == nullptr || state_->stream == nullptr) return;
  (void)cudaStreamSynchronize(state_->stream);
  (void)cudaStreamDestroy(state_->stream);
}
stream::stream(stream&&) noexcept = default;
stream& stream::operator=(stream&& o) noexcept {
  std::swap(state_, o.state_);
  return *this;
}
int stream::device() const {
  return state_->device;
}
void* stream::native() const {
  return state_->stream;
}

struct event::state {
  int device;
  cudaEvent_t event = nullptr;
};

event::event(int device, event_use use) : state_(new state{device}) {
  enter(device);
  // Blocking: a thread that waits must not spin beside threads that compute.
  const unsigned timing = use == event_use::timing ? cudaEventDefault : cudaEventDisableTiming;
  const unsigned waiting = use == event_use::order ? cudaEventDefault : cudaEventBlockingSync;
  check(cudaEventCreateWithFlags(&state_->event, timing | waiting), "make an event", device);
}
event::~event() {
  if (state_ != nullptr && state_->event != nullptr) (void)cudaEventDestroy(state_->event);
}
event::event(event&&) noexcept = default;
event& event::operator=(event&& o) noexcept {
  std::swap(state_, o.state_);
  return *this;
}

namespace {

/// Its device becomes that of the calling thread.
cudaStream_t native(stream& s) {
  enter(s.device());
  return static_cast<cudaStream_t>(s.native());
}

}  // namespace

void record(event& e, stream& s) {
  check(cudaEventRecord(e.get().event, native(s)), "record an event", s.device());
}

void wait(stream& s, const event& e) {
  check(cudaStreamWaitEvent(native(s), e.get().event), "wait for an event", s.device());
}

bool has_passed(const event& e) {
  const cudaError_t answer = cudaEventQuery(e.get().event);
  if (answer == cudaErrorNotReady) {
    (void)cudaGetLastError();  // else this thread's next check would find it
    return false;
  }
  check(answer, "execute what was enqueued", e.get().device);
  return true;
}

void synchronise(const event& e) {
  check(cudaEventSynchronize(e.get().event), "execute what was enqueued", e.get().device);
}

double milliseconds_between(const event& from, const event& to) {
  enter(to.get().device);
  float ms = 0;
  check(cudaEventElapsedTime(&ms, from.get().event, to.get().event),
        "tell the time between two events", to.get().device);
  return double{ms};
}

device_memory::device_memory(int device, std::size_t bytes) : device_(device), size_(bytes) {
  enter(device);
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "allocate memory", device);
  bytes_ = static_cast<std::byte*>(memory);
}
device_memory::~device_memory() {
  if (bytes_ != nullptr) (void)cudaFree(bytes_);
}
device_memory::device_memory(device_memory&& o) noexcept
    : device_(o.device_),
      bytes_(std::exchange(o.bytes_, nullptr)),
      size_(std::exchange(o.size_, 0)) {}
device_memory& device_memory::operator=(device_memory&& o) noexcept {
  std::swap(device_, o.device_);
  std::swap(bytes_, o.bytes_);
  std::swap(size_, o.size_);
  return *this;
}

pinned_memory::pinned_memory(std::size_t bytes) : size_(bytes) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), "allocate pinned memory", 0);
  bytes_ = static_cast<std::byte*>(memory);
}
pinned_memory::~pinned_memory() {
  if (bytes_ != nullptr) (void)cudaFreeHost(bytes_);
}
pinned_memory::pinned_memory(pinned_memory&& o) noexcept
    : bytes_(std::exchange(o.bytes_, nullptr)), size_(std::exchange(o.size_, 0)) {}
pinned_memory& pinned_memory::operator=(pinned_memory&& o) noexcept {
  std::swap(bytes_, o.bytes_);
  std::swap(size_, o.size_);
  return *this;
}

void copy_to_device(stream& s, void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, native(s)), "copy to the device",
        s.device());
}

void copy_to_host(stream& s, void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, native(s)), "copy to the host",
        s.device());
}

void copy_within_device(stream& s, void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, native(s)),
        "copy within the device", s.device());
}

bool enable_copies(int device, int other) {
  if (device == other) return true;
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, device, other), "ask for access to another GPU", device);
  if (can == 0) return false;
  enter(device);
  const cudaError_t answer = cudaDeviceEnablePeerAccess(other, 0);
  if (answer == cudaErrorPeerAccessAlreadyEnabled)
    (void)cudaGetLastError();
  else
    check(answer, "enable access to another GPU", device);
  return true;
}

void copy_between_devices(stream& s, void* to, int to_device, const void* from, int from_device,
                          std::size_t bytes) {
  check(cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, native(s)),
        "copy between devices", s.device());
}

void clear(stream& s, void* to, std::size_t bytes) {
  check(cudaMemsetAsync(to, 0, bytes, native(s)), "clear memory", s.device());
}

// Declared in gpu/runtime/launch_cuda.cuh, which only nvcc reads.
void enter_device(const stream& s);
void check_launch(const stream& s);

void enter_device(const stream& s) {
  enter(s.device());
}
void check_launch(const stream& s) {
  check(cudaGetLastError(), "launch a kernel", s.device());
}

}  // namespace poseidon::gpu
