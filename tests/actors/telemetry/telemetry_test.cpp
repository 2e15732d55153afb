#include "actors/telemetry/telemetry.hpp"

#include "messages/wire/codec.hpp"
#include "tests/actors/telemetry/view_rig.hpp"
#include "tests/folder.hpp"
#include "tests/sim.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <sys/resource.h>

using namespace poseidon;

namespace {

/// Keeps the lines of the log.
class warning_list : public progress {
 public:
  void trained(const iteration&, const std::vector<output_value>&) override {}
  void tested(std::size_t, std::uint64_t, const std::vector<double>&,
              const std::vector<output_value>&) override {}
  void snapshot(std::uint64_t, const std::string&, const std::string&) override {}
  void stepped(const step&) override {}
  void note(const std::string& text) override { notes.push_back(text); }
  void warning(const std::string& text) override { warnings.push_back(text); }
  void detail(const std::string&) override {}
  std::shared_ptr<void> working(long_task) override { return nullptr; }
  std::vector<std::string> notes, warnings;
};

struct telemetry_rig {
  test::sim sim;
  test::temporary_folder folder;
  std::shared_ptr<edge_book> edges = std::make_shared<edge_book>();
  std::shared_ptr<trace_log> trace = std::make_shared<trace_log>(true);
  std::shared_ptr<warning_list> display = std::make_shared<warning_list>();
  std::shared_ptr<cluster_view> view =
      std::make_shared<cluster_view>(edges, trace, std::make_shared<run_history>(display, 2));
  test::probe<send_frame> link = sim.listen<send_frame>();

  telemetry_setup setup(std::uint32_t self) {
    telemetry_setup s;
    s.self = seat_id{self};
    s.trace = trace;
    s.edges = edges;
    s.view = view;
    return s;
  }
  handle<telemetry> start(telemetry_setup s) {
    return sim.spawn<telemetry>("telemetry", std::move(s));
  }
};

std::string text_in(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t entries_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder),
                                                std::filesystem::directory_iterator()));
}

