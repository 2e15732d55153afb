// Long because the plain, blocked and masked forms of one product stand side by side, to be read together.
#include "cpu/layers/sparse_convolution.hpp"

#include "cpu/fusion.hpp"
#include "cpu/kernels/compress.hpp"
#include "cpu/kernels/gather.hpp"
#include "cpu/kernels/padded_image.hpp"
#include "models/net/pool_shape.hpp"

#include <algorithm>
#include <cstring>
#include <immintrin.h>
#include <limits>
#include <optional>

namespace poseidon::cpu {
namespace {

// Floats of each kind that stay in a first-level cache of 32 KiB beside the others.
constexpr std::size_t cached_floats = 5 * 1024;   ///< floats of x
constexpr std::size_t cached_weights = 6 * 1024;  ///< weights of one kernel row, over channels
// Weights of one kernel row over all channels, above which gathering them leaves the caches and
// dense kernels win: after pooling at least two thirds of the work is saved, after a ReLU half of
// it.
constexpr std::size_t most_row_weights_pooled = 48 * 1024;
constexpr std::size_t most_row_weights_relu = 12 * 1024;
// Share of gradients that are not zero, above which dense kernels win: tools/bench/net_bench.cpp on
// cifar10_quick.
constexpr double densest = 0.55;

/// The layers after the convolution that its backward stands for.
struct pooled_tail {
  std::size_t pooling;
  std::optional<following_relu> relu;  ///< in place before the pooling or after it
};

std::optional<pooled_tail> tail_of(const layer_context& c) {
  const net& n = c.state.graph;
  const auto before = relu_in_place_after(c);
  const auto next = consumer(n, c.layer.tops[0], before ? before->layer : c.index);
  if (!next) return std::nullopt;
  const net_layer& l = n.layers[*next];
  const auto& p = l.spec.pooling_param();
  if (l.type != "Pooling" || p.pool() != ::caffe::PoolingParameter::MAX || l.tops.size() != 1) {
    return std::nullopt;
  }
  if (before) return pooled_tail{*next, before};
  return pooled_tail{*next, relu_in_place_after({c.state, l, *next})};
}

/// Where the gradients come from: a pooling's top with its choices, or the convolution's own top.
struct gradient_source {
  cpu_blob* blob = nullptr;
  pool_shape windows;                     ///< 1x1 windows for the convolution's own top
  std::shared_ptr<pooled_choice> choice;  ///< null for the convolution's own top
  std::optional<following_relu> relu;     ///< whose mask has still to be applied
};

class sparse_kernel final : public sparse_backward {
 public:
  sparse_kernel(const layer_context& c, const convolution_shape& s, gradient_source source)
      : image_{static_cast<std::size_t>(c.bottom_shape(0)[2]),
               static_cast<std::size_t>(c.bottom_shape(0)[3]), s.in,
               static_cast<std::size_t>(s.pad[0]), static_cast<std::size_t>(s.pad[1])},
        out_(s.out),
        kernel_h_(static_cast<std::size_t>(s.kernel[0])),
        kernel_w_(static_cast<std::size_t>(s.kernel[1])),
        samples_(static_cast<std::size_t>(c.bottom_shape(0)[0])),
        bottom_(&c.bottom(0)),
        source_(std::move(source)),
        windows_(source_.windows),
        slope_(source_.relu ? source_.relu->slope : 1),
        weights_(c.parameter(0)),
        weight_gradient_(c.gradient(0)),
        bias_gradient_(s.bias ? c.gradient(1) : gradient_slot()) {
    row_ = (kernel_w_ * s.in + 7) / 8 * 8;
    column_step_ = static_cast<std::int32_t>(s.stride[1] * static_cast<std::int64_t>(s.in));
    line_step_ =
        static_cast<std::int32_t>(s.stride[0] * static_cast<std::int64_t>(image_.row_step()));
    // So many rows of windows at a time that what they read of x stays in the first-level cache.
    const auto line =
        static_cast<std::size_t>(line_step_) * static_cast<std::size_t>(windows_.stride_h);
    const std::size_t around = kernel_h_ * image_.row_step();
    rows_at_once_ = static_cast<int>(
        std::max<std::size_t>(2, around < cached_floats ? (cached_floats - around) / line : 0));
    const bool wide = has_wide_vectors();
    gather_patches_ = gatherer({kernel_h_, kernel_w_ * s.in, row_, image_.row_step()}, wide);
    gather_weights_ = gatherer({1, kernel_w_ * s.in, 0, 0}, wide);
    x_ = buffer(image_.size() + row_);
    list_size_ = windows_.out_plane() + 8;
    terms_.resize(8 * list_size_);
    numbers_.resize(8 * list_size_);
    tap_places_.resize(256);
    tap_numbers_.resize(256);
    for (int tap = 0; tap < windows_.kernel_h * windows_.kernel_w; ++tap) {
      const int h = tap / windows_.kernel_w;
      const int w = tap % windows_.kernel_w;
      tap_places_[static_cast<std::size_t>(tap)] = h * line_step_ + w * column_step_;
      tap_numbers_[static_cast<std::size_t>(tap)] = h * windows_.width + w;
    }
    for (int h = 0; h < windows_.out_height; ++h) {
      for (int w = 0; w < windows_.out_width; ++w) {
        const int top = h * windows_.stride_h - windows_.pad_h;
        const int left = w * windows_.stride_w - windows_.pad_w;
        window_places_.push_back(top * line_step_ + left * column_step_);
        window_numbers_.push_back(top * windows_.width + left);
      }
    }
    window_places_.resize(window_places_.size() + 8);
    if (weight_gradient_.wanted()) dw_ = buffer(out_ * kernel_h_ * row_);
    db_.resize((out_ + 7) / 8 * 8);
    if (!c.wants_diff(0)) return;
    wants_dx_ = true;
    dx_ = buffer(image_.size() + row_);
    packed_ = buffer(kernel_h_ * out_ * row_);
    all_.reserve(out_ * windows_.out_plane());
    sorted_.resize(out_ * windows_.out_plane() + 8);
    places_.resize(windows_.in_plane() + 1);
  }

