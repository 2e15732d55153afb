// Solver files: what is refused and how that is said, which nets a solver names, its rates.
#include "models/solver/solver_file.hpp"

#include "tests/folder.hpp"
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace poseidon;

namespace {

const std::string a_net =
    test::input("data", {2, 4}) +
    test::layer("ip", "InnerProduct", "data", "ip", "inner_product_param { num_output: 3 }") +
    test::layer("loss", "Reduction", "ip", "loss", "loss_weight: 1");

/// The error of reading a solver of this text, without "solver.prototxt" at its beginning.
std::string mistake(const std::string& text) {
  const test::temporary_folder folder;
  folder.write("net.prototxt", a_net);
  const auto path = folder.write("solver.prototxt", text);
  try {
    (void)read_solver(path);
    return {};
  } catch (const spec_error& e) {
    const std::string what = e.what();
    return what.substr(what.find("solver.prototxt") + std::string("solver.prototxt").size());
  }
}

const std::string good = "net: \"net.prototxt\"\nbase_lr: 0.1\n";

::caffe::SolverParameter policy(const std::string& name) {
  ::caffe::SolverParameter solver;
  solver.set_lr_policy(name);
  solver.set_base_lr(0.5f);
  solver.set_gamma(0.1f);
  solver.set_power(0.75f);
  solver.set_stepsize(100);
  solver.set_max_iter(1000);
  return solver;
}

}  // namespace

TEST_CASE("solver_file: a mistake is named with its line, the word and the nearest known one") {
  CHECK(mistake(good + "lr_policy: \"linear\"\n") ==
        ":3: lr_policy \"linear\" is none of Caffe's. It can be fixed, step, exp, inv, multistep, "
        "poly, sigmoid.");
  CHECK(mistake(good + "lr_policy: \"fixde\"\n") ==
        ":3: lr_policy \"fixde\" is none of Caffe's. Did you mean \"fixed\"?");
  CHECK(mistake(good) ==
        ":2: lr_policy is missing. It can be fixed, step, exp, inv, multistep, poly, sigmoid.");
  CHECK(mistake(good + "lr_policy: \"fixed\"\ntype: \"Adamm\"\n") ==
        ":4: type \"Adamm\" is none of Caffe's. Did you mean \"Adam\"?");
  CHECK(mistake(good + "lr_policy: \"step\" gamma: 0.5\n") ==
        ":3: lr_policy \"step\" needs a stepsize above 0, here it is 0.");
  CHECK(mistake(good + "lr_policy: \"fixed\" weight_decay: 0.1 regularization_type: \"L3\"\n") ==
        ":3: regularization_type \"L3\" is none of Caffe's. It can be L1, L2.");
  CHECK(mistake(good + "lr_policy: \"fixed\"\n\nmomentum: 0.9 type: \"AdaGrad\"\n") ==
        ":5: momentum is 0.9, but AdaGrad has none. Delete it, or use type: \"SGD\".");
  CHECK(mistake(good + "lr_policy: \"fixed\"\nmomentums: 0.9\n") ==
        ":4: SolverParameter has no field \"momentums\". Did you mean \"momentum\"?");
  CHECK(mistake(good + "lr_policy: \"fixed\" type: \"Adam\"\nsolver_type: SGD\n") ==
        ":4: both type: \"Adam\" and the older solver_type: SGD are given. Keep type.");
  CHECK(mistake(good + "lr_policy: \"fixed\"\niter_size: 0\n") ==
        ":4: iter_size is 0, it must be at least 1.");
  CHECK(mistake(good + "lr_policy: \"fixed\"\nposeidon { staleness: 101 }\n") ==
        ":4: staleness is 101, it can be 0 to 100: every iteration of it costs a node the memory "
        "of the "
        "parameters and gradients once more.");
}

TEST_CASE(
    "solver_file: exactly one net to train, one test_iter per test net, and an interval to test "
    "at") {
  CHECK(mistake("base_lr: 0.1 lr_policy: \"fixed\"") ==
        ": it names no net to train. Give one of net, net_param, train_net, train_net_param.");
  CHECK(
      mistake(good + "lr_policy: \"fixed\"\ntrain_net: \"net.prototxt\"\n") ==
      ":4: it names 2 nets to train. Give only one of net, net_param, train_net, train_net_param.");
  CHECK(mistake("train_net: \"net.prototxt\"\ntest_net: \"net.prototxt\" base_lr: 1 lr_policy: "
                "\"fixed\"") ==
        ":2: it has 1 test net but 0 test_iter. Give one test_iter per test net.");
  CHECK(
      mistake(good + "lr_policy: \"fixed\"\ntest_iter: 3\n") ==
      ":4: it has a test net, but its test_interval is 0. Say every how many iterations to test.");
  const auto missing = mistake("base_lr: 0.1 lr_policy: \"fixed\"\nnet: \"no_such.prototxt\"\n");
  CHECK(missing.find(":2: net \"no_such.prototxt\": there is no such file, neither in ") == 0);
  CHECK(missing.find("has it") == std::string::npos);
}

