// apps/node/verb_table.cpp - poseidon-node's verbs: part of verbs.hpp.
#include "apps/node/verbs.hpp"

namespace poseidon::app {

namespace {

constexpr verb verbs[] = {
    {"train", "the default", train_verb},
    {"check", "all that training looks at before it begins; trains nothing", check_verb},
    {"test", "a model's outputs, averaged over batches", test_verb},
    {"time", "milliseconds and GFLOP/s of each layer, and the peak of memory", time_verb},
    {"classify", "the most probable classes of pictures", classify_verb},
    {"device-query", "what this machine offers to --devices", device_query_verb},
    {"status", "how far a run is, and how its nodes are", status_verb},
    {"members", "which nodes take part in a run, where they are, and which one leads",
     members_verb},
    {"leave", "asks a node to leave its run, which goes on without it", leave_verb},
    {"go-on", "tells a paused node that those it does not hear have ended", go_on_verb},
};

}  // namespace

std::span<const verb> all_verbs() {
  return verbs;
}

}  // namespace poseidon::app
