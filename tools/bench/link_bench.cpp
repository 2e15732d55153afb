// tools/bench/link_bench.cpp
// Asks    How many bytes per second, and CPU seconds per GB, does a pair of network_links move over
//         loopback?
// Shapes  Chunks of 1 MiB and 64 KiB, from one process to another, one way, or both ways at the same time.
// Checks  the bytes of the last chunk received, and that every chunk came once.
// Run     tools/bench/link (interleaves it with iperf3), tools/bench/line_rate (the same on shaped lines), or
//         link_bench --chunk 1048576 --bytes 4e9 [--both]
//         --tls-cert FILE --tls-key FILE --tls-ca FILE: encrypted; tools/bench/tls compares
//         --listen 10.0.0.1 --peer-network /run/netns/x: the second process is in another network namespace
// Read    one line of JSON: bytes_per_s is one direction's; cpu_s_per_gb counts both processes and
//         all bytes.
#include "actors/links/network_link.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sched.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace poseidon;
using clock_type = std::chrono::steady_clock;

struct options {
  std::size_t chunk_bytes = 1 << 20;
  std::size_t bytes = std::size_t{4} << 30;
  std::size_t chunks = 16;  // in rotation: 1 stays in the cache, as iperf3's only buffer does
  bool both = false;
  std::string listen = "127.0.0.1", peer_network;
  tls_files tls;
  bool pooled = false;  // gradients into pooled buffers instead of parameters to their place
};

// Uses the chunks as training does: keeps a few in flight and counts those that arrived.
struct progress {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t received = 0, wanted = 0;
  bool lost = false;
};

class counter : public actor<counter> {
 public:
  static constexpr const char* type_name = "counter";
  using accepts = messages<chunk_landed, gradient_arrived, link_lost>;
  using sends = messages<>;
  counter(actor_context context, progress* p) : actor<counter>(context), progress_(p) {}
  void on(const chunk_landed&) { add(); }
  void on(const gradient_arrived&) { add(); }
  void on(const link_lost& m) {
    if (!m.on_purpose) std::fprintf(stderr, "link_bench: %s\n", m.why.c_str());
    const std::lock_guard lock(progress_->mutex);
    progress_->lost = true;
    progress_->changed.notify_all();
  }

 private:
  void add() {
    const std::lock_guard lock(progress_->mutex);
    if (++progress_->received == progress_->wanted) progress_->changed.notify_all();
  }
  progress* progress_;
};

struct store : landing {
  store(std::size_t chunks, std::size_t bytes) : chunk_bytes(bytes), memory(chunks * bytes) {}
  std::span<std::byte> place(chunk_id c, version_id) override {
    return std::span(memory).subspan(value(c) * chunk_bytes, chunk_bytes);
  }
  std::size_t chunk_bytes;
  std::vector<std::byte> memory;
};

struct config : caf::actor_system_config {
  config() {
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", std::size_t{1});
    set("logger.console", caf::atom("none"));
  }
};

