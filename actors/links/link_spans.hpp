// actors/links/link_spans.hpp - what a link carries, as spans of the trace.
#pragma once
#include "actors/core/trace.hpp"
#include "actors/links/link_event.hpp"
#include "models/indexed.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

/// Texts that live as long as the trace_log; filled before the first chunk travels.
template <class Id>
using kept_names = std::shared_ptr<const by_id<Id, std::string_view>>;

/// Two lanes, "`link` out" and "`link` in": a span per chunk of a layer or piece of its factors, while the log is on.
/// `chunk_layers`: names of the chunks' layers.
[[nodiscard]] link_trace spans_of_link(const std::shared_ptr<trace_log>& log,
                                       const std::string& link, kept_names<chunk_id> chunk_layers,
                                       kept_names<layer_id> layers);

}  // namespace poseidon
