// tools/oracle/layers.cpp - single-layer cases: one layer forward and backward against the reference
// values.
#include "models/net/net_builder.hpp"
#include "models/spec/net_file.hpp"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <span>
#include <sstream>

#include "tools/oracle/cases.hpp"

namespace poseidon::oracle {
namespace {

namespace fs = std::filesystem;
using json = google::protobuf::Value;

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path.string() + ": cannot be read");
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

const json* field(const json& of, const std::string& name) {
  const auto& fields = of.struct_value().fields();
  const auto found = fields.find(name);
  return found == fields.end() ? nullptr : &found->second;
}
std::string text_of(const json& of, const std::string& name) {
  const json* f = field(of, name);
  return f == nullptr ? "" : f->string_value();
}
bool flag_of(const json& of, const std::string& name) {
  const json* f = field(of, name);
  return f != nullptr && f->bool_value();
}

::caffe::BlobProto read_blob(const fs::path& path) {
  ::caffe::BlobProto b;
  if (!b.ParseFromString(read_text(path)))
    throw std::runtime_error(path.string() + ": not a BlobProto");
  return b;
}

template <class Repeated>
std::vector<float> values_of(const Repeated& r) {
  return {r.begin(), r.end()};
}

/// Empty if equal within the tolerance, else the largest difference: blob, index, both values.
std::string differs(const std::string& what, const std::vector<float>& ours,
                    const std::vector<float>& wanted, double tolerance) {
  if (ours.size() != wanted.size()) {
    return what + ": " + std::to_string(ours.size()) + " values, the reference has " +
           std::to_string(wanted.size());
  }
  double largest = 1e-3, worst = -1;
  std::size_t at = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] != ours[i] && wanted[i] != wanted[i]) continue;  // 0 / 0 in Caffe, too
    largest = std::max(largest, std::abs(double{wanted[i]}));
    const double d = std::abs(double{ours[i]} - double{wanted[i]});
    if (d > worst || d != d) worst = d != d ? HUGE_VAL : d, at = i;
  }
  if (worst <= tolerance * largest) return {};
  std::ostringstream text;
  text << what << "[" << at << "] is " << ours[at] << ", the reference has " << wanted[at]
       << " (deviation " << worst / largest << ", allowed " << tolerance << ")";
  return text.str();
}

/// One case: the net of its folder with the layer under test last, and the files that say what it
/// computes.
class layer_case {
 public:
  layer_case(const fs::path& folder, const json& entry)
      : folder_(folder), entry_(entry), tolerance_(field(entry, "tolerance")->number_value()) {}

  std::string run(device& on) {
    build_options options;
    const net_file file = read_net(folder_ / "net.prototxt");
    options.state.phase = text_of(entry_, "phase") == "TRAIN" ? ::caffe::TRAIN : ::caffe::TEST;
    net_ = build_net(file, options);
    under_test_ = &net_.layers.back();
    const bool backward = flag_of(entry_, "backward");
    under_test_->needs_backward = backward;
    under_test_->learn.assign(under_test_->parameters.size(), backward);
    const json* bottoms = field(entry_, "bottoms");
    under_test_->propagate_down.assign(under_test_->bottoms.size(), false);
    for (int i = 0; i < bottoms->list_value().values_size(); ++i) {
      under_test_->propagate_down.at(static_cast<std::size_t>(i)) =
          backward && flag_of(bottoms->list_value().values(i), "diff");
    }
    load_parameters();
    const replica_options keep{1, true};
    const auto replica = on.make_replica(net_, pointers_, keep);
    on.arithmetic()->enter_thread(1);
    return compare(*replica, backward);
  }

 private:
  void load_parameters() {
    values_.resize(net_.parameters.size());
    for (std::size_t p = 0; p < values_.size(); ++p) {
      values_[p].resize(static_cast<std::size_t>(count(net_.parameters[p].shape)));
      holders_.push_back(std::make_unique<parameter_values>());
      holders_.back()->values = values_[p].data();
      pointers_.push_back(holders_.back().get());
    }
    const fs::path path = folder_ / "params.caffemodel";
    if (values_.empty()) return;
    if (!stored_.ParseFromString(read_text(path))) {
      throw std::runtime_error(path.string() + ": not a NetParameter");
    }
    for (std::size_t slot = 0; slot < under_test_->parameters.size(); ++slot) {
      const auto& from = blob_of(stored_, slot).data();
      std::vector<float>& to = values_[under_test_->parameters[slot]];
      if (static_cast<std::size_t>(from.size()) != to.size()) {
        throw std::runtime_error(path.string() + ": parameter " + std::to_string(slot) + " has " +
                                 std::to_string(from.size()) + " values, the net needs " +
                                 std::to_string(to.size()));
      }
      std::copy(from.begin(), from.end(), to.begin());
    }
    // Given only for layers that change their blobs in forward; it holds the reference's change.
    const fs::path after = folder_ / "params_after.caffemodel";
    if (fs::exists(after) && !after_.ParseFromString(read_text(after))) {
      throw std::runtime_error(after.string() + ": not a NetParameter");
    }
  }

