// apps/node/option_rows_training.cpp - options about what is trained, on which data and devices: part of option_table.hpp.
#include "apps/node/option_table.hpp"

namespace poseidon::app::rows {

namespace {

using enum option_group;
using enum option_owner;

constexpr option_row training_rows[] = {
    {.names = "--solver",
     .value = "FILE",
     .group = training,
     .owner = first_node,
     .help = "solver prototxt. Paths of its nets, and relative data sources in them, start at the "
             "working directory"},
    {.names = "--weights",
     .value = "FILE[,FILE]",
     .group = training,
     .owner = first_node,
     .help = ".caffemodel or .caffemodel.h5 files to start from, copied by layer name; instead of "
             "the solver's weights"},
    {.names = "--snapshot,--resume",
     .value = "FILE",
     .group = training,
     .owner = first_node,
     .help = ".solverstate or .solverstate.h5 to resume from, on any number of nodes; auto: the "
             "newest one that begins with the solver's snapshot_prefix and whose weights are "
             "there, or none, so that one command starts a run and goes on with it",
     .chapter = "stopping-and-going-on"},
    {.names = "--keep-snapshots",
     .value = "N",
     .group = training,
     .owner = first_node,
     .help = "number of this run's snapshots to keep, the newest ones; 0: all, as Caffe does",
     .otherwise = "0",
     .chapter = "stopping-and-going-on"},
    {.names = "--keep-best",
     .value = "OUTPUT",
     .group = training,
     .owner = first_node,
     .help = "OUTPUT of a test net: the model with its best value is kept, too, as "
             "PREFIX_best_iter_N; best is the least of a loss and the greatest of anything else, "
             "or OUTPUT=min, OUTPUT=max",
     .chapter = "the-best-model-and-when-to-end"},
    {.names = "--stop-at",
     .value = "OUTPUT=VALUE",
     .group = training,
     .owner = first_node,
     .help = "training ends when a test finds this value or a better one, as in accuracy=0.99; <= "
             "or >= says which values are better",
     .chapter = "the-best-model-and-when-to-end"},
    {.names = "--seed",
     .value = "N",
     .group = training,
     .owner = first_node,
     .help = "of the fillers, dropout and the order of random data",
     .otherwise = "the solver's random_seed"},
    {.names = "--data-root",
     .value = "DIR",
     .group = data,
     .owner = trainers,
     .help = "folder from which relative data sources start on this node"},
    {.names = "--own-data",
     .group = data,
     .owner = trainers_of_several,
     .help = "the train net reads this node's own part of the data (made by poseidon-data "
             "partition); give it to every node of a cluster",
     .chapter = "data-on-each-nodes-own-disk"},
    {.names = "--readers",
     .value = "N",
     .group = data,
     .owner = trainers,
     .help = "threads that read, decode and transform each replica's samples",
     .otherwise = "1, and with GPUs what the cores leave free, at most 16"},
    {.names = "--synthetic",
     .value = "[CxHxW]",
     .group = data,
     .owner = first_node,
     .help = "random images instead of data and base_lr 0, for timing: no tests, no snapshots; "
             "CxHxW where the data layers do not say"},
    {.names = "--devices",
     .value = "DEVICES",
     .group = devices,
     .owner = trainers,
     .help = "cpu (chooses), or cpu:R for R replicas that split the batch, or GPUs by number, as "
             "in 0,1: a replica on each. To train also replay:FILE: layers take the times of a "
             "profile, nothing is computed; with ,time=X X times as long, with ,bytes=S a share of "
             "the values",
     .chapter = "a-machine-with-a-gpu"},
    {.names = "--gpu",
     .value = "LIST|all",
     .group = devices,
     .owner = trainers,
     .help = "as in Caffe: GPUs by number, or all; they split the batch, where Caffe gives each a "
             "batch of its own",
     .chapter = "caffes-command-lines"},
    {.names = "--math",
     .value = "{auto,fp32,tf32,bf16}",
     .group = devices,
     .owner = trainers,
     .help = "what is multiplied: fp32 (on GPUs strict, the same bits in every run), tf32 (GPUs "
             "only) or bf16 (images inside are bfloat16, too, which halves their memory), or auto: "
             "tf32 on GPUs, fp32 on processors",
     .chapter = "in-bfloat16"},
    {.names = "--layout",
     .value = "{auto,nchw,nhwc}",
     .group = devices,
     .owner = trainers,
     .help = "with GPUs: the order of images on them, nchw, nhwc, or auto: nhwc but for --math "
             "fp32; files and results are the same",
     .chapter = "a-machine-with-a-gpu",
     .of_gpus = true},
    {.names = "--autotune",
     .group = devices,
     .owner = trainers,
     .help = "with GPUs: convolutions try the library's ways at the start and keep the fastest "
             "measured; other bits from run to run",
     .chapter = "a-machine-with-a-gpu",
     .of_gpus = true},
    {.names = "--gpu-plugin",
     .value = "FILE",
     .group = devices,
     .owner = trainers,
     .help =
         "with GPUs: the plug-in; libposeidon_gpu_simulated.so needs no GPU and computes slowly",
     .otherwise = "libposeidon_gpu.so beside this program",
     .of_gpus = true},
};

}  // namespace

std::span<const option_row> of_training() {
  return training_rows;
}

}  // namespace poseidon::app::rows
