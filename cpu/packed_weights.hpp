// cpu/packed_weights.hpp - for Convolution and Deconvolution: a fast primitive of oneDNN for some
// layouts, and weights in the layout that this primitive wants.
#pragma once
#include "cpu/layer.hpp"

#include <initializer_list>
#include <optional>
#include <utility>

namespace poseidon::cpu {

/// Tries `make(layouts)` with each pair of layouts and takes the first that oneDNN has a fast kernel for, else the
/// last that it has any kernel for.
template <class Make>
[[nodiscard]] auto first_fast(std::initializer_list<convolution_layouts> candidates, Make make)
    -> std::pair<decltype(make(convolution_layouts{})), convolution_layouts> {
  std::optional<std::pair<decltype(make(convolution_layouts{})), convolution_layouts>> found;
  for (const convolution_layouts& layouts : candidates) {
    try {
      auto d = make(layouts);
      const bool slow = is_reference(d);
      if (!found || !slow) found.emplace(d, layouts);
      if (!slow) break;
    } catch (const dnnl::error& e) {
      if (e.status != dnnl_unimplemented) throw;
    }
  }
  if (!found) throw dnnl::error(dnnl_unimplemented, "no convolution kernel for these shapes");
  return *found;
}

/// Weights in the layout and type that a primitive wants, packed again from Caffe's when they have changed.
class packed_weights {
 public:
  packed_weights() = default;
  packed_weights(dnnl_run& run, parameter_reader source, const dnnl_desc& plain,
                 const dnnl_desc& wanted)
      : source_(source), pack_(reorder_step(run, plain, wanted)) {
    if (pack_.made()) own_ = buffer((wanted.get_size() + sizeof(float) - 1) / sizeof(float));
  }
  const float* load() {
    if (!pack_.made()) return source_.values();
    if (source_.changed()) {
      pack_.point(DNNL_ARG_FROM, source_.values());
      pack_.point(DNNL_ARG_TO, own_.data());
      pack_.run();
    }
    return own_.data();
  }

 private:
  parameter_reader source_;
  dnnl_step pack_;
  buffer own_;
};

/// Weights in the layout that the primitive chooses, of the type of a bottom in this layout.
[[nodiscard]] inline dnnl_desc any_layout(const dnnl::memory::dims& d,
                                          layout like = layout::plain) {
  return {d, type_of(like), dnnl::memory::format_tag::any};
}

}  // namespace poseidon::cpu