  [[nodiscard]] const ::caffe::BlobProto& blob_of(const ::caffe::NetParameter& weights,
                                                  std::size_t slot) const {
    for (const auto& l : weights.layer()) {
      if (l.name() == under_test_->name) return l.blobs(static_cast<int>(slot));
    }
    throw std::runtime_error(folder_.string() + ": layer \"" + under_test_->name +
                             "\" is missing in the reference's parameters");
  }

  /// A server's update of a running statistic, see net_parameter::average_momentum.
  [[nodiscard]] std::vector<float> after_pass(std::size_t parameter,
                                              std::span<const float> change) const {
    std::vector<float> v = values_[parameter];
    for (std::size_t i = 0; i < v.size(); ++i) {
      v[i] = *net_.parameters[parameter].average_momentum * v[i] + change[i];
    }
    return v;
  }

  /// The manifest's blobs of one side; index by place, because tops may have the names of bottoms.
  template <class Do>
  void each(const char* side, const std::vector<std::size_t>& blobs, Do act) const {
    const json* list = field(entry_, side);
    for (int i = 0; i < list->list_value().values_size(); ++i) {
      const json& b = list->list_value().values(i);
      act(blobs.at(static_cast<std::size_t>(i)), text_of(b, "blob"),
          read_blob(folder_ / text_of(b, "file")), i);
    }
  }

  std::string compare(replica& r, bool backward) {
    std::string wrong;
    const auto check = [&](const std::string& what, const std::vector<float>& ours,
                           const auto& wanted) {
      if (wrong.empty()) wrong = differs(what, ours, values_of(wanted), tolerance_);
    };
    const std::size_t layer = net_.layers.size() - 1;
    each("bottoms", under_test_->bottoms,
         [&](std::size_t blob, const std::string&, const auto& b, int) {
           r.write_data(blob, values_of(b.data()));
         });
    const pass now{};
    // Between the inputs and the layer there may be Split layers, which hand on what was written.
    r.at(layer).forward(now);
    each("tops", under_test_->tops,
         [&](std::size_t blob, const std::string& name, const auto& b, int) {
           check(name, data(r, blob), b.data());
         });
    if (!backward) return wrong;
    each("tops", under_test_->tops, [&](std::size_t blob, const std::string&, const auto& b, int) {
      if (b.diff_size() == 0) return;
      std::vector<float> diff = values_of(b.diff());
      diff.resize(static_cast<std::size_t>(count(net_.blobs[blob].shape)));
      r.write_diff(blob, diff);
    });
    r.at(layer).backward(now);
    r.finish();
    each("bottoms", under_test_->bottoms,
         [&](std::size_t blob, const std::string& name, const auto& b, int i) {
           if (under_test_->propagate_down[static_cast<std::size_t>(i)] && b.diff_size() > 0) {
             check("diff of " + name, diff(r, blob), b.diff());
           }
         });
    for (std::size_t slot = 0; slot < under_test_->parameters.size(); ++slot) {
      const std::size_t p = under_test_->parameters[slot];
      const auto g = r.gradient(p);
      const std::string which = "parameter " + std::to_string(slot);
      if (net_.parameters[p].average_momentum) {
        check(which + " after the pass", after_pass(p, g), blob_of(after_, slot).data());
      } else if (blob_of(stored_, slot).diff_size() > 0) {
        check("gradient of " + which, {g.begin(), g.end()}, blob_of(stored_, slot).diff());
      }
    }
    return wrong;
  }

  [[nodiscard]] std::vector<float> data(const replica& r, std::size_t blob) const {
    std::vector<float> v(static_cast<std::size_t>(count(net_.blobs[blob].shape)));
    r.read_data(blob, v);
    // a Filter passes some samples only
    v.resize(static_cast<std::size_t>(count(r.extents(blob))));
    return v;
  }
  [[nodiscard]] std::vector<float> diff(const replica& r, std::size_t blob) const {
    std::vector<float> v(static_cast<std::size_t>(count(net_.blobs[blob].shape)));
    r.read_diff(blob, v);
    return v;
  }

  fs::path folder_;
  const json& entry_;
  double tolerance_;
  net net_;
  net_layer* under_test_ = nullptr;
  ::caffe::NetParameter stored_, after_;
  std::vector<std::vector<float>> values_;
  std::vector<std::unique_ptr<parameter_values>> holders_;
  std::vector<const parameter_values*> pointers_;
};

}  // namespace

std::vector<result> run_layer_cases(const fs::path& directory, const device_maker& make) {
  std::vector<result> results;
  json manifest;
  const auto parsed = google::protobuf::util::JsonStringToMessage(
      read_text(directory / "MANIFEST.json"), &manifest);
  if (!parsed.ok()) throw std::runtime_error((directory / "MANIFEST.json").string() + ": not JSON");
  const json* layers = field(manifest, "layers");
  if (layers == nullptr) return results;
  const auto device = make();
  for (const json& entry : layers->list_value().values()) {
    result r;
    r.name = text_of(entry, "path");
    if (!device->supports(text_of(entry, "type"))) {
      r.what = outcome::skipped;
      r.detail = text_of(entry, "type");
    } else {
      try {
        r.detail = layer_case(directory / r.name, entry).run(*device);
        r.what = r.detail.empty() ? outcome::passed : outcome::failed;
      } catch (const std::exception& e) {
        r.what = outcome::failed;
        r.detail = e.what();
      }
    }
    results.push_back(std::move(r));
  }
  return results;
}

}  // namespace poseidon::oracle