/// For this process, as a full disk: a write beyond `bytes` fails.
class small_disk {
 public:
  explicit small_disk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    auto limited = before_;
    limited.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~small_disk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  small_disk(const small_disk&) = delete;
  small_disk& operator=(const small_disk&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

}  // namespace

TEST_CASE("telemetry: writes the trace and the graph at the end") {
  telemetry_rig t;
  auto setup = t.setup(0);
  setup.trace_file = t.folder.path() / "trace.json";
  setup.graph_file = t.folder.path() / "graph.json";
  setup.recording = [](const cluster_view&) { return std::string("{\"x\":1}"); };
  auto layer = t.edges->open("layer conv1 [0]", "layer");
  layer->bind(1);
  t.edges->open("solver", "solver")->bind(2);
  layer->count(2, "outputs_ready", 12);
  t.trace->lane("stream compute [0]")->record({"conv1", span_phase::forward, 1000, 3000, 4});
  const auto actor = t.start(std::move(setup));
  t.sim.tell(actor, shut_down{});
  t.sim.settle();
  CHECK(t.display->warnings.empty());
  CHECK(text_in(t.folder.path() / "graph.json") ==
        "{\"actors\":[\n{\"name\":\"layer conv1 "
        "[0]\",\"type\":\"layer\"},\n{\"name\":\"solver\",\"type\":"
        "\"solver\"}\n],\"edges\":[\n{\"from\":\"layer conv1 [0]\",\"to\":\"solver\",\"message\":"
        "\"outputs_ready\",\"count\":1,\"bytes\":12}\n]}\n");
  const auto trace = text_in(t.folder.path() / "trace.json");
  CHECK(trace.find(
            "{\"ph\":\"X\",\"pid\":0,\"tid\":0,\"name\":\"conv1\",\"cat\":\"forward\",\"ts\":1,"
            "\"dur\":2,\"args\":{\"clock\":4}}") != std::string::npos);
  CHECK(trace.ends_with("\"poseidon\":{\"x\":1}}\n"));
}

TEST_CASE("telemetry: a disk that is full leaves the old trace and graph as they were, and warns") {
  telemetry_rig t;
  auto setup = t.setup(0);
  setup.trace_file = t.folder.write("trace.json", "the old trace");
  setup.graph_file = t.folder.write("graph.json", "the old graph");
  for (std::uint64_t i = 1; i < 100; ++i)
    t.edges->open("layer " + std::to_string(i) + " [0]", "layer")->bind(i);
  for (std::uint64_t i = 0; i < 100; ++i)
    t.trace->lane("stream compute [0]")->record({"conv1", span_phase::forward, 1000, 3000, i});
  const auto actor = t.start(std::move(setup));
  {
    const small_disk full(1024);
    t.sim.tell(actor, shut_down{});
    t.sim.settle();
  }
  CHECK(text_in(t.folder.path() / "trace.json") == "the old trace");
  CHECK(text_in(t.folder.path() / "graph.json") == "the old graph");
  CHECK(entries_in(t.folder.path()) == 2);
  REQUIRE(t.display->warnings.size() == 2);
  CHECK(t.display->warnings[0].find("trace.json: writing failed: File too large") !=
        std::string::npos);
  CHECK(t.display->warnings[1].find("graph.json: writing failed: File too large") !=
        std::string::npos);
}

TEST_CASE("telemetry: the node that shows the run asks the others, and takes what they answer") {
  telemetry_rig t;
  t.view->begin(test::two_workers(0));
  auto setup = t.setup(0);
  const auto actor = t.start(std::move(setup));
  connect_telemetry first;
  first.links = {{}, t.link.in};
  first.shows = true;
  first.epoch = 3;
  t.sim.tell(actor, first);
  t.sim.settle();
  REQUIRE(t.link.got->size() == 1);
  CHECK(std::holds_alternative<frames::watch>(t.link.got->front().header));
  CHECK(t.link.got->front().epoch == 3);  // it does not leave in another view
  t.sim.advance(std::chrono::milliseconds{1000});
  CHECK(t.link.got->size() == 2);

  test::view_rig there;
  there.view.begin(test::two_workers(1));
  (void)there.actor("solver", 1);
  there.view.sample();
  report_place from;
  const auto bytes = encode_report(there.view.report_since(from));
  report_arrived report;
  report.from = seat_id{1};
  report.packed = {bytes, std::span(*bytes)};
  t.sim.tell(actor, report);
  t.sim.tell(actor, report);  // the same names again do not fit what is known
  t.sim.settle();
  t.view->read([](const auto& s) {
    CHECK(s.workers.at(1).graph.actors.size() == 1);
    return 0;
  });
  REQUIRE(t.display->notes.size() == 1);
  CHECK(t.display->notes[0].find("the page does not show worker 1: report: first name") == 0);
  t.sim.tell(actor, shut_down{});
  t.sim.settle();
}

TEST_CASE("telemetry: a watched node answers while it is asked, one report at a time") {
  telemetry_rig t;
  t.view->begin(test::two_workers(1));
  auto setup = t.setup(1);
  const auto actor = t.start(std::move(setup));
  const auto other = t.sim.listen<send_frame>();
  t.sim.tell(actor, connect_telemetry{{t.link.in, {}, other.in}, t.link.in, false, true, 4});
  t.sim.settle();
  CHECK(t.link.got->empty());  // not asked yet
  t.sim.tell(actor, control_passed{worker_id{0}, frames::watch{now_ns(), 200}});
  t.sim.advance(std::chrono::milliseconds{1000});
  REQUIRE(t.link.got->size() == 1);
  CHECK(std::holds_alternative<frames::report>(t.link.got->front().header));
  CHECK(t.link.got->front().epoch == 0);  // in whichever view: the next one goes on where it ends
  t.sim.advance(std::chrono::milliseconds{1000});
  CHECK(t.link.got->size() == 1);  // the first one still waits in the link
  t.link.got->clear();
  t.sim.advance(std::chrono::milliseconds{1000});
  CHECK(t.link.got->size() == 1);
  CHECK(other.got->empty());  // reports go to the leader alone
  t.sim.tell(actor, shut_down{});
  t.sim.settle();
}

TEST_CASE(
    "telemetry: a watched node that comes to lead, and shows nothing, keeps no spans for anybody") {
  telemetry_rig t;
  t.view->begin(test::two_workers(1));
  const auto actor = t.start(t.setup(1));
  t.sim.tell(actor, connect_telemetry{{t.link.in, {}}, t.link.in, false, true});
  t.sim.settle();
  t.sim.tell(actor, connect_telemetry{{{}}, {}, false, true});  // all others have left
  t.sim.settle();
  t.trace->lane("stream compute [0]")->record({"conv1", span_phase::forward, 1000, 3000, 4});
  t.sim.advance(std::chrono::milliseconds{1000});
  std::size_t left = 0;
  t.trace->take_new([&](std::size_t, const std::string&, const trace_span&) { ++left; });
  CHECK(left == 0);
  t.sim.tell(actor, shut_down{});
  t.sim.settle();
}

TEST_CASE(
    "telemetry: when another node leads, it hears nothing until it asks, and then all from the "
    "beginning") {
  telemetry_rig t;
  t.view->begin(test::two_workers(1));
  t.edges->open("solver", "solver")->bind(1);
  const auto actor = t.start(t.setup(1));
  const auto next = t.sim.listen<send_frame>();
  const auto actors_told = [](const test::probe<send_frame>& link) {
    return decode_report(link.got->front().data.bytes).actors.size();
  };
  t.sim.tell(actor, connect_telemetry{{t.link.in, {}, next.in}, t.link.in, false, true});
  t.sim.tell(actor, control_passed{worker_id{0}, frames::watch{now_ns(), 200}});
  t.sim.advance(std::chrono::milliseconds{1000});
  REQUIRE(t.link.got->size() == 1);
  CHECK(actors_told(t.link) == 1);
  t.link.got->clear();
  t.sim.tell(actor, connect_telemetry{{{}, next.in}, next.in, false, true});
  t.sim.advance(std::chrono::milliseconds{1000});
  CHECK(next.got->empty());  // it may show nothing: then a report would be a bad frame
  t.sim.tell(actor, control_passed{worker_id{0}, frames::watch{now_ns(), 200}});
  t.sim.advance(std::chrono::milliseconds{1000});
  REQUIRE(next.got->size() == 1);
  CHECK(actors_told(next) == 1);
  CHECK(t.link.got->empty());
  t.sim.tell(actor, shut_down{});
  t.sim.settle();
}

TEST_CASE("telemetry: a leader that is alone asks nobody until another node joins it") {
  telemetry_rig t;
  t.view->begin(test::two_workers(0));
  const auto actor = t.start(t.setup(0));
  t.sim.tell(actor, connect_telemetry{{{}}, {}, true, false});
  t.sim.advance(std::chrono::milliseconds{3000});
  CHECK(t.link.got->empty());
  t.sim.tell(actor, connect_telemetry{{{}, t.link.in}, {}, true, false});
  t.sim.settle();
  CHECK(t.link.got->size() == 1);
  t.sim.tell(actor, shut_down{});
  t.sim.settle();
}