TEST_CASE(
    "solver_file: a net that is meant from a folder above the solver's is not read, and the "
    "message names that folder") {
  const test::temporary_folder folder;
  std::filesystem::create_directories(folder.path() / "models/mine");
  (void)folder.write("models/mine/net.prototxt", a_net);
  const auto solver =
      folder.write("models/mine/solver.prototxt",
                   "net: \"models/mine/net.prototxt\" base_lr: 1 lr_policy: \"fixed\"");
  CHECK_THROWS_WITH_AS(
      (void)read_solver(solver),
      doctest::Contains((folder.path().string() + " has it: start the program there").c_str()),
      spec_error);
}

TEST_CASE(
    "solver_file: a net file beside the solver is found, and its own state joins the solver's") {
  const test::temporary_folder folder;
  folder.write("net.prototxt", "state { level: 1 stage: \"a\" }\n" + a_net);
  const auto solver = read_solver(
      folder.write("s.prototxt", good + "lr_policy: \"fixed\" test_interval: 5 test_iter: 2 "
                                        "test_iter: 3 train_state { stage: \"b\" }\n"
                                        "test_state { stage: \"c\" } test_state { level: 7 }"));
  CHECK(solver.train_state.phase == ::caffe::TRAIN);
  CHECK(solver.train_state.level == 1);
  CHECK(solver.train_state.stages == std::vector<std::string>{"a", "b"});
  REQUIRE(solver.test_nets.size() == 2);
  CHECK(solver.test_states[0].phase == ::caffe::TEST);
  CHECK(solver.test_states[0].stages == std::vector<std::string>{"a", "c"});
  CHECK(solver.test_states[1].level == 7);
  CHECK(solver.test_nets[1].layer_places[1].line == 3);
  CHECK(solver.spec.snapshot_prefix() == (folder.path() / "s").string());

  SUBCASE("and travels in one message to a node that has no files") {
    const auto told = resolve_solver(self_contained(solver), {"from the cluster", 0});
    CHECK(told.train_state.stages == solver.train_state.stages);
    CHECK(told.train_state.level == 1);
    REQUIRE(told.test_nets.size() == 2);
    CHECK(told.test_states[0].stages == solver.test_states[0].stages);
    CHECK(told.test_states[1].level == 7);
    CHECK(build_net(told.train_net, {told.train_state, {}, 1}).layers.size() == 3);
  }
}

TEST_CASE("solver_file: an inline net keeps its line numbers") {
  CHECK(mistake("base_lr: 1 lr_policy: \"fixed\"\nnet_param {\n\n layer { name: \"a\" type: "
                "\"ReLU\" }\n layers { } }") ==
        ":5: the net has both layer { } (V2) and layers { } (V1). Write all of them as layer { }.");
}

TEST_CASE("learning_rate: each policy gives the value of its formula") {
  CHECK(learning_rate(policy("fixed"), 999) == 0.5f);
  CHECK(learning_rate(policy("step"), 99) == 0.5f);
  CHECK(learning_rate(policy("step"), 100) == doctest::Approx(0.05));
  CHECK(learning_rate(policy("step"), 299) == doctest::Approx(0.005));
  CHECK(learning_rate(policy("exp"), 3) == doctest::Approx(0.0005));
  CHECK(learning_rate(policy("inv"), 10) == doctest::Approx(0.5 * std::pow(2.0, -0.75)));
  CHECK(learning_rate(policy("poly"), 500) == doctest::Approx(0.5 * std::pow(0.5, 0.75)));
  CHECK(learning_rate(policy("poly"), 1001) == 0);
  CHECK(learning_rate(policy("sigmoid"), 100) == doctest::Approx(0.25));
}

TEST_CASE("learning_rate: a cosine from base_lr to lr_min, in place of Caffe's policy") {
  auto solver = policy("fixed");
  auto& ours = *solver.mutable_poseidon();
  ours.set_lr_policy("cosine");
  ours.set_lr_min(0.1f);
  CHECK(learning_rate(solver, 0) == 0.5f);
  CHECK(learning_rate(solver, 500) == doctest::Approx(0.3));
  CHECK(learning_rate(solver, 250) == doctest::Approx(0.1 + 0.4 * (1 + std::sqrt(0.5)) / 2));
  CHECK(learning_rate(solver, 1000) == 0.1f);
  CHECK(learning_rate(solver, 5000) == 0.1f);
}

