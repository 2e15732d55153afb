// poseidon-data - makes and inspects what nets train on and what they leave: databases, mean images, features, models.
#include "apps/cli.hpp"
#include "apps/data/verbs.hpp"
#include "apps/run_app.hpp"
#include "apps/terminal/reporter.hpp"

#include <csignal>
#include <cstdio>
#include <exception>

namespace poseidon::app {

namespace {

int run(int argc, char** argv) {
  command_line app{
      "Makes and inspects what nets train on and what they leave: databases, mean images, "
      "features, models.",
      "poseidon-data"};
  app.require_subcommand(1);
  output_words words;
  add_output_options(app, words);
  app.fallthrough();  // these options also behind a command: commands made from now on inherit it
  app.footer(
      "Examples:\n"
      "  poseidon-data convert mnist --images train-images-idx3-ubyte.gz --labels "
      "train-labels-idx1-ubyte.gz --out train_lmdb\n"
      "  poseidon-data convert list train.txt --root photos --resize-height 256 --resize-width "
      "256 --shuffle --out train_lmdb\n"
      "  poseidon-data mean train_lmdb mean.binaryproto\n"
      "  poseidon-data partition train_lmdb --parts 4\n"
      "  poseidon-data extract --model net.prototxt --weights net.caffemodel --blobs fc7 --out "
      "fc7_lmdb\n"
      "  poseidon-data info train_lmdb\n"
      "poseidon-data VERB --help has the options of each.\n"
      "Exit code: 0; 1 when a database was written but images were left out; 2 for wrong use and "
      "for files that cannot be read or written.");
  auto verbs = add_convert(app);
  for (auto add : {add_mean, add_partition, add_merge, add_extract, add_info})
    verbs.push_back(add(app));
  if (!parsed(app, argc, argv)) return 0;
  int code = 0;
  reporter report(words);
  try {
    for (const auto& verb : verbs)
      if (*verb.command) code = verb.run(report);
    report.end(code, code == 0 ? "" : "images were left out");
  } catch (const std::exception& e) {
    report.end(2, e.what());
    std::fprintf(stderr, "poseidon-data: %s\n", to_terminal(e.what()).c_str());
    return 2;
  }
  require_output();
  return code;
}

}  // namespace

}  // namespace poseidon::app

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is an error like a full disk
  return poseidon::app::run_app(argc, argv, poseidon::app::run);
}