  /// Counts in pieces spread over the batch, so that the answer costs little and depends on values only.
  bool worthwhile() const override {
    constexpr std::size_t piece = 64, pieces = 512;
    const float *dy = source_.blob->diff, *y = source_.blob->data;
    const std::size_t size = source_.blob->stored();
    // An odd number of pieces apart: not at the same place of every image.
    const std::size_t step = (std::max<std::size_t>(1, size / piece / pieces) | 1) * piece;
    const float least = slope_ != 0 ? -std::numeric_limits<float>::infinity() : 0.0f;
    std::size_t some = 0, all = 0;
    for (std::size_t at = 0; at < size; at += step) {
      const std::size_t end = std::min(at + piece, size);
      int found = 0;
      for (std::size_t i = at; i < end; ++i)
        found += static_cast<int>(dy[i] != 0) & static_cast<int>(y[i] > least);
      some += static_cast<std::size_t>(found);
      all += end - at;
    }
    return static_cast<double>(some) < densest * static_cast<double>(all);
  }

  void backward(const pass&) override {
    std::fill_n(dw_.data(), dw_.size(), 0.0f);
    std::fill(db_.begin(), db_.end(), 0.0f);
    if (wants_dx_ && weights_.changed()) pack_weights();
    const std::size_t x_step = bottom_->stored() / samples_;
    for (std::size_t n = 0; n < samples_; ++n) {
      if (weight_gradient_.wanted())
        image_.pack(bottom_->form, bottom_->data + n * x_step, x_.data());
      all_.clear();
      for (int row = 0; row < windows_.out_height; row += rows_at_once_) {
        const int end = std::min(row + rows_at_once_, windows_.out_height);
        for (std::size_t c = 0; c < out_; c += 8) {
          source_.choice ? collect<true>(n, c, row, end) : collect<false>(n, c, row, end);
          for (std::size_t lane = 0; lane < std::min<std::size_t>(8, out_ - c); ++lane)
            use_channel(c + lane, lane);
        }
      }
      if (wants_dx_) write_dx(n);
    }
    finish();
  }

