#include "cpu/cpu_device.hpp"

#include "cpu/factors.hpp"
#include "cpu/fingerprint.hpp"
#include "cpu/optimizer_update.hpp"
#include "cpu/replica.hpp"
#include "cpu/solver_update.hpp"

#include <immintrin.h>
#include <omp.h>
#include <stdexcept>
#include <thread>

namespace poseidon {
namespace {

/// The number of OpenMP threads is part of how oneDNN compiles a primitive, and belongs to the
/// thread.
class omp_threads_guard {
 public:
  explicit omp_threads_guard(int threads) : before_(omp_get_max_threads()) {
    omp_set_num_threads(threads);
  }
  ~omp_threads_guard() { omp_set_num_threads(before_); }
  omp_threads_guard(const omp_threads_guard&) = delete;
  omp_threads_guard& operator=(const omp_threads_guard&) = delete;

 private:
  int before_;
};

class cpu_arithmetic final : public host_arithmetic {
 public:
  void enter_thread(int threads) const override {
    omp_set_num_threads(threads);
    // Denormal numbers carry no information here and cost a hundred times a normal one.
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _mm_setcsr(_mm_getcsr() | 0x40);  // denormals are zero
  }

  void add(std::span<float> into, std::span<const float> x) const override { cpu::add(into, x); }

  void scale(float factor, std::span<const float> x, std::span<float> to) const override {
    cpu::scale(factor, x, to);
  }

  void update(const solver_rule& rule, const rule_step& step, std::span<const float> gradient,
              std::span<const float> values, std::span<float> fresh,
              std::span<const state_array> history, value_checksum* made) const override {
    cpu::update(rule, step, gradient, values, fresh, history, made);
  }

  void step(optimizer_rule rule, const optimizer_step& step, float scale,
            std::span<const float> gradient, std::span<const float> values, std::span<float> fresh,
            std::span<const state_array> history) const override {
    cpu::update(rule, step, scale, gradient, values, fresh, history);
  }

  void update_average(float momentum, std::span<const float> change, std::span<const float> values,
                      std::span<float> fresh) const override {
    cpu::update_average(momentum, change, values, fresh);
  }

  void reconstruct_gradient(const factor_shape& shape, std::span<const float> u,
                            std::span<const float> v, std::span<float> weights,
                            std::span<float> bias) const override {
    cpu::reconstruct_gradient(shape, u, v, weights, bias);
  }
};

class cpu_device final : public device {
 public:
  explicit cpu_device(cpu_math math) : math_(math) {}

  std::string describe() const override {
    const bool wide = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core;
    const dnnl_version_t* v = dnnl_version();
    return "cpu: " + std::to_string(std::thread::hardware_concurrency()) + " cores, " +
           (wide ? "AVX-512" : "AVX2") +
           (math_ == cpu_math::fp32   ? ""
            : multiplies_bf16_tiles() ? ", bfloat16 in tiles"
                                      : ", bfloat16") +
           ", oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
           std::to_string(v->patch);
  }

  fingerprint traits() const override { return cpu::fingerprint_of_kernels(math_); }

  std::unique_ptr<replica> make_replica(const net& n,
                                        std::span<const parameter_values* const> parameters,
                                        replica_options options) override {
    if (parameters.size() != n.parameters.size()) {
      throw std::invalid_argument(
          "net \"" + n.name + "\" has " + std::to_string(n.parameters.size()) +
          " parameters, make_replica was given " + std::to_string(parameters.size()));
    }
    const omp_threads_guard guard(options.threads);
    return cpu::compile(n, parameters, options, math_);
  }

  bool supports(std::string_view layer_type) const override {
    return cpu::find_layer_type(layer_type) != nullptr;
  }

  std::shared_ptr<const host_arithmetic> arithmetic() const override { return arithmetic_; }

 private:
  cpu_math math_;
  std::shared_ptr<const host_arithmetic> arithmetic_ = std::make_shared<cpu_arithmetic>();
};

}  // namespace

bool multiplies_bf16() {
  return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_bf16;
}

bool multiplies_bf16_tiles() {
  return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_amx;
}

std::shared_ptr<device> make_cpu_device(cpu_math math) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    throw std::runtime_error(
        "this processor has no AVX2 and FMA, which the CPU kernels are written for (Intel Haswell, "
        "AMD "
        "Zen, or newer); on a virtual machine, let the host pass them through");
  }
  if (math == cpu_math::bf16 && !multiplies_bf16()) {
    throw std::runtime_error(
        "--math bf16: this processor has no instructions that multiply bfloat16 (AVX512_BF16 or "
        "AMX: Intel "
        "Cooper Lake and Sapphire Rapids, AMD Zen 4, or newer), or the environment's "
        "ONEDNN_MAX_CPU_ISA keeps oneDNN from "
        "them. Leave --math out: fp32 works on every processor.");
  }
  return std::make_shared<cpu_device>(math);
}

}  // namespace poseidon