double cpu_seconds(int who) {
  rusage u{};
  ::getrusage(who, &u);
  return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

// One process's end: sends `to_send` chunks, waits for `to_receive`. Returns the seconds until all
// had come or, for one that only sends, until the peer has closed.
double run_end(std::shared_ptr<tcp_socket> socket, unsigned self, const options& o,
               std::size_t to_send, std::size_t to_receive) {
  const auto chunks = o.chunks;
  config c;
  caf::actor_system system(c);
  edge_book book;
  progress p;
  p.wanted = to_receive;
  auto count = spawn<counter>(system, book, thread_kind::shared, "counter", &p);
  auto parameters = std::make_shared<store>(chunks, o.chunk_bytes);
  link_options l;
  l.socket = std::move(socket);
  l.address = "loopback";
  l.binding.self = {seat_id{self}, 0};
  l.binding.peer = seat_id{1 - self};
  l.binding.worker = worker_id{1 - self};
  l.binding.limits.chunk_values.assign(chunks,
                                       static_cast<std::uint32_t>(o.chunk_bytes / sizeof(float)));
  l.binding.landing = parameters;
  l.binding.routes.gather = [count](chunk_id) -> port<chunk_landed> { return count; };
  l.binding.routes.shard = count;
  l.binding.routes.lost = count;
  auto counters = l.counters;
  auto link = open_link(system, book, "network_link", std::move(l));

  auto data = std::make_shared<std::vector<std::byte>>(chunks * o.chunk_bytes, std::byte{0x5a});
  const auto start = clock_type::now();
  constexpr std::size_t window = 64 << 20;  // in the link's queue
  for (std::size_t i = 0; i < to_send; ++i) {
    const auto at =
        std::span<const std::byte>(*data).subspan(i % chunks * o.chunk_bytes, o.chunk_bytes);
    const chunk_id chunk{static_cast<std::uint32_t>(i % chunks)};
    frame_header h = frames::fresh_parameters{chunk, version_id{i}};
    if (o.pooled) h = frames::push_gradient{chunk, clock_id{i}};
    tell_from_outside(link, send_frame{std::move(h), {data, at}, 1});
    // Looked at rarely: this thread is no part of what is measured.
    while (i % 64 == 63 && i * o.chunk_bytes > counters->bytes_out + window) ::usleep(2000);
  }
  {
    std::unique_lock lock(p.mutex);
    p.changed.wait(lock, [&] { return p.received >= to_receive || p.lost; });
  }
  const double received_after = std::chrono::duration<double>(clock_type::now() - start).count();
  if (p.received != to_receive ||
      (to_receive > 0 && !o.pooled && parameters->memory.back() != std::byte{0x5a} &&
       to_receive >= chunks)) {
    std::fprintf(stderr, "link_bench: %zu chunks came, %zu were sent\n", p.received, to_receive);
    std::_Exit(1);
  }
  tell_from_outside(link, close_link{});
  std::unique_lock lock(p.mutex);
  p.changed.wait(lock, [&] { return p.lost; });
  const double closed_after = std::chrono::duration<double>(clock_type::now() - start).count();
  lock.unlock();
  caf::anon_send_exit(count.untyped(), caf::exit_reason::user_shutdown);
  return to_receive > 0 ? received_after : closed_after;
}

options parse(int argc, char** argv) {
  options o;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if (a == "--both")
      o.both = true;
    else if (a == "--pooled")
      o.pooled = true;
    else if (a == "--listen" && i + 1 < argc)
      o.listen = argv[++i];
    else if (a == "--peer-network" && i + 1 < argc)
      o.peer_network = argv[++i];
    else if (a == "--tls-cert" && i + 1 < argc)
      o.tls.certificate = argv[++i];
    else if (a == "--tls-key" && i + 1 < argc)
      o.tls.key = argv[++i];
    else if (a == "--tls-ca" && i + 1 < argc)
      o.tls.authority = argv[++i];
    else if (a == "--chunk" && i + 1 < argc)
      o.chunk_bytes = std::strtoull(argv[++i], nullptr, 10);
    else if (a == "--chunks" && i + 1 < argc)
      o.chunks = std::strtoull(argv[++i], nullptr, 10);
    else if (a == "--bytes" && i + 1 < argc)
      o.bytes = static_cast<std::size_t>(std::strtod(argv[++i], nullptr));
    else {
      std::fprintf(
          stderr,
          "usage: link_bench [--chunk BYTES] [--chunks N] [--bytes BYTES] [--both] [--pooled] "
          "[--listen ADDRESS] [--peer-network FILE] [--tls-cert FILE --tls-key FILE --tls-ca "
          "FILE]\n");
      std::exit(2);
    }
  }
  return o;
}

void enter_network(const std::string& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0 && ::setns(fd, CLONE_NEWNET) == 0) return;
  std::perror(("link_bench: cannot enter " + file).c_str());
  std::_Exit(1);
}

void encrypt(tcp_socket& socket, const options& o, tls_side side) {
  const auto tls = tls_of_links(o.tls);
  if (!tls) return;
  socket.use_tls(tls, side);
  socket.shake_tls(clock_type::now() + std::chrono::seconds{10});
}

}  // namespace

int main(int argc, char** argv) {
  const auto o = parse(argc, argv);
  const auto frames = std::max<std::size_t>(1, o.bytes / o.chunk_bytes);
  tcp_listener listener({o.listen, 0});
  const auto child = ::fork();  // before any thread exists
  if (child == 0) {
    if (!o.peer_network.empty()) enter_network(o.peer_network);
    auto s = connect_to({o.listen, listener.port()}, std::chrono::seconds{10});
    encrypt(*s, o, tls_side::dials);
    run_end(std::move(s), 1, o, o.both ? frames : 0, frames);
    return 0;
  }
  auto s = listener.accept(std::chrono::seconds{10});
  if (!s) return 1;
  encrypt(*s, o, tls_side::accepts);
  const double seconds = run_end(std::move(s), 0, o, frames, o.both ? frames : 0);
  int status = 0;
  ::waitpid(child, &status, 0);
  const double one_way = static_cast<double>(frames * o.chunk_bytes);
  const double gb = one_way * (o.both ? 2 : 1) / 1e9;
  std::printf(
      R"({"bench":"link","chunk_bytes":%zu,"chunks":%zu,"directions":%d,"payload":"%s","bytes":%.0f,"seconds":%.3f,)"
      R"("bytes_per_s":%.4g,"cpu_s_per_gb":%.3f})"
      "\n",
      o.chunk_bytes, o.chunks, o.both ? 2 : 1, o.pooled ? "push_gradient" : "fresh_parameters",
      one_way, seconds, one_way / seconds,
      (cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN)) / gb);
  return status == 0 ? 0 : 1;
}