 private:
  /// Eight channels' gradients at one window, the ReLU's mask applied.
  [[nodiscard]] __m256 gradient_at(const float* dy, const float* y) const {
    const __m256 g = _mm256_loadu_ps(dy);
    if (!source_.relu) return g;
    const __m256 positive = _mm256_cmp_ps(_mm256_loadu_ps(y), _mm256_setzero_ps(), _CMP_GT_OQ);
    return _mm256_blendv_ps(_mm256_mul_ps(g, _mm256_set1_ps(slope_)), g, positive);
  }

  /// Where eight channels of one image begin in the source's memory.
  [[nodiscard]] std::size_t channels_start(std::size_t sample, std::size_t channel) const {
    const std::size_t block = block_of(source_.blob->form);
    const std::size_t plane = sample * ((out_ + block - 1) / block) + channel / block;
    return plane * windows_.out_plane() * block + channel % block;
  }

  /// The gradients of eight channels from rows [row, end) of one image's windows, zeros left out,
  /// as terms by channel; their sums go into db_. Eight windows at a time: a square of values,
  /// turned over.
  template <bool Pooled>
  void collect(std::size_t sample, std::size_t channel, int row, int end) {
    const std::size_t block = block_of(source_.blob->form);
    const std::size_t start = channels_start(sample, channel);
    const auto width = static_cast<std::size_t>(windows_.out_width);
    const std::size_t last = static_cast<std::size_t>(end) * width;
    std::fill_n(counts_, 8, std::size_t{0});
    __m256 sum = _mm256_loadu_ps(db_.data() + channel);
    for (std::size_t i = static_cast<std::size_t>(row) * width; i < last; i += 8) {
      const std::size_t here = std::min<std::size_t>(8, last - i);
      __m256 scales[8], offsets[8], numbers[8];
      for (std::size_t k = 0; k < 8; ++k) {
        scales[k] = offsets[k] = numbers[k] = _mm256_setzero_ps();
        if (k >= here) continue;
        const std::size_t at = start + (i + k) * block;
        scales[k] = gradient_at(source_.blob->diff + at, source_.blob->data + at);
        sum = _mm256_add_ps(sum, scales[k]);
        if constexpr (Pooled) {
          const auto* choice = reinterpret_cast<const __m128i*>(source_.choice->at.data() + at);
          const __m256i tap = _mm256_cvtepu8_epi32(_mm_loadl_epi64(choice));
          offsets[k] = _mm256_castsi256_ps(
              _mm256_add_epi32(_mm256_i32gather_epi32(tap_places_.data(), tap, 4),
                               _mm256_set1_epi32(window_places_[i + k])));
          if (!wants_dx_) continue;
          numbers[k] = _mm256_castsi256_ps(
              _mm256_add_epi32(_mm256_i32gather_epi32(tap_numbers_.data(), tap, 4),
                               _mm256_set1_epi32(window_numbers_[i + k])));
        }
      }
      transpose(scales);
      if constexpr (Pooled) {
        transpose(offsets);
        if (wants_dx_) transpose(numbers);
      }
      const __m256i places =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(window_places_.data() + i));
      for (std::size_t lane = 0; lane < 8; ++lane) {
        const std::size_t next = lane * list_size_ + counts_[lane];
        if (Pooled && wants_dx_) {
          append_beside(_mm256_castps_si256(numbers[lane]), scales[lane], numbers_.data() + next);
        }
        counts_[lane] += append_nonzero(Pooled ? _mm256_castps_si256(offsets[lane]) : places,
                                        scales[lane], terms_.data() + next);
      }
    }
    _mm256_storeu_ps(db_.data() + channel, sum);
  }

  void use_channel(std::size_t channel, std::size_t lane) {
    const sparse_term* terms = terms_.data() + lane * list_size_;
    const std::size_t count = counts_[lane];
    if (weight_gradient_.wanted()) {
      gather_patches_(terms, count, x_.data(), dw_.data() + channel * kernel_h_ * row_);
    }
    if (!wants_dx_ || !source_.choice) return;
    const auto from = static_cast<std::int32_t>(channel * row_);
    const std::int32_t* numbers = numbers_.data() + lane * list_size_;
    for (std::size_t i = 0; i < count; ++i) all_.push_back({numbers[i], {from, terms[i].scale}});
  }

