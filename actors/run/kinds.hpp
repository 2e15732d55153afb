// actors/run/kinds.hpp
//
// In what nodes differ by which the bits of their results may differ (models/fingerprint.hpp). A run of nodes of one kind has the
// bits of one node; with two kinds there is no node that has them. Pure functions; run_description.hpp says the sentence.
#pragma once
#include "actors/core/progress.hpp"
#include "messages/frames.hpp"

#include <optional>
#include <string>
#include <vector>

namespace poseidon {

/// The members and, of those kinds that no member is of any more, whoever is among `kinds`; by rising seat.
[[nodiscard]] std::vector<frames::member> with_kinds(const std::vector<frames::member>& members,
                                                     const std::vector<frames::member>& kinds);
/// One of each fingerprint, that of the lowest seat; by rising seat.
[[nodiscard]] std::vector<frames::member> kinds_of(const std::vector<frames::member>& nodes);

/// Every trait that is not the same on all these nodes. Where their devices differ, it is the only one of those that belong to devices.
[[nodiscard]] std::vector<progress::promise::difference> differences_of(
    const std::vector<frames::member>& nodes);

/// "kernels use AVX-512 on worker 0, AVX2 on workers 1 and 2"
[[nodiscard]] std::string sentence_of(const progress::promise::difference& d);

/// What gives all these nodes the same bits again, to be followed by "keeps the bits"; empty: nothing that is known.
[[nodiscard]] std::optional<std::string> remedy_of(
    const std::vector<progress::promise::difference>& differences,
    const std::vector<frames::member>& nodes);

/// Nodes whose own results vary from run to run, and why: "products in tf32 on worker 0"; empty: there are none.
[[nodiscard]] std::string varying_of(const std::vector<frames::member>& nodes);

/// Whether every node is a processor that multiplies bfloat16: one node has the same bits only with this option.
[[nodiscard]] bool all_multiply_bf16(const std::vector<frames::member>& nodes);

}  // namespace poseidon