TEST_CASE("learning_rate: a warm-up rises to the policy, which counts from iteration 0") {
  auto solver = policy("step");
  solver.mutable_poseidon()->set_warmup_iter(4);
  CHECK(learning_rate(solver, 0) == 0.125f);
  CHECK(learning_rate(solver, 1) == 0.25f);
  CHECK(learning_rate(solver, 3) == 0.5f);
  CHECK(learning_rate(solver, 4) == 0.5f);
  CHECK(learning_rate(solver, 100) == doctest::Approx(0.05));
  solver.mutable_poseidon()->set_warmup_from(0.6f);
  CHECK(learning_rate(solver, 0) == doctest::Approx(0.5 * 0.7));
  CHECK(learning_rate(solver, 3) == 0.5f);
  solver.set_stepsize(2);
  CHECK(learning_rate(solver, 2) == doctest::Approx(0.05 * 0.9));
}

TEST_CASE("solver_file: the learning rates of poseidon { } are checked, too") {
  const auto ours = [](const std::string& fields) {
    return mistake(good + "max_iter: 9\nposeidon { " + fields + " }\n");
  };
  CHECK(ours("lr_policy: 'cosine' lr_min: 0.1 warmup_iter: 2 warmup_from: 0.5").empty());
  CHECK(ours("lr_policy: 'cosin'").find(":4: poseidon { lr_policy: \"cosin\" } can only be") == 0);
  CHECK(ours("lr_policy: 'cosine' lr_min: 0.2").find(":4: lr_min is 0.2, it can be 0 to base_lr") ==
        0);
  CHECK(mistake(good + "poseidon { lr_policy: 'cosine' }").find("needs a max_iter above 0") !=
        std::string::npos);
  CHECK(mistake(good + "lr_policy: 'cosine'")
            .find(":3: lr_policy \"cosine\" is none of Caffe's but") == 0);
  CHECK(mistake(good + "lr_policy: 'fixed' poseidon { warmup_iter: 3 warmup_from: 1.5 }")
            .find(":3: warmup_from is 1.5, it can be 0 to 1") == 0);
  CHECK(mistake(good + "lr_policy: 'fixed' poseidon { warmup_from: 0.5 }")
            .find(":3: warmup_from is given without warmup_iter") == 0);
  CHECK(mistake(good + "lr_policy: 'fixed' poseidon { keep_best: 'acc' }")
            .find(":3: keep_best \"acc\" needs tests") == 0);
}

TEST_CASE(
    "learning_rate: multistep changes at each stepvalue and takes one step per iteration, as "
    "Caffe") {
  auto solver = policy("multistep");
  for (const int value : {0, 10, 10}) solver.add_stepvalue(value);
  CHECK(learning_rate(solver, 0) == doctest::Approx(0.05));
  CHECK(learning_rate(solver, 9) == doctest::Approx(0.05));
  CHECK(learning_rate(solver, 10) == doctest::Approx(0.005));
  CHECK(learning_rate(solver, 11) == doctest::Approx(0.0005));
}

TEST_CASE("current_step: counts as Caffe's files do, for the policies that take steps") {
  auto solver = policy("step");
  CHECK(current_step(solver, 99) == 0);
  CHECK(current_step(solver, 250) == 2);
  solver = policy("multistep");
  for (const int value : {3, 5, 5}) solver.add_stepvalue(value);
  CHECK(current_step(solver, 2) == 0);
  CHECK(current_step(solver, 4) == 1);
  CHECK(current_step(solver, 5) == 2);  // one step in each iteration, even where two are due
  CHECK(current_step(solver, 6) == 3);
  CHECK(current_step(policy("poly"), 500) == 0);
}

TEST_CASE("solver_file: weights may be several, in one word or more, and have to be there") {
  CHECK(split_paths("a") == std::vector<std::filesystem::path>{"a"});
  CHECK(split_paths(" a/b c , d,, ") == std::vector<std::filesystem::path>{"a/b c", "d"});
  CHECK(split_paths("").empty());
  const test::temporary_folder folder;
  folder.write("net.prototxt", a_net);
  for (const char* name : {"a", "b", "c"}) folder.write(name, "");
  const std::string fixed = "lr_policy: \"fixed\"\n";
  const auto solver = read_solver(
      folder.write("solver.prototxt", good + fixed + "weights: \"a, b\" weights: \"c\""));
  REQUIRE(solver.weights.size() == 3);
  CHECK(solver.weights[1] == folder.path() / "b");
  CHECK(self_contained(solver).weights_size() == 0);
  CHECK(mistake(good + fixed + "weights: \"gone.caffemodel\"\n")
            .find(":4: weights \"gone.caffemodel\": there is no such file") == 0);
}

TEST_CASE("rule_of: the solver's words become the rule") {
  ::caffe::SolverParameter solver;
  solver.set_type("Adam");
  solver.set_momentum(0.9f);
  solver.set_regularization_type("L1");
  const auto rule = rule_of(solver);
  CHECK(rule.kind == rule_kind::adam);
  CHECK(rule.momentum == 0.9f);
  CHECK(rule.momentum2 == 0.999f);
  CHECK(rule.decay_norm == regularizer::l1);
  CHECK(history_count(rule.kind) == 2);
}