  /// Lists by place of channels [from, to), in order at each, from the convolution's own top: they
  /// lie there so.
  void list_places(std::size_t sample, std::size_t from, std::size_t to) {
    const std::size_t block = block_of(source_.blob->form);
    const __m256i lanes = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                             _mm256_set1_epi32(static_cast<int>(row_)));
    std::size_t next = 0;
    places_[0] = 0;
    for (std::size_t p = 0; p < windows_.out_plane(); ++p) {
      for (std::size_t c = from; c < to; c += 8) {
        const std::size_t at = channels_start(sample, c) + p * block;
        const __m256i rows = _mm256_add_epi32(lanes, _mm256_set1_epi32(static_cast<int>(c * row_)));
        next += append_nonzero(rows, gradient_at(source_.blob->diff + at, source_.blob->data + at),
                               sorted_.data() + next);
      }
      places_[p + 1] = static_cast<std::uint32_t>(next);
    }
  }

  /// Fills the lists of the places from a pooling's terms, which have to be sorted: a place may be the maximum of two
  /// windows.
  void sort_places() {
    std::fill(places_.begin(), places_.end(), 0u);
    for (const placed_term& t : all_) ++places_[static_cast<std::size_t>(t.number) + 1];
    for (std::size_t i = 1; i < places_.size(); ++i) places_[i] += places_[i - 1];
    starts_.assign(places_.begin(), places_.end());
    for (const placed_term& t : all_)
      sorted_[starts_[static_cast<std::size_t>(t.number)]++] = t.term;
  }

  void write_dx(std::size_t sample) {
    std::fill_n(dx_.data(), dx_.size(), 0.0f);
    if (source_.choice) {
      sort_places();
      add_weights();
    } else {  // in groups of channels whose weights stay in the first-level cache
      const std::size_t group = std::max<std::size_t>(8, cached_weights / row_ / 8 * 8);
      for (std::size_t c = 0; c < out_; c += group) {
        list_places(sample, c, std::min(c + group, out_));
        add_weights();
      }
    }
    image_.unpack(bottom_->form, dx_.data(),
                  bottom_->diff + sample * (bottom_->stored() / samples_));
  }

  /// A place's row of the diff stays in registers while all listed channels add their weights.
  void add_weights() {
    const auto width = static_cast<std::size_t>(windows_.width);
    for (std::size_t k = 0; k < kernel_h_; ++k) {
      const float* weights = packed_.data() + k * out_ * row_;
      float* dx = dx_.data() + k * image_.row_step();
      for (std::size_t p = 0; p + 1 < places_.size(); ++p) {
        const std::size_t count = places_[p + 1] - places_[p];
        if (count == 0) continue;
        const std::size_t at = p / width * static_cast<std::size_t>(line_step_) +
                               p % width * static_cast<std::size_t>(column_step_);
        gather_weights_(sorted_.data() + places_[p], count, weights, dx + at);
      }
    }
  }

  /// Caffe's [out, in, h, w] as [h, out, row of (w, in)], rows padded with zeros.
  void pack_weights() {
    const float* w = weights_.values();
    for (std::size_t o = 0; o < out_; ++o) {
      for (std::size_t c = 0; c < image_.channels; ++c) {
        for (std::size_t h = 0; h < kernel_h_; ++h) {
          float* row = packed_.data() + (h * out_ + o) * row_ + c;
          for (std::size_t k = 0; k < kernel_w_; ++k) row[k * image_.channels] = *w++;
        }
      }
    }
  }

  void finish() {
    if (weight_gradient_.wanted()) {
      float* g = weight_gradient_.begin();
      for (std::size_t o = 0; o < out_; ++o) {
        for (std::size_t c = 0; c < image_.channels; ++c) {
          for (std::size_t h = 0; h < kernel_h_; ++h) {
            const float* row = dw_.data() + (o * kernel_h_ + h) * row_ + c;
            for (std::size_t k = 0; k < kernel_w_; ++k) *g++ = row[k * image_.channels];
          }
        }
      }
      weight_gradient_.end();
    }
    if (bias_gradient_.wanted()) {
      std::copy_n(db_.begin(), out_, bias_gradient_.begin());
      bias_gradient_.end();
    }
  }

