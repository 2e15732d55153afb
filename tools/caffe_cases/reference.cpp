// tools/caffe_cases/reference.cpp - what BVLC Caffe computes for one case. Built against a Caffe by tools/caffe_cases/run.
//
// usage: reference layer FOLDER     reads net.prototxt and inputs.txt, writes blobs, parameters and entry.json
//        reference solver FOLDER    reads net.prototxt and solver.prototxt, writes weights, losses and a snapshot
//
// The files are those that poseidon-oracle reads. A case that Caffe refuses ends the program with Caffe's own words.
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

// Caffe has no way to ask for a solver's rate and loss.
#define protected public
#define private public
#include <caffe/caffe.hpp>
#include <caffe/sgd_solvers.hpp>
#include <caffe/util/io.hpp>
#include <caffe/util/upgrade_proto.hpp>
#undef protected
#undef private

namespace {

using caffe::Blob;
using caffe::BlobProto;
using values = std::vector<float>;

values data_of(const Blob<float>& b) {
  return {b.cpu_data(), b.cpu_data() + b.count()};
}
values diff_of(const Blob<float>& b) {
  return {b.cpu_diff(), b.cpu_diff() + b.count()};
}

BlobProto proto_of(const std::vector<int>& shape, const values& data, const values* diff) {
  BlobProto p;
  for (const int extent : shape) p.mutable_shape()->add_dim(extent);
  for (const float v : data) p.add_data(v);
  if (diff != nullptr)
    for (const float v : *diff) p.add_diff(v);
  return p;
}

std::string json(const std::vector<int>& shape) {
  std::ostringstream text;
  for (std::size_t i = 0; i < shape.size(); ++i) text << (i > 0 ? ", " : "") << shape[i];
  return "[" + text.str() + "]";
}

const char* json(bool b) {
  return b ? "true" : "false";
}

/// One line of inputs.txt: what a bottom holds, whether it gets a gradient, and two numbers of the kind's own.
struct input {
  std::string kind;
  bool diff = false;
  double a = 0, b = 0;
};

void fill(const input& how, std::mt19937& random, Blob<float>& blob) {
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform(static_cast<float>(how.a),
                                                static_cast<float>(how.b));
  float* to = blob.mutable_cpu_data();
  for (int i = 0; i < blob.count(); ++i) {
    if (how.kind == "normal") {  // mean, deviation
      to[i] = static_cast<float>(how.a + how.b * normal(random));
    } else if (how.kind == "uniform") {  // least, most
      to[i] = uniform(random);
    } else if (how.kind == "integer") {  // least, most
      to[i] = static_cast<float>(std::uniform_int_distribution<int>(
          static_cast<int>(how.a), static_cast<int>(how.b))(random));
    } else if (how.kind == "probability") {  // made to sum to 1 below
      to[i] = std::uniform_real_distribution<float>(0.05f, 1)(random);
    } else {
      LOG(FATAL) << "unknown kind of input " << how.kind;
    }
  }
  if (how.kind != "probability") return;
  const int classes = blob.shape(1), places = blob.count(2);
  for (int n = 0; n < blob.shape(0); ++n)
    for (int p = 0; p < places; ++p) {
      float sum = 0;
      for (int k = 0; k < classes; ++k) sum += to[(n * classes + k) * places + p];
      for (int k = 0; k < classes; ++k) to[(n * classes + k) * places + p] /= sum;
    }
}

/// The parameters as a trained net may have them.
void fill_parameters(caffe::Layer<float>& layer, std::mt19937& random) {
  std::normal_distribution<float> normal(0, 0.5f);
  std::uniform_real_distribution<float> statistic(0.5f, 3);
  const std::string type = layer.type();
  for (std::size_t b = 0; b < layer.blobs().size(); ++b) {
    Blob<float>& blob = *layer.blobs()[b];
    const bool positive = type == "BatchNorm" && b > 0;  // variances and their factor
    for (int i = 0; i < blob.count(); ++i)
      blob.mutable_cpu_data()[i] = positive ? statistic(random) : normal(random);
    // nothing seen yet
    if (positive && b == 2 && random() % 5 == 0) blob.mutable_cpu_data()[0] = 0;
  }
}

/// entry.json: the case's line of the manifest.
class entry {
 public:
  entry(const std::string& name, const std::string& type, const std::string& phase, bool backward,
        bool in_place) {
    text_ << "{\"path\": \"layers/" << name << "\", \"type\": \"" << type << "\", \"phase\": \""
          << phase << "\", \"backward\": " << json(backward)
          << ", \"net_backward\": false, \"in_place\": " << json(in_place)
          << ", \"stateful\": false, \"tolerance\": 0.0001, \"exact_forward\": false";
  }
  void begin(const char* list) { text_ << ", \"" << list << "\": [", first_ = true; }
  void add(const std::string& item) { text_ << (first_ ? "" : ", ") << item, first_ = false; }
  void end() { text_ << "]"; }
  void write() { std::ofstream("entry.json") << text_.str() << "}\n"; }

