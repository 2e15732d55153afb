// Kernels over bfloat16 give what they give over float32 for the same numbers, rounded once: they compute in float32.
#include "gpu/kernels/channels.hpp"
#include "gpu/kernels/copies.hpp"
#include "gpu/kernels/elementwise.hpp"
#include "gpu/kernels/lrn.hpp"
#include "gpu/kernels/pooling.hpp"
#include "gpu/runtime/library.hpp"
#include "gpu/simulated/control.hpp"
#include "tests/cpu/hand_net.hpp"
#include "tests/gpu/streams/typed_memory.hpp"

#include <doctest/doctest.h>

#include <functional>

using namespace poseidon;
using namespace poseidon::gpu;
using poseidon::test::noise;
using poseidon::test::typed_memory;

namespace {

float rounded(float v) {
  return to_float(round_to<bfloat16>(v));
}

/// Noise that is the same in both types.
std::vector<float> exact_noise(std::size_t n, std::uint32_t seed) {
  auto v = noise(n, seed);
  for (float& x : v) x = rounded(x);
  return v;
}

/// One kernel in one type: blobs of that type, and floats.
struct trial {
  explicit trial(value_type t) : type(t) {}

  value_type type;
  stream s{0, stream_use::compute};
  std::vector<std::unique_ptr<typed_memory>> memory;
  std::vector<std::size_t> blobs, floats;  // of `memory`: results

  values in(std::size_t n) { return add(type, exact_noise(n, ++seed_)); }
  values out(std::size_t n) {
    blobs.push_back(memory.size());
    return add(type, std::vector<float>(n, 7));
  }
  /// Memory that a kernel overwrites.
  values changed(std::size_t n) {
    blobs.push_back(memory.size());
    return in(n);
  }
  float* floats_in(std::size_t n) { return add(value_type::float32, exact_noise(n, ++seed_)); }
  float* floats_out(std::size_t n) {
    floats.push_back(memory.size());
    return add(value_type::float32, std::vector<float>(n, 7));
  }
  std::int32_t* integers(std::size_t n) { return reinterpret_cast<std::int32_t*>(floats_out(n)); }
  std::byte* scratch(const channel_shape& c) {
    return reinterpret_cast<std::byte*>(static_cast<float*>(
        add(value_type::float32, std::vector<float>(sum_scratch_bytes(c) / 4))));
  }

 private:
  values add(value_type t, const std::vector<float>& of) {
    memory.push_back(std::make_unique<typed_memory>(t, of));
    return memory.back()->at();
  }
  std::uint32_t seed_ = 0;
};

void check_types_agree(const std::string& name, const std::function<void(trial&)>& run) {
  CAPTURE(name);
  simulated::configure({});
  trial whole(value_type::float32), half(value_type::bfloat16);
  for (trial* t : {&whole, &half}) {
    run(*t);
    finish(t->s);
  }
  REQUIRE(whole.blobs == half.blobs);
  for (const std::size_t b : whole.blobs) {
    auto wanted = whole.memory[b]->read();
    for (float& v : wanted) v = rounded(v);
    CHECK(half.memory[b]->read() == wanted);
  }
  for (const std::size_t f : whole.floats) CHECK(half.memory[f]->read() == whole.memory[f]->read());
}

constexpr std::size_t n = 2 * 3 * 3 * 16;
const channel_shape places{18, 16, 1}, rest{18, 5, 1};  // packs fill the first

}  // namespace

