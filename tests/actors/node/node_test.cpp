#include "tests/actors/node/node_rig.hpp"

using namespace poseidon;
using test::node_rig;

TEST_CASE("node: a node that is alone trains to the last clock and ends with 0") {
  node_rig t;
  t.first(1);
  t.sim.settle();
  CHECK(t.nodes[0]->error() == "");
  CHECK(t.nodes[0]->exit_code() == 0);
  CHECK(t.nodes[0]->display->done == t.clocks);
  CHECK(t.nodes[0]->display->snapshots.size() == 1);
  CHECK(t.folder.snapshot_files() == 2);  // parameters and solver state
}

TEST_CASE(
    "node: a node at its end waits longer than its links may wait for a peer that is frozen") {
  node_setup setup;
  for (const auto limit : {std::chrono::milliseconds{700}, std::chrono::milliseconds{60000}}) {
    setup.cluster.silence_limit = limit;
    CHECK(patience_at_end(setup) > limit + std::chrono::seconds{5});
    CHECK(patience_at_end(setup) > link_options{}.stall_limit + std::chrono::seconds{5});
  }
}

TEST_CASE("node: nodes find each other, train every clock and end together") {
  for (const std::size_t workers : {2, 3}) {
    CAPTURE(workers);
    node_rig t;
    t.cluster(workers);
    t.sim.settle();
    for (const auto& n : t.nodes) {
      CHECK(n->error() == "");
      CHECK(n->exit_code() == 0);
      CHECK(n->display->said("is done, at version 4"));
    }
    CHECK(t.nodes[0]->display->said("all are ready; sending first values"));
    CHECK(t.folder.snapshot_files() == 2);
  }
}

TEST_CASE(
    "node: the test after the last iteration is shown, in whatever order its reports and the end "
    "arrive") {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    node_rig t;
    t.more_solver = "test_iter: 3 test_interval: 4 test_initialization: false ";
    t.cluster(3);
    t.go_on_anyhow(random);
    for (const auto& n : t.nodes) REQUIRE(n->exit_code() == 0);
    CHECK(t.nodes[0]->display->tests == 1);
  }
}

TEST_CASE("node: routes change while two nodes train, and both train to the end") {
  node_rig t;
  t.clocks = 6;
  t.routes = {route_option::kind::listed, "test", {{"ip1", route::factor_broadcast, 3, 1}}};
  t.cluster(2);
  t.sim.settle();
  for (const auto& n : t.nodes) {
    CHECK(n->error() == "");
    CHECK(n->exit_code() == 0);
    CHECK(n->display->said("routes: from iteration 3 on: ip1 to factor_broadcast"));
    CHECK(n->display->said("is done, at version 6"));
  }
}

TEST_CASE("node: the lowest survivor writes what it has when a peer is lost") {
  node_rig t;
  t.clocks = 1000000;
  t.cluster(3);
  REQUIRE(t.until_clock(3));
  for (const std::uint32_t other : {0, 1}) {
    t.sim.tell(t.nodes[other]->network->links.at(2), test::cut_line{"reset"});
    t.sim.tell(t.nodes[2]->network->links.at(other), test::cut_line{"reset"});
  }
  t.sim.settle();
  for (const std::size_t survivor : {0, 1}) {
    CHECK(t.nodes[survivor]->exit_code() == 3);
    CHECK(t.nodes[survivor]->error().starts_with(
        "the connection to worker 2 (c:7600) is lost: reset. "));
  }
  const auto path = t.nodes[0]->display->snapshots.front();
  const auto stem = path.substr(0, path.find(".caffemodel"));
  CHECK(t.nodes[0]->error().ends_with(
      "reset. Kept: weights of iteration " + stem.substr(stem.rfind('_') + 1) + " (" + path +
      "); solver state is gone: resume begins momentum and the count of iterations anew. Go on "
      "with: poseidon-node --solver s --nodes 3 --weights " +
      path));
  CHECK(t.nodes[1]->error().ends_with(
      "reset. worker 0 (a:7600) keeps what was trained, and says how to go on."));
  CHECK(t.nodes[0]->display->snapshots.size() == 1);
  CHECK(t.nodes[1]->display->snapshots.empty());
  CHECK(t.nodes[2]->exit_code() == 3);
  CHECK(t.folder.snapshot_files() == 1);  // parameters: the solver state was lost with the peer
}