 private:
  std::ostringstream text_;
  bool first_ = true;
};

std::string described(const std::string& blob, const std::string& file,
                      const std::vector<int>& shape, const std::string& rest) {
  return "{\"blob\": \"" + blob + "\", \"file\": \"" + file + "\", \"shape\": " + json(shape) +
         ", " + rest + "}";
}

void write(const std::string& file, const google::protobuf::Message& message) {
  caffe::WriteProtoToBinaryFile(message, file.c_str());
}

/// The net's last layer forward and, if asked for, backward from random gradients (or its loss weight).
void run_layer(const std::string& name) {
  std::ifstream in("inputs.txt");
  unsigned seed = 0;
  std::string phase;
  bool backward = false;
  in >> seed >> phase >> backward;
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;

  caffe::NetParameter spec;
  caffe::ReadProtoFromTextFileOrDie("net.prototxt", &spec);
  caffe::UpgradeNetAsNeeded(name, &spec);
  spec.mutable_state()->set_phase(phase == "TRAIN" ? caffe::TRAIN : caffe::TEST);
  caffe::Caffe::set_random_seed(seed);
  caffe::Net<float> net(spec);
  caffe::Layer<float>& layer = *net.layers().back();
  const auto& bottoms = net.bottom_vecs().back();
  const auto& tops = net.top_vecs().back();

  std::vector<bool> down;
  std::vector<values> inputs, parameters, outputs, gradients;
  for (auto* b : bottoms) {
    input how;
    in >> how.kind >> how.diff >> how.a >> how.b;
    fill(how, random, *b);
    down.push_back(backward && how.diff);
    inputs.push_back(data_of(*b));
  }
  fill_parameters(layer, random);
  for (const auto& p : layer.blobs()) parameters.push_back(data_of(*p));
  const bool in_place = !tops.empty() && !bottoms.empty() && tops[0] == bottoms[0];

  net.Forward();
  bool is_loss = false;
  for (std::size_t t = 0; t < tops.size(); ++t)
    is_loss = is_loss || layer.loss(static_cast<int>(t)) != 0;
  for (auto* t : tops) {
    outputs.push_back(data_of(*t));
    for (int i = 0; backward && !is_loss && i < t->count(); ++i)
      t->mutable_cpu_diff()[i] = normal(random);
    gradients.push_back(diff_of(*t));
  }
  if (backward) {
    net.ClearParamDiffs();
    for (std::size_t p = 0; p < layer.blobs().size(); ++p)
      layer.set_param_propagate_down(static_cast<int>(p), true);
    layer.Backward(tops, down, bottoms);
  }

  const auto& words = layer.layer_param();
  entry e(name, layer.type(), phase, backward, in_place);
  e.begin("bottoms");
  for (std::size_t b = 0; b < bottoms.size(); ++b) {
    const std::string blob = words.bottom(static_cast<int>(b));
    const std::string file = blob + (in_place && b == 0 ? ".in" : "") + ".binaryproto";
    const values diff = diff_of(*bottoms[b]);
    write(file, proto_of(bottoms[b]->shape(), inputs[b], down[b] ? &diff : nullptr));
    e.add(described(blob, file, bottoms[b]->shape(), std::string("\"diff\": ") + json(down[b])));
  }
  e.end();
  e.begin("tops");
  for (std::size_t t = 0; t < tops.size(); ++t) {
    const std::string blob = words.top(static_cast<int>(t));
    const std::string file = blob + (in_place && t == 0 ? ".out" : "") + ".binaryproto";
    write(file, proto_of(tops[t]->shape(), outputs[t], &gradients[t]));
    e.add(described(blob, file, tops[t]->shape(),
                    "\"loss_weight\": " + std::to_string(layer.loss(static_cast<int>(t)))));
  }
  e.end();
  e.begin("params");
  caffe::NetParameter before, after;
  for (auto* net_of : {&before, &after}) {
    net_of->add_layer()->set_name("test");
    net_of->mutable_layer(0)->set_type(layer.type());
  }
  bool changed = false;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const Blob<float>& blob = *layer.blobs()[p];
    const values diff = diff_of(blob), now = data_of(blob);
    *before.mutable_layer(0)->add_blobs() = proto_of(blob.shape(), parameters[p], &diff);
    *after.mutable_layer(0)->add_blobs() = proto_of(blob.shape(), now, nullptr);
    changed = changed || now != parameters[p];
    e.add(json(blob.shape()));
  }
  e.end();
  if (!parameters.empty()) write("params.caffemodel", before);
  if (changed) write("params_after.caffemodel", after);
  e.write();
}

