#include "actors/core/actor_names.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

TEST_CASE("actor_names: every name that is made is read back, and looks as users know it") {
  const std::pair<actor_name, std::string> names[] = {
      {{.kind = "layer", .layer = "conv1", .replica = 0}, "layer conv1 [0]"},
      {{.kind = "layer", .layer = "conv1", .test_net = 0, .replica = 3}, "test layer conv1 [3]"},
      {{.kind = "data_source", .layer = "data", .test_net = 12, .replica = 1},
       "test 12 data_source data [1]"},
      {{.kind = "gradient_push", .layer = "inception/fc2"}, "gradient_push inception/fc2"},
      {{.kind = "factor_broadcast", .layer = "ip1"}, "factor_broadcast ip1"},
      {{.kind = "stream", .layer = "compute", .replica = 10}, "stream compute [10]"},
      {{.kind = "copy_out", .replica = 2}, "copy_out [2]"},
      {{.kind = "network_link", .worker = 7}, "network_link 7"},
      {{.kind = "network_link", .worker = 7, .receives = true}, "network_link 7 in"},
      {{.kind = "server_shard"}, "server_shard"},
  };
  for (const auto& [name, text] : names) {
    CAPTURE(text);
    CHECK(to_string(name) == text);
    CHECK((parse_actor_name(text) == name));
  }
  CHECK(layer_name("conv1", 3, 0) == "test layer conv1 [3]");
  CHECK(source_name("data", 1, 12) == "test 12 data_source data [1]");
  CHECK(replica_name("stream copy_in", 0) == "stream copy_in [0]");
  CHECK(exchange_name("factor_broadcast", "ip1") == "factor_broadcast ip1");
  CHECK(receiver_name(link_name(7)) == "network_link 7 in");
}

TEST_CASE("actor_names: a layer may be called like anything else") {
  for (const std::string layer :
       {"layer [0]", "a b", "data_source x", "1", "test layer y [2]", " in", "x in"}) {
    CAPTURE(layer);
    for (const std::int32_t test_net : {-1, 0, 2}) {
      CHECK(parse_actor_name(layer_name(layer, 4, test_net)).layer == layer);
      CHECK(parse_actor_name(layer_name(layer, 4, test_net)).test_net == test_net);
      CHECK(parse_actor_name(source_name(layer, 4, test_net)).kind == "data_source");
    }
    CHECK(parse_actor_name(exchange_name("gradient_push", layer)).layer == layer);
  }
  CHECK(parse_actor_name("network_link").kind == "network_link");
  CHECK_FALSE(parse_actor_name("network_link x").worker.has_value());
  CHECK(parse_actor_name("something else").kind == "something else");
}
