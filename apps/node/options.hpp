// apps/node/options.hpp - poseidon-node's command line.
#pragma once
#include "apps/node/caffe_options.hpp"
#include "apps/node/devices.hpp"
#include "messages/wire/socket.hpp"
#include "messages/wire/tls_context.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace poseidon::app {

struct node_options {
  std::filesystem::path solver;
  std::optional<host_port> listen, web;
  std::vector<host_port> join;  ///< not empty: this node joins
  std::size_t nodes = 1;
  std::uint32_t replicas = 0;  ///< 0: chosen for the net and the cores
  std::uint32_t readers = 0;   ///< threads that fill each replica's batches; 0: chosen
  std::optional<gpu_request> gpus;
  std::string weights;                 ///< one path or several, separated by commas
  std::string silence_limit = "auto";  // or seconds
  double progress_limit_s = 600;
  std::filesystem::path snapshot, data_root, token_file, trace, graph, csv, tensorboard;
  std::string token, web_token;
  std::shared_ptr<const tls_context> tls;  ///< of links and page; empty: nothing is encrypted
  std::optional<std::uint32_t> keep_snapshots, staleness;
  std::string keep_best, stop_at;  ///< goals.hpp has their words; empty: the solver's
  std::string log_level = "info";  ///< --quiet is "quiet"
  bool json = false;
  std::optional<replay_request> replay;  ///< kernels sleep instead of computing
  bool own_data = false;
  bool witness = false;                  ///< it joins to vote on views, and trains nothing
  bool rejoin = true;                    ///< where the other nodes have gone on without this one
  std::optional<std::string> synthetic;  ///< "": shapes as the layers state them
  double link_mbit_s = 0, budget_mbit_s = 0;
  std::string routes = "auto";
  std::uint32_t rank = 0;  ///< 4 or 8; 0: not given
  std::string wire = "float32";
  std::string lossy = "none";
  std::string batch_share = "equal";
  std::string global_batch;              ///< "scale", "keep"; empty: not given
  std::string lost_state = "end";        // or zero
  std::optional<std::uint32_t> survive;  ///< nodes; empty: as many as take_survive says
  std::string views;  ///< view_schedule.hpp; empty: members change as nodes join and leave
  double link_rate_mbit_s = 0;  ///< of --routes auto:MBIT; 0: not known
  std::string explain_routes;   ///< "table", "json"; empty: train
  std::uint64_t seed = 0;
  bool seed_given = false;
  bool devices_given = false;  ///< else the solver's solver_mode may choose a GPU
  gpu_request gpu_words;       ///< options for GPUs, without the GPUs; processors have its math
  std::string gpu_option;      ///< the first of these options that was given
  signal_effect sigint = signal_effect::stop, sighup = signal_effect::snapshot;
  std::optional<int> level;         ///< of the train net
  std::vector<std::string> stages;  ///< of the train net, beside the solver's
  std::string log_format = "text";
  std::filesystem::path log_dir;
  std::string command;                ///< that gave these options; as command_again()
  std::vector<std::string> warnings;  ///< about these options, for the display
};

inline constexpr const char* default_page = "127.0.0.1:7680";

/// Parses the arguments, checks them against each other and reads the token file. Empty after --help and --version,
/// which have been printed.
/// Errors   std::invalid_argument with one line.
[[nodiscard]] std::optional<node_options> parse_options(int argc, char** argv);

}  // namespace poseidon::app
