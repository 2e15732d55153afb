// apps/node/option_rows_cluster.cpp - options about who takes part, and what travels between them: part of option_table.hpp.
#include "apps/node/option_table.hpp"

namespace poseidon::app::rows {

namespace {

using enum option_group;
using enum option_owner;

constexpr option_row cluster_rows[] = {
    {.names = "--listen",
     .value = "HOST:PORT",
     .group = cluster,
     .owner = everyone,
     .help = "where other nodes join this one (the first node); with --join where it listens in "
             "the run, else at a free port. Port 0 takes a free port and prints it. Any address "
             "but loopback needs --token-file",
     .chapter = "a-first-cluster"},
    {.names = "--nodes",
     .value = "N",
     .group = cluster,
     .owner = first_node,
     .help = "how many nodes have to be there before training begins, this one included",
     .chapter = "a-first-cluster"},
    {.names = "--join",
     .value = "HOST:PORT",
     .group = cluster,
     .owner = everyone,
     .help = "any node of the run, or several of them, separated by commas; everything but the "
             "data comes from there. With --solver: begin the run where none of them is in one",
     .chapter = "when-machines-come-and-go"},
    {.names = "--witness",
     .group = cluster,
     .owner = everyone,
     .help = "with --join: a node that trains nothing and has a vote on which nodes go on after a "
             "loss, so that one of two goes on when they do not hear each other. It has no net, no "
             "data and no devices; any small machine that reaches all nodes will do",
     .chapter = "a-third-vote"},
    {.names = "--token-file",
     .value = "FILE",
     .group = cluster,
     .owner = members,
     .help = "its first line is the cluster's secret, the same on every node"},
    {.names = "--tls-cert",
     .value = "FILE",
     .group = cluster,
     .owner = members,
     .help = "PEM file with this node's certificate: connections are encrypted, on all nodes or "
             "none",
     .chapter = "encrypted-connections",
     .idle_unless = "--web"},
    {.names = "--tls-key",
     .value = "FILE",
     .group = cluster,
     .owner = members,
     .help = "PEM file with the key of --tls-cert",
     .chapter = "encrypted-connections",
     .idle_unless = "--web"},
    {.names = "--tls-ca",
     .value = "FILE",
     .group = cluster,
     .owner = members,
     .help = "PEM file with the authority that has signed every node's --tls-cert",
     .chapter = "encrypted-connections",
     .idle_unless = "--web"},
    {.names = "--silence-limit",
     .value = "auto|S",
     .group = cluster,
     .owner = members,
     .help = "seconds after which another node that cannot be heard is lost (0.5 to 3600); auto: "
             "2, and where the others go on without it six times the longest silence of its link "
             "in the last minute, between 0.7 and 2"},
    {.names = "--progress-limit",
     .value = "S",
     .group = cluster,
     .owner = members,
     .help = "seconds without any progress, though all nodes can be heard, after which the run "
             "ends; 0: none; 20 after Ctrl-C"},
    {.names = "--no-rejoin",
     .group = cluster,
     .owner = members,
     .help = "end where the other nodes have gone on without this one, which they could not hear; "
             "else it joins them again",
     .chapter = "when-machines-come-and-go"},
    {.names = "--survive",
     .value = "N",
     .group = cluster,
     .owner = first_of_several,
     .help = "how many nodes may be lost at the same time without loss of solver state: the number "
             "of other nodes that keep a copy of each node's. Above 0 the others go on where a "
             "node is killed while all train",
     .otherwise = "1 where a run of several nodes, or one that listens, can have copies that cost "
                  "no bytes",
     .chapter = "when-machines-come-and-go"},
    {.names = "--lost-state",
     .value = "{end,zero}",
     .group = cluster,
     .owner = first_of_several,
     .help = "where more nodes are lost than --survive says, and solver state with them: end (the "
             "weights are saved), or zero (the others go on, and what is lost begins with zeros, "
             "which the run says)",
     .chapter = "when-machines-come-and-go"},
    {.names = "--batch-share",
     .value = "equal|auto|W,W,...",
     .group = cluster,
     .owner = first_of_several,
     .help = "how the nodes divide each iteration's samples: equal, auto (by the speed that each "
             "measures before training), or a weight for each node, as in 3,1",
     .chapter = "nodes-of-different-speed"},
    {.names = "--global-batch",
     .value = "{scale,keep}",
     .group = cluster,
     .owner = trainers_of_several,
     .help = "samples of an iteration as nodes join and leave: scale (each node takes the net's "
             "batch), or keep (those of the first nodes stay, and each takes a part). A node that "
             "joins need not "
             "say it, and is refused where it says another one than the run has",
     .otherwise = "scale",
     .chapter = "when-machines-come-and-go",
     .idle_unless = "--snapshot"},
    {.names = "--views",
     .value = "FILE",
     .group = cluster,
     .owner = first_node,
     .help = "how many nodes train from which iteration on, a file of lines `iteration nodes`: a "
             "run with the same views as another one has the same results. Nodes wait to join "
             "until then, and the last ones leave",
     .chapter = "when-machines-come-and-go"},
    {.names = "--routes",
     .value = "auto|ps|sfb|lowrank|FILE",
     .group = values,
     .owner = first_of_several,
     .help = "how gradients travel: auto (by the links' measured rate; auto:1000 where a node can "
             "send 1000 Mbit/s), ps (parameter server), sfb (factors of every InnerProduct that "
             "can), lowrank (every large matrix as the product of two thin ones; the result is "
             "another one), or a file of lines `layer ps|sfb|lowrank`",
     .chapter = "how-gradients-travel"},
    {.names = "--rank",
     .value = "4|8",
     .group = values,
     .owner = first_of_several,
     .help =
         "rank of gradients on the route lowrank. With --routes auto it also allows that route, "
         "which is taken where it saves time",
     .otherwise = "4 where a layer is put on lowrank; auto puts none there",
     .chapter = "gradients-of-low-rank"},
    {.names = "--explain-routes",
     .value = "[table|json]",
     .group = values,
     .owner = first_node,
     .help = "prints what each route of each InnerProduct would cost --nodes N, and which is "
             "chosen; =json for programs. Trains nothing",
     .chapter = "how-gradients-travel"},
    {.names = "--wire",
     .value = "float32|float16|bfloat16|int8|int4|FILE",
     .group = values,
     .owner = first_of_several,
     .help = "format of gradients and updates on the parameter server's route: float32 (exact), "
             "float16, bfloat16 (half the bytes), int8, int4 (a fourth, an eighth; layers of fewer "
             "than 4096 values stay float32), or a file of lines `layer format`",
     .chapter = "fewer-bytes-a-value"},
    {.names = "--lossy",
     .value = "none|bfloat16|int8|int4|lowrank",
     .group = values,
     .owner = first_of_several,
     .help =
         "how roughly Poseidon may send gradients and updates so that training does not wait for "
         "the links: it chooses a format for each layer by predicted time, the mildest one that "
         "comes within 2 % of the fastest; with lowrank, matrices may also go as P and Q (of rank "
         "8 without --rank). none: nothing is rounded",
     .otherwise = "none",
     .chapter = "fewer-bytes-a-value"},
    {.names = "--staleness",
     .value = "N",
     .group = values,
     .owner = first_of_several,
     .help = "an iteration may compute with parameters that are at most this number of iterations "
             "old; overrides the solver's poseidon { staleness }",
     .otherwise = "the solver's, 0 unless it says otherwise",
     .chapter = "waiting-less-staleness"},
    {.names = "--link-mbit",
     .value = "MBIT",
     .group = values,
     .owner = trainers_of_several,
     .help = "limits each link to this number of Mbit/s",
     .otherwise = "no limit",
     .chapter = "a-cluster-that-is-not-there"},
    {.names = "--bandwidth-budget",
     .value = "MBIT",
     .group = values,
     .owner = trainers_of_several,
     .help = "sends at most this number of Mbit/s of gradients and parameters to each other node; "
             "with --staleness the values that change most go first",
     .otherwise = "no limit",
     .chapter = "waiting-less-staleness"},
};

}  // namespace

std::span<const option_row> of_clusters() {
  return cluster_rows;
}

}  // namespace poseidon::app::rows