TEST_CASE("typed kernels: value by value") {
  using kind = activation::kind;
  for (const kind k : {kind::relu, kind::sigmoid, kind::elu, kind::soft_plus, kind::swish}) {
    const activation f{k, 0.25f};
    check_types_agree("apply", [&](trial& t) { apply(t.s, f, n, t.in(n), t.out(n)); });
    check_types_agree("apply_derivative", [&](trial& t) {
      apply_derivative(t.s, f, n, t.in(n), t.in(n), t.in(n), t.out(n));
    });
  }
  check_types_agree("scale", [](trial& t) { scale(t.s, n, 0.3f, t.in(n), t.out(n)); });
  check_types_agree("fill", [](trial& t) { fill(t.s, n, 0.3f, t.out(n)); });
  check_types_agree("multiply", [](trial& t) { multiply(t.s, n, t.in(n), t.in(n), t.out(n)); });
  check_types_agree("add_scaled", [](trial& t) {
    add_scaled(t.s, n, 0.3f, t.in(n), -1.7f, t.in(n), t.out(n), 0.1f);
  });
  check_types_agree("add_up", [](trial& t) {
    const const_values all[] = {t.in(n), t.in(n), t.in(n), t.in(n)};
    for (const std::size_t blobs : {2, 3, 4}) add_up(t.s, n, std::span(all).first(blobs), t.out(n));
  });
  check_types_agree("add_scaled_backward", [](trial& t) {
    add_scaled_backward(t.s, n, 0.1f, t.in(n), t.in(n), nullptr, 0.3f, t.out(n), 2, t.out(n));
    add_scaled_backward(t.s, n, 0.1f, t.in(n), t.in(n), t.in(n), 0.3f, t.out(n), 2, nullptr);
  });
  check_types_agree("take_larger", [](trial& t) {
    const auto winner = t.integers(n);
    take_larger(t.s, n, t.in(n), true, 1, t.changed(n), winner);
    give_to_winner(t.s, n, 1, winner, t.in(n), t.out(n));
  });
}

TEST_CASE("typed kernels: by channel") {
  for (const channel_shape& c : {places, rest}) {
    const std::size_t size = c.values(), channels = c.channels;
    check_types_agree("scale_channels", [&](trial& t) {
      scale_channels(t.s, c, t.in(size), t.floats_in(channels), t.floats_in(channels), t.out(size),
                     0.1f);
    });
    check_types_agree("sum_channels", [&](trial& t) {
      sum_channels(t.s, c, t.in(size), t.floats_out(channels), t.scratch(c));
    });
    for (const bool scratch : {true, false})
      check_types_agree("sum_channels_of_relu", [&](trial& t) {
        sum_channels_of_relu(t.s, c, t.in(size), 0, t.changed(size), t.floats_out(channels),
                             scratch ? t.scratch(c) : nullptr);
      });
    check_types_agree("dot_channels", [&](trial& t) {
      dot_channels(t.s, c, t.in(size), t.in(size), t.floats_out(channels), t.scratch(c));
    });
    check_types_agree("prelu", [&](trial& t) {
      for (const bool shared : {false, true}) {
        const auto slope = t.floats_in(channels);
        const values x = t.in(size), dy = t.in(size);
        prelu_forward(t.s, c, x, slope, shared, t.out(size));
        prelu_backward(t.s, c, x, slope, shared, dy, t.out(size));
        prelu_gradient(t.s, c, x, shared, dy, t.floats_out(shared ? 1 : channels), t.scratch(c));
      }
    });
    check_types_agree("normalize", [&](trial& t) {
      const channel_statistics found{t.floats_out(channels), t.floats_out(channels),
                                     t.floats_out(channels)};
      const values x = t.in(size), y = t.in(size), dy = t.in(size);
      find_statistics(t.s, c, 1e-5f, x, found, t.scratch(c));
      normalize(t.s, c, x, found, t.out(size), t.out(size));
      normalize_backward(t.s, c, y, dy, found.scale, t.floats_out(2 * channels), t.out(size),
                         t.scratch(c));
    });
    check_types_agree("normalize_scaled", [&](trial& t) {
      const channel_statistics with{t.floats_in(channels), t.floats_in(channels),
                                    t.floats_in(channels)};
      const auto factor = t.floats_in(channels), bias = t.floats_in(channels),
                 means = t.floats_out(2 * channels);
      const scaled_relu after{t.floats_out(channels), t.floats_out(channels), 0};
      const values x = t.in(size), dy = t.in(size);
      normalize_scaled(t.s, c, x, with, factor, bias, 0, t.out(size), t.out(size));
      normalize_scale_and_add(t.s, c, x, with, factor, bias, 2, -0.5f, dy, 0.1f, t.out(size));
      sum_scaled(t.s, c, x, with, dy, factor, bias, after, t.floats_out(channels),
                 t.floats_out(channels), means, t.scratch(c));
      normalize_scaled_backward(t.s, c, x, with, dy, after, means, t.out(size));
    });
    check_types_agree("lrn", [&](trial& t) {
      lrn_shape l;
      l.over = c;
      const auto sums = t.floats_out(size);
      const values x = t.in(size), y = t.in(size), dy = t.in(size);
      lrn_forward(t.s, l, x, t.out(size), sums);
      lrn_backward(t.s, l, x, y, sums, dy, t.out(size));
    });
  }
}

