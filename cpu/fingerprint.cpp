#include "cpu/fingerprint.hpp"

#include "models/device/value_checksum.hpp"

#include <dnnl.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <cpuid.h>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <gnu/libc-version.h>

namespace poseidon::cpu {

namespace {

std::string hexadecimal(std::uint32_t n) {
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", n);
  return text.data();
}

void add(value_checksum& to, float v) {
  to.add({&v, 1});
}
void add(value_checksum& to, double v) {
  const auto words = std::bit_cast<std::array<float, 2>>(v);
  to.add(words);
}

/// Checksum of `f` at 512 places between `low` and `high`, in steps that are no round numbers.
template <class Real, class Function>
std::string values_of(const char* name, Real low, Real high, Function f) {
  constexpr int places = 512;
  value_checksum sum;
  for (int i = 0; i < places; ++i) {
    const Real at = static_cast<Real>(i) + static_cast<Real>(0.37) / static_cast<Real>(1 + i % 7);
    add(sum, f(low + (high - low) * at / places));
  }
  return std::string(name) + ":" + hexadecimal(sum.value());
}

}  // namespace

std::string values_of_c_library() {
  // The functions that cpu/, models/net and models/solver call. Square roots are exact everywhere, and tanh is ours.
  return values_of<float>("expf", -30, 30, [](float x) { return std::exp(x); }) + "," +
         values_of<float>("logf", 1e-6f, 40, [](float x) { return std::log(x); }) + "," +
         values_of<float>("powf", 0.05f, 8, [](float x) { return std::pow(x, 0.75f - x); }) + "," +
         values_of<double>("exp", -30, 30, [](double x) { return std::exp(x); }) + "," +
         values_of<double>("log", 1e-6, 40, [](double x) { return std::log(x); }) + "," +
         values_of<double>("pow", 0.05, 8, [](double x) { return std::pow(x, 0.75 - 9 * x); }) +
         "," + values_of<double>("cos", 0, 4, [](double x) { return std::cos(x); });
}

namespace {

trait of_c_library() {
  return {std::string(trait_names::c_library), values_of_c_library(),
          std::string("glibc ") + gnu_get_libc_version()};
}

/// The value is that of the environment's ONEDNN_MAX_CPU_ISA.
trait instructions() {
  const auto isa = dnnl::get_effective_cpu_isa();
  const auto of = [](const char* value, const char* shown) {
    return trait{std::string(trait_names::instructions), value, shown};
  };
  switch (isa) {
    case dnnl::cpu_isa::sse41:
      return of("SSE41", "SSE4.1");
    case dnnl::cpu_isa::avx:
      return of("AVX", "");
    case dnnl::cpu_isa::avx2:
      return of("AVX2", "");
    case dnnl::cpu_isa::avx2_vnni:
      return of("AVX2_VNNI", "AVX2 and VNNI");
    case dnnl::cpu_isa::avx512_core:
      return of("AVX512_CORE", "AVX-512");
    case dnnl::cpu_isa::avx512_core_vnni:
      return of("AVX512_CORE_VNNI", "AVX-512 and VNNI");
    case dnnl::cpu_isa::avx512_core_bf16:
      return of("AVX512_CORE_BF16", "AVX-512 and bfloat16");
    case dnnl::cpu_isa::avx512_core_amx:
      return of("AVX512_CORE_AMX", "AVX-512 and AMX");
    default: {  // newer than oneDNN 2.6
      const auto number = std::to_string(static_cast<int>(isa));
      return isa > dnnl::cpu_isa::avx512_core
                 ? of(("AVX512_" + number).c_str(), ("AVX-512 of kind " + number).c_str())
                 : of(("AVX2_" + number).c_str(), ("AVX2 of kind " + number).c_str());
    }
  }
}

std::string onednn() {
  const dnnl_version_t* v = dnnl_version();
  const auto number =
      std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
  return v->hash == nullptr || std::strcmp(v->hash, "N/A") == 0
             ? number
             : number + " (" + std::string(v->hash).substr(0, 9) + ")";
}

bool is_amd() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0, &a, &b, &c, &d) != 0 && b == signature_AMD_ebx;
}

/// "32 KiB, 1024 KiB, 4096 KiB": by level, the part of a cache for data that a core has where all use it. oneDNN cuts its work by these,
/// and by sizes of its own where a virtual machine does not tell.
trait caches() {
  const unsigned leaf = is_amd() ? 0x8000001du : 4u;
  std::string text;
  for (unsigned i = 0; i < 16; ++i) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(leaf, i, &a, &b, &c, &d) == 0) break;
    const unsigned kind = a & 31u;
    if (kind == 0) break;
    if (kind == 2) continue;  // of instructions
    const std::uint64_t line = (b & 0xfffu) + 1, parts = (b >> 12 & 0x3ffu) + 1;
    const std::uint64_t bytes = line * parts * ((b >> 22) + 1) * (std::uint64_t{c} + 1);
    const std::uint64_t shared_by = (a >> 14 & 0xfffu) + 1;
    text += (text.empty() ? "" : ", ") + std::to_string(bytes / shared_by >> 10) + " KiB";
  }
  const std::string name(trait_names::caches);
  return text.empty() ? trait{name, "untold", "sizes that the processor does not tell"}
                      : trait{name, text};
}

/// "AMD EPYC 9B14".
std::string processor() {
  std::array<unsigned, 12> words{};
  for (unsigned i = 0; i < 3; ++i)
    if (__get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
                    &words[4 * i + 3]) == 0)
      return "unknown";
  const std::string text(reinterpret_cast<const char*>(words.data()),
                         strnlen(reinterpret_cast<const char*>(words.data()), sizeof words));
  unsigned a = 0, b = 0, c = 0, d = 0;
  (void)__get_cpuid(1, &a, &b, &c, &d);
  const auto first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  return (first == text.npos ? "unknown" : text.substr(first, last + 1 - first)) + " (" +
         hexadecimal(a & 0x0fff3ff0u) + ")";  // family and model
}

}  // namespace

fingerprint fingerprint_of_kernels(cpu_math math) {
  return {{std::string(trait_names::device), "CPU"},
          {std::string(trait_names::products),
           std::string(math == cpu_math::bf16 ? product_names::bf16 : product_names::fp32)},
          instructions(),
          caches(),
          {std::string(trait_names::onednn), onednn()},
          of_c_library()};
}

fingerprint fingerprint_of_steps() {
  return {{std::string(trait_names::processor), processor()}, of_c_library()};
}

}  // namespace poseidon::cpu