void write_weights(const caffe::Net<float>& net, const std::string& file) {
  caffe::NetParameter weights;
  net.ToProto(&weights, false);
  write(file, weights);
}

/// Trains to `last`, an iteration at a time; losses and rates go into `csv`.
void train(caffe::Solver<float>& solver, int last, const std::string& csv, bool first_run) {
  auto& rates = dynamic_cast<caffe::SGDSolver<float>&>(solver);
  std::ofstream out(csv);
  out.precision(9);
  out << "iteration,loss,lr,loss_float64\n";
  while (solver.iter() < last) {
    const int i = solver.iter();
    const float rate = rates.GetLearningRate();
    solver.Step(1);
    out << i << "," << solver.smoothed_loss_ << "," << rate << ",0\n";
    if (!first_run) continue;
    if (i + 1 == 1) write_weights(*solver.net(), "after1.caffemodel");
    if (i + 1 == 5) write_weights(*solver.net(), "after5.caffemodel");
    if (i + 1 == last / 2) solver.Snapshot();
  }
}

/// A run with a snapshot in its middle, and the second half again from that.
void run_solver() {
  caffe::SolverParameter spec;
  caffe::ReadSolverParamsFromTextFileOrDie("solver.prototxt", &spec);
  spec.set_snapshot_prefix("snapshot/snap");
  (void)mkdir("snapshot", 0755);
  const auto make = [&] {
    return std::unique_ptr<caffe::Solver<float>>(caffe::SolverRegistry<float>::CreateSolver(spec));
  };
  const auto straight = make();
  write_weights(*straight->net(), "init.caffemodel");
  train(*straight, spec.max_iter(), "losses.csv", true);
  write_weights(*straight->net(), "final.caffemodel");
  const auto resumed = make();
  resumed->Restore(
      ("snapshot/snap_iter_" + std::to_string(spec.max_iter() / 2) + ".solverstate").c_str());
  train(*resumed, spec.max_iter(), "snapshot/resume_losses.csv", false);
  write_weights(*resumed->net(), "snapshot/resume_final.caffemodel");
  std::ofstream("tests.csv") << "iteration,output,value\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || chdir(argv[2]) != 0) {
    std::cerr << "usage: reference layer|solver FOLDER\n";
    return 2;
  }
  FLAGS_minloglevel = 2;
  google::InitGoogleLogging(argv[0]);
  const std::string folder = argv[2];
  if (std::strcmp(argv[1], "solver") == 0) {
    run_solver();
  } else {
    run_layer(folder.substr(folder.rfind('/') + 1));
  }
}