TEST_CASE("typed kernels: pooling") {
  pool_shape p;
  p.height = p.width = 6;
  p.out_height = p.out_width = 3;
  p.kernel_h = p.kernel_w = 3;
  p.stride_h = p.stride_w = 2;
  for (const std::size_t channels : {5, 16}) {
    const pool_planes planes{2, channels};
    const std::size_t in = planes.values(36), out = planes.values(9);
    check_types_agree("max_pool", [&](trial& t) {
      const auto choice = t.integers(out);
      max_pool(t.s, p, planes, t.in(in), t.out(out), choice);
      spread_to_choice(t.s, p, planes, choice, t.in(out), t.out(in));
      // -1, as a float, is not equal to itself, so these are compared by what they lead to.
      auto* const positive = reinterpret_cast<std::int32_t*>(t.floats_in(out));
      max_pool(t.s, p, planes, t.in(in), t.out(out), positive, true);
      spread_to_choice(t.s, p, planes, positive, t.in(out), t.out(in));
    });
    check_types_agree("ave_pool", [&](trial& t) {
      ave_pool(t.s, p, planes, t.in(in), t.out(out));
      ave_pool_backward(t.s, p, planes, t.in(out), t.out(in));
    });
    check_types_agree("weighted_pool",
                      [&](trial& t) { weighted_pool(t.s, p, planes, t.in(in), t.out(out)); });
  }
}

/// Of `numbers`, behind as many values as say whether packs can be read.
struct shifted {
  shifted(value_type t, std::size_t by, std::vector<float> numbers)
      : shift(by), memory(t, (numbers.insert(numbers.begin(), by, 0.0f), numbers)) {}
  [[nodiscard]] values at() const { return memory.at() + shift; }
  [[nodiscard]] std::vector<float> read() const {
    const auto all = memory.read();
    return {all.begin() + static_cast<long>(shift), all.end()};
  }
  std::size_t shift;
  typed_memory memory;
};

TEST_CASE("pooling: several planes at once give what each alone gives") {
  simulated::configure({});
  pool_shape p;
  p.height = 5, p.width = 4;
  p.out_height = 3, p.out_width = 2;
  p.kernel_h = p.kernel_w = 3;
  p.stride_h = p.stride_w = 2;
  p.pad_h = 1;
  const pool_planes planes{3, 16};
  const std::size_t in = planes.values(20), out = planes.values(6);
  for (const auto type : {value_type::float32, value_type::bfloat16}) {
    std::vector<std::vector<float>> results[2];
    for (const std::size_t shift : {0, 1}) {
      stream s{0, stream_use::compute};
      const shifted x(type, shift, exact_noise(in, 1)), dy(type, shift, exact_noise(out, 2));
      const shifted chosen(value_type::float32, 0, std::vector<float>(out));
      const auto choice = reinterpret_cast<std::int32_t*>(static_cast<float*>(chosen.at()));
      const shifted y(type, shift, std::vector<float>(out)),
          mean(type, shift, std::vector<float>(out));
      const shifted dx(type, shift, std::vector<float>(in)),
          spread(type, shift, std::vector<float>(in));
      max_pool(s, p, planes, x.at(), y.at(), choice);
      spread_to_choice(s, p, planes, choice, dy.at(), dx.at());
      ave_pool(s, p, planes, x.at(), mean.at());
      ave_pool_backward(s, p, planes, dy.at(), spread.at());
      finish(s);
      for (const auto* each : {&y, &dx, &mean, &spread}) results[shift].push_back(each->read());
    }
    CHECK(results[0] == results[1]);
  }
}

