// Sources that state their own shapes; the shapes of data layers come from data/.
#include "models/net/layer_rules.hpp"
#include "models/words.hpp"

namespace poseidon {

namespace {

shape checked(const layer_question& q, shape s) {
  for (const auto extent : s)
    q.require(extent > 0, "its shape " + to_string(s) + " has an extent below 1.");
  return s;
}

/// One shape for all tops, or one for each.
layer_answer by_top(const layer_question& q,
                    const google::protobuf::RepeatedPtrField<caffe::BlobShape>& shapes) {
  const auto n = static_cast<std::size_t>(shapes.size());
  q.require(n == 1 || n == q.tops, "it has " + plural(n, "shape") + " for " +
                                       plural(q.tops, "top") + ". Give one, or one per top.");
  layer_answer a;
  for (std::size_t i = 0; i < q.tops; ++i) {
    const auto& dims = shapes.Get(n == 1 ? 0 : static_cast<int>(i)).dim();
    a.tops.push_back(checked(q, {dims.begin(), dims.end()}));
  }
  return a;
}

}  // namespace

layer_answer input_rule(const layer_question& q) {
  return by_top(q, q.spec.input_param().shape());
}

layer_answer dummy_data_rule(const layer_question& q) {
  const auto& p = q.spec.dummy_data_param();
  const auto fillers = static_cast<std::size_t>(p.data_filler_size());
  q.require(fillers <= 1 || fillers == q.tops, "it has " + plural(fillers, "data_filler") +
                                                   " for " + plural(q.tops, "top") +
                                                   ". Give none, one, or one per top.");
  for (const auto& filler : p.data_filler()) check_filler(q, filler);
  const bool old = p.num_size() + p.channels_size() + p.height_size() + p.width_size() > 0;
  if (!old) return by_top(q, p.shape());
  q.require(p.shape_size() == 0,
            "both shape and the older num, channels, height, width are given. Keep shape.");
  const auto extent = [&](const auto& values, const std::string& name,
                          std::size_t top) -> std::int64_t {
    const auto n = static_cast<std::size_t>(values.size());
    q.require(n == 1 || n == q.tops, name + " is given " + plural(n, "time") + " for " +
                                         plural(q.tops, "top") +
                                         ". Give it once, or once per top.");
    return values.Get(n == 1 ? 0 : static_cast<int>(top));
  };
  layer_answer a;
  for (std::size_t i = 0; i < q.tops; ++i)
    a.tops.push_back(checked(q, {extent(p.num(), "num", i), extent(p.channels(), "channels", i),
                                 extent(p.height(), "height", i), extent(p.width(), "width", i)}));
  return a;
}

}  // namespace poseidon
