// apps/node/option_rows_display.cpp - options about what is seen of a run, and Caffe's: part of option_table.hpp.
#include "apps/node/option_table.hpp"

namespace poseidon::app::rows {

namespace {

using enum option_group;
using enum option_owner;

constexpr option_row display_rows[] = {
    {.names = "--web",
     .value = "[HOST:PORT]",
     .group = display,
     .owner = trainers,
     .help = "where a browser sees the run: actors, timeline, curves, members; 127.0.0.1:7680 if "
             "the address is left out",
     .chapter = "reading-the-page"},
    {.names = "--web-token-file",
     .value = "FILE",
     .group = display,
     .owner = trainers,
     .help = "its first line is what a reader of --web has to know; needed when other machines can "
             "reach the page",
     .chapter = "seeing-it"},
    {.names = "--trace",
     .value = "FILE",
     .group = display,
     .owner = trainers,
     .help = "writes a Chrome trace of this node (JSON; ui.perfetto.dev opens it): every kernel, "
             "push, apply and pull",
     .chapter = "seeing-it"},
    {.names = "--graph",
     .value = "FILE",
     .group = display,
     .owner = trainers,
     .help = "writes the measured actor graph (JSON) at the end"},
    {.names = "--csv",
     .value = "FILE",
     .group = display,
     .owner = reader_of_all_outputs,
     .help = "writes outputs as a table, a row for each display interval, with the columns of "
             "Caffe's parse_log; tests go to FILE.test0.csv. A resumed run adds its rows, in place "
             "of those that it repeats"},
    {.names = "--tensorboard",
     .value = "FOLDER",
     .group = display,
     .owner = reader_of_all_outputs,
     .help = "folder for TensorBoard's event files: outputs and learning rate in FOLDER/train, "
             "tests in "
             "FOLDER/test0. A resumed run adds files"},
    {.names = "--log-level",
     .value = "{quiet,info,debug}",
     .group = display,
     .owner = everyone,
     .help = "how much is said",
     .chapter = "what-each-log-level-shows"},
    {.names = "--quiet",
     .group = display,
     .owner = everyone,
     .help = "says nothing but results and errors, and draws nothing: --log-level quiet"},
    {.names = "--json",
     .group = display,
     .owner = everyone,
     .help = "writes an object a line for programs, and nothing else, on standard output: "
             "docs/json-events.md"},
    {.names = "--level",
     .value = "N",
     .group = caffe,
     .owner = first_node,
     .help = "of the train net, for its include and exclude rules",
     .otherwise = "the solver's",
     .chapter = "caffes-command-lines"},
    {.names = "--stage",
     .value = "A,B",
     .group = caffe,
     .owner = first_node,
     .help = "of the train net, for its include and exclude rules, beside the solver's",
     .chapter = "caffes-command-lines"},
    {.names = "--sigint-effect",
     .value = "stop|snapshot|none",
     .group = caffe,
     .owner = trainers,
     .help = "what SIGINT (Ctrl-C) does",
     .chapter = "caffes-command-lines"},
    {.names = "--sighup-effect",
     .value = "stop|snapshot|none",
     .group = caffe,
     .owner = trainers,
     .help = "what SIGHUP does",
     .chapter = "caffes-command-lines"},
    {.names = "--log-format",
     .value = "{text,caffe}",
     .group = caffe,
     .owner = everyone,
     .help = "caffe: lines on standard error that Caffe's parse_log.py and plot_training_log.py "
             "read",
     .chapter = "caffes-command-lines"},
    {.names = "--log-dir",
     .value = "DIR",
     .group = caffe,
     .owner = everyone,
     .help = "folder for a log file with these lines, as glog names it, whatever --log-format is",
     .chapter = "caffes-command-lines"},
    {.names = "--logical-devices",
     .value = "N",
     .group = tests,
     .owner = trainers,
     .help = "with GPUs: how many devices they are to look like, for tests",
     .otherwise = "as many as they are",
     .of_gpus = true},
};

}  // namespace

std::span<const option_row> of_display() {
  return display_rows;
}

}  // namespace poseidon::app::rows