TEST_CASE("lrn: several channels at once give what each alone gives") {
  simulated::configure({});
  for (const std::size_t channels : {8, 24}) {
    lrn_shape l;
    l.over = {5, channels, 1};
    const std::size_t size = l.over.values();
    for (const auto type : {value_type::float32, value_type::bfloat16}) {
      CAPTURE(channels);
      std::vector<std::vector<float>> results[2];
      for (const std::size_t shift : {0, 1}) {
        stream s{0, stream_use::compute};
        const shifted x(type, shift, exact_noise(size, 1)), dy(type, shift, exact_noise(size, 2));
        const shifted y(type, shift, std::vector<float>(size)),
            dx(type, shift, std::vector<float>(size));
        const shifted sums(value_type::float32, shift, std::vector<float>(size));
        lrn_forward(s, l, x.at(), y.at(), sums.at());
        lrn_backward(s, l, x.at(), y.at(), sums.at(), dy.at(), dx.at());
        finish(s);
        for (const auto* each : {&y, &sums, &dx}) results[shift].push_back(each->read());
      }
      CHECK(results[0] == results[1]);
    }
  }
}

TEST_CASE("typed kernels: copies, in packs and one by one") {
  for (const std::size_t length : {8, 5}) {
    check_types_agree("copy_runs", [&](trial& t) {
      copy_runs(t.s, {6, length, length, 3 * length}, t.in(6 * length),
                t.out(18 * length) + length);
    });
    check_types_agree("copy_runs", [&](trial& t) {
      copy_runs(t.s, {6, length, 3 * length, length}, t.in(18 * length) + 1, t.out(6 * length));
    });
  }
  check_types_agree("copy_values", [](trial& t) { copy_values(t.s, n, t.in(n), t.out(n)); });
  check_types_agree("turn", [](trial& t) { turn(t.s, 2, 9, 16, t.in(n), t.out(n)); });
  // From one type to the other and back.
  trial t(value_type::float32);
  const typed_memory half(value_type::bfloat16, std::vector<float>(n));
  turn(t.s, 2, 9, 16, t.in(n), half.at());
  turn(t.s, 2, 16, 9, half.at(), t.out(n));
  finish(t.s);
  CHECK(t.memory[1]->read() == exact_noise(n, 1));
  CHECK_THROWS_AS(copy_values(t.s, n, half.at(), t.in(n)), const error&);
}

TEST_CASE("typed kernels: convolutions, in all directions") {
  convolution_shape c;
  c.axes = 2;
  c.batch = 2;
  c.in = 4;
  c.out = 6;
  c.groups = 2;
  c.image = {5, 4};
  c.result = {5, 4};
  c.kernel = {3, 3};
  c.stride = c.dilation = c.pad = {1, 1};
  check_types_agree("convolution", [&](trial& t) {
    c.order = t.type == value_type::float32 ? layout::nhwc : layout::nhwc_bf16;
    library with(t.s, {});
    convolution products(with, c);
    products.forward(t.in(160), t.in(108), t.out(240));
    products.data_gradient(t.in(108), t.in(240), t.out(160));
    products.weight_gradient(t.in(160), t.in(240), t.out(108));
    finish(t.s);
    if (t.type == value_type::bfloat16)
      CHECK_THROWS_AS(products.forward(t.floats_in(160), t.in(108), t.in(240)), const error&);
  });
}
