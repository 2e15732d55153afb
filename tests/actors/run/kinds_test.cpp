#include "actors/run/kinds.hpp"

#include "actors/run/run_description.hpp"
#include "models/fingerprint.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace poseidon;

namespace {

using difference = progress::promise::difference;

fingerprint cpu_of(const std::string& instructions, const std::string& onednn = "2.6.3",
                   const std::string& functions = "expf:1,tanhf:2", const char* glibc = "2.36") {
  return {{"device", "CPU"},
          {"instructions", instructions, instructions == "AVX2" ? "" : "AVX-512"},
          {"caches", "32 KiB, 1024 KiB"},
          {"oneDNN", onednn},
          {"C library", functions, std::string("glibc ") + glibc}};
}

std::vector<frames::member> nodes(const std::vector<fingerprint>& prints) {
  std::vector<frames::member> out;
  for (const auto& p : prints) out.push_back({as_id<seat_id>(out.size()), "host:1", encode(p)});
  return out;
}

progress::promise promise_of(const std::vector<frames::member>& of_nodes) {
  run_definition run;
  run.workers = of_nodes.size();
  return describe_promise({}, run, of_nodes);
}

}  // namespace

TEST_CASE("kinds: nodes of one kind promise the bits of one node") {
  const auto p = promise_of(nodes({cpu_of("AVX2"), cpu_of("AVX2"), cpu_of("AVX2")}));
  CHECK(p.text == "results: bit-equal to one node with iter_size 3");
  CHECK(p.bit_equal);
  CHECK(p.differences.empty());
}

TEST_CASE("kinds: what differs is named with both values, the workers, and what keeps the bits") {
  const auto wide = cpu_of("AVX512_CORE");
  const auto before = std::string("results: equal to one node with iter_size 2 up to rounding: ");
  const auto two = [&](const fingerprint& a, const fingerprint& b) {
    const auto p = promise_of(nodes({a, b}));
    CHECK(!p.bit_equal);
    CHECK(p.differences.size() == 1);
    return p.text;
  };
  CHECK(two(wide, cpu_of("AVX2")) ==
        before +
            "kernels use AVX-512 on worker 0, AVX2 on worker 1; ONEDNN_MAX_CPU_ISA=AVX2 in the "
            "environment of every node keeps the bits");
  // Both show as AVX-512, and are not the same.
  CHECK(two(wide, cpu_of("AVX512_CORE_BF16")) ==
        before +
            "kernels use AVX-512 on worker 0, AVX-512, build 2 on worker 1; "
            "ONEDNN_MAX_CPU_ISA=AVX512_CORE in the environment of every node keeps the bits");
  CHECK(two(wide, cpu_of("AVX512_CORE", "3.7.2")) ==
        before + "oneDNN is 2.6.3 on worker 0, 3.7.2 on worker 1");
  CHECK(two(wide, cpu_of("AVX512_CORE", "2.6.3", "expf:1,tanhf:3", "2.41")) ==
        before + "tanhf of the C library is glibc 2.36 on worker 0, glibc 2.41 on worker 1");
  // Another version with the same values is no difference.
  CHECK(promise_of(nodes({wide, cpu_of("AVX512_CORE", "2.6.3", "expf:1,tanhf:2", "2.41")}))
            .bit_equal);
  // Where devices differ, nothing else of them is worth a word.
  CHECK(two(wide, {{"device", "NVIDIA H100 (9.0)"}, {"GPU libraries", "CUDA 13.0"}}) ==
        before + "the device is CPU on worker 0, NVIDIA H100 (9.0) on worker 1");
  // A node that says nothing is not taken for one of the same kind.
  CHECK(two(wide, {}).starts_with(before + "the device is CPU on worker 0, none on worker 1"));
}