TEST_CASE(
    "node: a side branch of the net that is ahead takes nothing from what is kept when a peer is "
    "lost") {
  node_rig t;
  t.clocks = 1000;
  t.net = R"(
    name: "two losses"
    layer { name: "data" type: "DummyData" top: "x" top: "y"
      dummy_data_param { shape { dim: 4 dim: 6 } shape { dim: 4 dim: 3 }
        data_filler { type: "gaussian" std: 1 } data_filler { type: "uniform" } } }
    layer { name: "side" type: "InnerProduct" bottom: "x" top: "side"
      inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
    layer { name: "side_loss" type: "EuclideanLoss" bottom: "side" bottom: "y" top: "side_loss" }
    layer { name: "deep1" type: "InnerProduct" bottom: "x" top: "deep1"
      inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
    layer { name: "deep2" type: "InnerProduct" bottom: "deep1" top: "deep2"
      inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "deep2" bottom: "y" top: "loss" }
  )";
  // Worker 0 never gets version 4 and later of deep2.
  std::size_t held = 0;
  t.wiring->on_line = [&](const std::shared_ptr<test::line>& made) {
    made->mischief = [&held](int to, test::frame_in f) {
      const auto* fresh = std::get_if<frames::fresh_parameters>(&f.header);
      const bool of_deep2 = fresh != nullptr && value(fresh->chunk) >= 4;
      if (to != 1 || !of_deep2 || value(fresh->version) < 4) return std::vector{std::move(f)};
      ++held;
      return std::vector<test::frame_in>{};
    };
  };
  t.cluster(2);
  t.sim.settle();
  REQUIRE(held > 0);
  t.sim.tell(t.nodes[0]->network->links.at(1), test::cut_line{"reset"});
  t.sim.tell(t.nodes[1]->network->links.at(0), test::cut_line{"reset"});
  t.sim.settle();
  CHECK(t.nodes[0]->exit_code() == 3);
  CHECK(t.nodes[0]->error().find("is lost: reset. Kept: weights of iteration 3 ") !=
        std::string::npos);
}

TEST_CASE("node: an actor that dies ends the run with its words, on every node") {
  node_rig t;
  t.clocks = 1000000;
  t.cluster(2);
  t.nodes[0]->display->on_step = [](const progress::step& s) {
    if (s.done == 2) throw std::runtime_error("the terminal is on fire");
  };
  t.sim.settle();
  CHECK(t.nodes[0]->exit_code() == 1);
  CHECK(t.nodes[0]->error().find("the terminal is on fire") != std::string::npos);
  CHECK(t.nodes[1]->exit_code() == 3);
  CHECK(t.nodes[1]->error().find("worker 0 (a:7600) said goodbye: ") == 0);
  CHECK(t.nodes[1]->error().find("the terminal is on fire") != std::string::npos);
}

TEST_CASE("node: an interrupt of either node ends both after a clock, with a snapshot") {
  for (const std::size_t victim : {0, 1}) {
    CAPTURE(victim);
    node_rig t;
    t.clocks = 1000000;
    t.cluster(2);
    REQUIRE(t.until_clock(3));
    t.sim.tell(t.nodes[victim]->it, interrupted{2});
    t.sim.settle();
    CHECK(t.nodes[victim]->exit_code() == 130);
    CHECK(t.nodes[1 - victim]->exit_code() == 0);
    CHECK(t.nodes[0]->display->said("worker " + std::to_string(victim) + " got SIGINT"));
    CHECK(t.folder.snapshot_files() == 2);
  }
}

TEST_CASE("node: an interrupt before training ends the node, and its peer hears why") {
  node_rig t;
  t.cluster(3);
  t.sim.tell(t.nodes[0]->it, interrupted{15});
  t.sim.settle();
  CHECK(t.nodes[0]->exit_code() == 143);
  CHECK(t.nodes[1]->exit_code() == 3);
  CHECK(t.nodes[1]->error().find("said goodbye: worker 0 got SIGTERM") != std::string::npos);
}

TEST_CASE("node: a joiner that finds no node says so and exits with 2") {
  node_rig t;
  t.joiner("b");
  t.sim.settle();
  CHECK(t.nodes[0]->exit_code() == 2);
  CHECK(t.nodes[0]->error() == "no node listens at a:7600");
}

// -- what goes wrong while it ends ----------------------------------------------------------------------

TEST_CASE("node: a node whose checkpointer dies after a peer was lost ends all the same") {
  node_rig t;
  t.clocks = 1000000;
  t.cluster(2);
  REQUIRE(t.until_clock(3));
  t.nodes[0]->display->on_line = [](const std::string& line) {
    if (line.starts_with("checkpointer: copied")) throw std::bad_alloc();
  };
  t.kill(1);
  t.sim.settle();
  CHECK(t.nodes[0]->exit_code() == 3);
  CHECK(t.nodes[0]->error() == "the connection to worker 1 (b:7600) is lost: reset");
  CHECK(t.nodes[0]->display->said("while it ends: "));
  CHECK(t.nodes[0]->display->said("checkpointer: std::bad_alloc"));
  CHECK(t.folder.snapshot_files() == 0);
}

TEST_CASE("node: a second error while the snapshot of the first is written is told, not lost") {
  node_rig t;
  t.clocks = 1000000;
  t.cluster(2);
  REQUIRE(t.until_clock(3));
  t.sim.tell(t.nodes[0]->network->links.at(1), test::cut_line{"reset"});
  REQUIRE(t.until([&] { return t.nodes[0]->display->said("link lost"); }));
  t.sim.tell(t.nodes[0]->it, training_failed{"the disk is gone, too", 1});
  t.sim.settle();
  CHECK(t.nodes[0]->exit_code() == 3);
  CHECK(t.nodes[0]->display->said("while it ends: the disk is gone, too"));
  CHECK(t.folder.snapshot_files() == 1);
}

TEST_CASE("node: what one of its own handlers throws ends the run with its words") {
  node_rig t;
  t.first(2).network->on_open = [](const std::string& name) {
    throw std::runtime_error("no thread is left for " + name);
  };
  t.sim.settle();
  t.joiner("b");
  t.sim.settle();
  CHECK(t.nodes[0]->exit_code() == 1);
  CHECK(t.nodes[0]->error() == "node: no thread is left for network_link 1");
}

// -- what a peer may not say ----------------------------------------------------------------------------

TEST_CASE("node: a peer that lets the leader begin to train is given up by name") {
  node_rig t;
  t.first(2);
  t.sim.settle();
  std::shared_ptr<tcp_socket> socket;
  link_identity peer;
  peer.listen_address = "b:7600";
  const auto line = t.wiring->dial("a:7600", peer, socket);
  t.sim.settle();
  REQUIRE(t.nodes[0]->display->said("waiting for the others"));
  t.sim.tell(t.nodes[0]->network->links.at(1),
             test::frame_in{{seat_id{1}}, frames::start_training{}, {}});
  t.sim.settle();
  CHECK(t.nodes[0]->exit_code() == 3);
  CHECK(t.nodes[0]->error() ==
        "closed the link to worker 1 (b:7600): worker 1 (b:7600) sent a bad frame: start_training: "
        "sender is worker 1, expected worker 0, the leader");
  // The peer hears it in the goodbye.
  REQUIRE(!line->sides[0].waiting.empty());
  const auto* bye = std::get_if<frames::goodbye>(&line->sides[0].waiting.back().header);
  REQUIRE(bye != nullptr);
  CHECK(bye->reason.find("start_training: sender is worker 1") != std::string::npos);
}

TEST_CASE("node: only the leader can end training, hold it, or drain it") {
  const std::vector<frame_header> said{frames::stop_after{version_id{3}, "because"},
                                       frames::hold_training{}, frames::drain{clock_id{1000}}};
  for (const auto& h : said) {
    CAPTURE(kind_name(h));
    node_rig t;
    t.clocks = 1000000;
    t.cluster(3);
    REQUIRE(t.until_clock(2));
    t.sim.tell(t.nodes[1]->network->links.at(2), test::frame_in{{seat_id{2}, 1}, h, {}});
    t.sim.settle();
    CHECK(t.nodes[1]->exit_code() == 3);
    CHECK(t.nodes[1]->error().find("worker 2 (c:7600) sent a bad frame: ") != std::string::npos);
    CHECK(t.nodes[1]->error().find(": sender is worker 2, expected worker 0, the leader") !=
          std::string::npos);
    for (const auto& n : t.nodes) CHECK(n->result);
  }
}

TEST_CASE("node: a frame in another stage than an honest peer says it ends that link") {
  node_rig t;
  t.clocks = 1000000;
  t.cluster(2);
  REQUIRE(t.until_clock(2));
  t.sim.tell(t.nodes[1]->network->links.at(0),
             test::frame_in{{seat_id{0}, 1}, frames::start_training{}, {}});
  t.sim.settle();
  CHECK(t.nodes[1]->exit_code() == 3);
  CHECK(t.nodes[1]->error().find(
            "start_training: stage is training, expected waiting, resuming, parting") !=
        std::string::npos);
  CHECK(t.nodes[0]->exit_code() == 3);
}

TEST_CASE("node: a peer that says goodbye while all train, without a reason, has failed") {
  node_rig t;
  t.clocks = 1000000;
  t.cluster(3);
  REQUIRE(t.until_clock(2));
  for (const std::size_t hears : {0, 1})
    t.sim.tell(t.nodes[hears]->network->links.at(2),
               test::frame_in{{seat_id{2}, 1}, frames::goodbye{}, {}});
  t.sim.settle();
  for (const std::size_t hears : {0, 1}) {
    CHECK(t.nodes[hears]->exit_code() == 3);
    CHECK(t.nodes[hears]->error().find(
              "worker 2 (c:7600) said goodbye before the end of the run, without a reason") == 0);
  }
  CHECK(t.folder.snapshot_files() == 1);  // what the lowest survivor has
}

TEST_CASE("node: what a peer says once too often, or of an impossible clock, ends that link") {
  struct lie {
    std::size_t hears;
    frame_header said;
    std::string answer;
  };
  constexpr std::uint64_t far = ~std::uint64_t{0};
  const std::vector<lie> lies{
      {0, frames::worker_done{version_id{1}}, ""},
      {0, frames::worker_done{version_id{1}},
       "worker_done: times in a view is 2 times, expected once at most"},
      {0, frames::worker_paused{clock_id{far}, false}, "worker_paused: clock is "},
      {0, frames::worker_report{clock_id{900000}, -1, 1, {1, 1}, 0, 0, 0},
       "worker_report: clock is 900000, expected at most "},
      {1, frames::stop_after{version_id{far}, ""}, "stop_after: version is "},
      {0, frames::history{chunk_id{0}, 0, version_id{2}}, "history: "},
  };
  for (std::size_t l = 1; l < lies.size(); ++l) {
    CAPTURE(lies[l].answer);
    node_rig t;
    t.clocks = 1000000;
    t.more_solver = "display: 1";
    t.cluster(2);
    REQUIRE(t.until_clock(2));
    const auto& link = t.nodes[lies[l].hears]->network->links.at(1 - lies[l].hears);
    const frame_writer from{seat_id{static_cast<std::uint32_t>(1 - lies[l].hears)}, 1};
    if (l == 1) t.sim.tell(link, test::frame_in{from, lies[0].said, {}});
    t.sim.tell(link, test::frame_in{from, lies[l].said, {}});
    t.sim.settle();
    CHECK(t.nodes[lies[l].hears]->exit_code() == 3);
    CHECK(t.nodes[lies[l].hears]->error().find(lies[l].answer) != std::string::npos);
  }
}

TEST_CASE(
    "node: a run whose peer is alive and sends no values ends, and names who has been quiet") {
  for (const bool told_to_end : {false, true}) {
    CAPTURE(told_to_end);
    node_rig t;
    t.clocks = 1000000;
    t.progress_limit = std::chrono::milliseconds{1};
    std::shared_ptr<test::line> between;
    t.wiring->on_line = [&](const std::shared_ptr<test::line>& made) { between = made; };
    t.cluster(2);
    REQUIRE(t.until_clock(3));
    between->mischief = [](int, test::frame_in f) {
      return has_payload(f.header) ? std::vector<test::frame_in>{} : std::vector{std::move(f)};
    };
    // Both, as Ctrl-C in a terminal: which of the two gives up first is a matter of microseconds.
    for (const auto& n : t.nodes)
      if (told_to_end) t.sim.tell(n->it, interrupted{15});
    CHECK(t.until_ended());
    const auto& error = t.nodes[0]->error() + t.nodes[1]->error();
    CHECK(error.find("training has stood still for ") != std::string::npos);
    CHECK(error.find(told_to_end ? "as the run has been told to end" : "--progress-limit") !=
          std::string::npos);
    CHECK(error.find("has sent no") != std::string::npos);
    CHECK(error.find("No actor of this node has a message to handle") != std::string::npos);
  }
}

TEST_CASE("node: whoever waits for other nodes to come waits as long as they take") {
  node_rig t;
  t.progress_limit = std::chrono::milliseconds{1};
  t.first(2);
  for (int i = 0; i < 100; ++i) t.sim.advance(std::chrono::seconds{5});
  CHECK(!t.nodes[0]->result);
}
