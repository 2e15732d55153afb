// apps/node/option_rules.cpp - options that contradict or need each other: part of option_table.hpp.
#include "apps/node/option_table.hpp"

namespace poseidon::app {

namespace {

using enum option_rule::kind;

constexpr option_rule rules[] = {
    {"--witness", needs, "--join",
     "a witness joins a run, and begins none. Give it the address of any node of the run."},
    {"--join --solver", needs, "--listen",
     "a node that has both joins the run at --join, or begins it where there is none, and then the "
     "others join here. Without --solver everything comes from the node that it joins.",
     "--witness"},
    {"--nodes!=1", needs, "--listen", "that is the address that the other nodes join.",
     "--explain-routes"},
    {"--views", needs, "--listen", "other nodes join there."},
    {"--batch-share!=equal", needs, "--nodes!=1", "shares are of several nodes, two or more."},
    {"--explain-routes", needs, "--solver --nodes!=1",
     "routes lead from node to node, so there are two or more."},
    {"--web-token-file", needs, "--web",
     "it says who may read that page. Give --web, or leave out the file."},
    {"--tls-cert", needs, "--tls-key --tls-ca",
     "both sides of a link prove who they are. Give all three on every node, or none."},
    {"--tls-key", needs, "--tls-cert --tls-ca",
     "both sides of a link prove who they are. Give all three on every node, or none."},
    {"--tls-ca", needs, "--tls-cert --tls-key",
     "both sides of a link prove who they are. Give all three on every node, or none."},

    {"--weights", excludes, "--snapshot",
     "a snapshot names its own weights. Give --snapshot to go on with a run, --weights to start "
     "one from its weights."},
    {"--devices=replay*", excludes, "--weights",
     "sleeping layers train no model. Leave out one of the two."},
    {"--devices=replay*", excludes, "--snapshot",
     "sleeping layers train no model. Leave out one of the two."},
    {"--devices=replay*", excludes, "--math!=auto",
     "sleeping layers multiply nothing. Leave out one of the two."},
    {"--join", excludes, "--devices=replay:*,*",
     "the first node's words time, bytes and fifo hold for all. Leave them out behind the file.",
     "--solver"},
    {"--gpu=*", excludes, "--devices=*", "both name devices. Give one of them."},
    {"--autotune", excludes, "--math=fp32",
     "that promises the same bits in every run, and what is measured to be the fastest way is "
     "another one in another run. Use --math tf32 or bf16, or leave --autotune out."},
    {"--own-data", excludes, "--batch-share!=equal",
     "a node with a larger share would go through its own part of the data faster than the others "
     "through theirs. Leave out one of the two."},
    {"--global-batch=keep", excludes, "--batch-share!=equal",
     "as nodes join and leave, all take equal parts. Leave out one of the two."},
    {"--global-batch=keep", excludes, "--own-data",
     "as nodes join and leave, each would go through its own part of the data at another pace. "
     "Leave out one of the two."},
    {"--rank", excludes, "--routes=ps",
     "no layer goes by low rank then. Leave out one of the two, or give --routes lowrank."},
    {"--rank", excludes, "--routes=sfb",
     "no layer goes by low rank then. Leave out one of the two, or give --routes lowrank."},
    {"--explain-routes", excludes, "--batch-share!=equal",
     "it reckons with nodes that are alike. Leave out --batch-share; a run counts the shares in "
     "when it chooses."},
    {"--explain-routes", excludes, "--json",
     "that is for a run. For programs --explain-routes=json prints the reckoning."},
    {"--explain-routes", excludes, "--join",
     "it trains nothing, and joins no run. Leave out one of the two."},
    {"--lossy!=none", excludes, "--wire",
     "both say in which format gradients travel, the one the roughest that Poseidon may choose, "
     "the "
     "other the format itself. Leave out one of the two."},
    {"--quiet", excludes, "--log-level!=quiet",
     "--quiet is --log-level quiet. Leave out one of the two."},
    {"--json", excludes, "--log-format=caffe",
     "the one is for programs, the other prints Caffe's lines. --log-dir writes these to a file "
     "beside --json."},

    {"--wire", is_idle_without, "--nodes!=1",
     "a run that begins with one node sends float32, also when others have joined. Give --nodes N "
     "with N >= 2.",
     "--join"},
    {"--lossy!=none", is_idle_without, "--nodes!=1",
     "a run that begins with one node sends float32, also when others have joined. Give --nodes N "
     "with N >= 2.",
     "--join"},
};

}  // namespace

std::span<const option_rule> option_rules() {
  return rules;
}

const char* name_of(option_rule::kind kind) {
  switch (kind) {
    case excludes:
      return "excludes";
    case needs:
      return "needs";
    case is_idle_without:
      return "is idle without";
  }
  return "";
}

}  // namespace poseidon::app