TEST_CASE("kinds: with several differences no remedy is offered that would mend one of them") {
  const auto p =
      promise_of(nodes({cpu_of("AVX512_CORE"), cpu_of("AVX2", "3.7.2"), cpu_of("AVX2", "3.7.2")}));
  CHECK(p.text ==
        "results: equal to one node with iter_size 3 up to rounding: kernels use AVX-512 on worker "
        "0, AVX2 on workers 1 and 2; oneDNN is 2.6.3 on worker 0, 3.7.2 on workers 1 and 2");
}

TEST_CASE("kinds: many workers are counted") {
  std::vector<fingerprint> all(9, cpu_of("AVX2"));
  all[1] = all[8] = cpu_of("AVX512_CORE");
  CHECK(sentence_of(differences_of(nodes(all)).front()) ==
        "kernels use AVX2 on workers 0, 2, 3, 4 and 3 more, AVX-512 on workers 1 and 8");
}

TEST_CASE("kinds: a GPU whose sums have another order in every run never promises bits") {
  const fingerprint gpu{{"device", "GPU"}, {"varies", "products in tf32"}};
  const auto p = promise_of(nodes({gpu, gpu}));
  CHECK(!p.bit_equal);
  CHECK(p.differences.empty());
  CHECK(p.text ==
        "results: equal to one node with iter_size 2 up to rounding: sums have another order in "
        "every run with products in tf32 on workers 0 and 1; --math fp32 keeps the bits");
}

TEST_CASE("kinds: a run goes on with what a node has computed that has left") {
  auto both = nodes({cpu_of("AVX2"), cpu_of("AVX512_CORE"), cpu_of("AVX2")});
  const auto kinds = kinds_of(with_kinds(both, {}));
  CHECK(kinds.size() == 2);
  both.erase(both.begin() + 1);
  const auto known = with_kinds(both, kinds);
  CHECK(known.size() == 3);
  CHECK(!promise_of(known).bit_equal);
  // Whoever is of a kind that left stands for it.
  CHECK(with_kinds(nodes({cpu_of("AVX512_CORE")}), kinds).size() == 2);
}

TEST_CASE("kinds: programs that differ are told so, and say nothing else") {
  run_definition run;
  run.workers = 2;
  run.declared = {{"w", {1}, false}};
  const auto all = nodes({{{"PyTorch", "2.6.0"}}, {{"PyTorch", "2.14.0"}}});
  CHECK(describe_promise({}, run, all).text ==
        "results: not bit-equal to one process: PyTorch is 2.6.0 on worker 0, 2.14.0 on worker 1");
  CHECK(describe_promise({}, run, nodes({{{"PyTorch", "2.6.0"}}, {{"PyTorch", "2.6.0"}}}))
            .text.empty());
}

TEST_CASE("kinds: whatever differs in a value, bits are not promised") {
  std::mt19937 dice(7);
  for (int round = 0; round < 2000; ++round) {
    const auto random_text = [&] {
      std::string text;
      for (auto n = 1 + dice() % 6; n > 0; --n) text += static_cast<char>('a' + dice() % 26);
      return text;
    };
    std::vector<fingerprint> prints(2 + dice() % 5);
    auto& first = prints.front();
    for (auto n = 1 + dice() % 6; n > 0; --n)
      first.push_back(
          {"trait " + std::to_string(n), random_text(), dice() % 2 ? random_text() : ""});
    for (auto& p : prints) p = first;
    CHECK(promise_of(nodes(prints)).bit_equal);
    auto& changed = prints[1 + dice() % (prints.size() - 1)];
    auto& t = changed[dice() % changed.size()];
    const auto what = dice() % 4;
    if (what == 0)
      t.value += "!";
    else if (what == 1)
      changed.erase(changed.begin() + (&t - changed.data()));
    else  // under a new name, or once more under one that is there
      changed.push_back({what == 2 ? "another" : t.name, random_text()});
    const auto p = promise_of(nodes(prints));
    CHECK(!p.bit_equal);
    CHECK(p.text.find("bit-equal") == std::string::npos);
    CHECK(!p.differences.empty());
  }
}