  struct placed_term {
    std::int32_t number;  ///< place in the convolution's output plane
    sparse_term term;
  };

  padded_image image_;
  std::size_t out_, kernel_h_, kernel_w_, samples_;
  cpu_blob* bottom_;
  gradient_source source_;
  pool_shape windows_;
  float slope_;
  parameter_reader weights_;
  gradient_slot weight_gradient_, bias_gradient_;
  int rows_at_once_ = 1;
  std::size_t row_ = 0;                           ///< floats of a window row, rounded up to eight
  std::int32_t column_step_ = 0, line_step_ = 0;  ///< floats in x between neighbouring outputs
  bool wants_dx_ = false;
  buffer x_, dw_, dx_, packed_;
  std::vector<float> db_;
  std::vector<sparse_term> terms_, sorted_;
  gatherer gather_patches_, gather_weights_;
  std::size_t counts_[8] = {};
  std::vector<placed_term> all_;
  /// By tap of a window, as the choice names it.
  std::vector<std::int32_t> tap_places_, tap_numbers_;
  std::vector<std::int32_t> window_places_, window_numbers_;  ///< by window: its corner
  std::size_t list_size_ = 0;                                 ///< room per channel in terms_
  std::vector<std::int32_t> numbers_;                         ///< beside terms_
  std::vector<std::uint32_t> places_, starts_;
};

bool suits(const layer_context& c, const convolution_shape& s, std::size_t most_row_weights) {
  if (c.state.options.keep_all_diffs || !c.layer.needs_backward) return false;
  // Dense products of bfloat16 are faster than these of float32.
  if (is_bf16(c.bottom(0).form) || is_bf16(c.top(0).form)) return false;
  if (s.axes() != 2 || s.groups != 1 || c.layer.bottoms.size() != 1) return false;
  const std::size_t row_weights = s.out * static_cast<std::size_t>(s.kernel[1]) * s.in;
  return s.dilation[0] == 1 && s.dilation[1] == 1 && row_weights <= most_row_weights;
}

}  // namespace

std::unique_ptr<sparse_backward> make_pooled_backward(const layer_context& c,
                                                      const convolution_shape& s) {
  if (!suits(c, s, most_row_weights_pooled)) return nullptr;
  const auto tail = tail_of(c);
  if (!tail) return nullptr;
  const net_layer& pooling = c.state.graph.layers[tail->pooling];
  cpu_blob& pooled = c.state.blobs[pooling.tops[0]];
  if (pooled.form == layout::plain || pooled.form != c.top(0).form || pooled.diff == nullptr)
    return nullptr;
  const pool_shape p = resolve_pooling(pooling, c.top_shape(0), *pooled.extents);
  if (p.kernel_h * p.kernel_w > 256) return nullptr;
  // Where more than about a third of the diff is not zero, the dense kernels are faster.
  if (10 * p.out_plane() > 3 * p.in_plane()) return nullptr;
  const auto choice = std::make_shared<pooled_choice>();
  c.state.choices[tail->pooling] = choice;
  c.state.backward_fused[tail->pooling] = true;
  if (tail->relu) c.state.backward_fused[tail->relu->layer] = true;
  return std::make_unique<sparse_kernel>(c, s, gradient_source{&pooled, p, choice, tail->relu});
}

std::unique_ptr<sparse_backward> make_relu_backward(const layer_context& c,
                                                    const convolution_shape& s) {
  const auto relu = relu_in_place_after(c);
  cpu_blob& top = c.top(0);
  if (!suits(c, s, most_row_weights_relu) || !relu || relu->slope != 0 ||
      top.form == layout::plain || top.diff == nullptr)
    return nullptr;
  pool_shape single;
  single.height = single.out_height = static_cast<int>((*top.extents)[2]);
  single.width = single.out_width = static_cast<int>((*top.extents)[3]);
  single.kernel_h = single.kernel_w = 1;
  c.state.backward_fused[relu->layer] = true;
  return std::make_unique<sparse_kernel>(c, s, gradient_source{&top, single, nullptr, relu});
}

}  // namespace poseidon::cpu
