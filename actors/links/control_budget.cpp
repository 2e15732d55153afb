#include "actors/links/control_budget.hpp"

#include "messages/frame_table.hpp"
#include "messages/wire/codec.hpp"

#include <algorithm>
#include <string>
#include <variant>

namespace poseidon {

bool control_budget::counts(const frame_header& h) {
  const auto* const probe = std::get_if<frames::probe>(&h);
  return row_of_kind(h).budget != frame_budget::free && (probe == nullptr || probe->last);
}

void control_budget::admit(const frame_header& h, std::size_t bytes, time_point now) {
  if (!counts(h)) return;
  const auto passed = std::chrono::duration<double>(now - at_).count();
  at_ = now;
  frames_ = std::min(most_frames, frames_ + passed * frames_s);
  bytes_ = std::min(most_bytes, bytes_ + passed * bytes_s);
  frames_ -= 1;
  if (row_of_kind(h).budget != frame_budget::probes) bytes_ -= static_cast<double>(bytes);
  const auto limit = [](double most, double refill, const std::string& unit) {
    return std::to_string(static_cast<std::size_t>(most)) + unit + " at once and " +
           std::to_string(static_cast<std::size_t>(refill)) + unit + " a second after that";
  };
  if (frames_ < 0)
    throw bad_frame(kind_name(h), "number of control frames", "more",
                    limit(most_frames, frames_s, ""));
  if (bytes_ < 0)
    throw bad_frame(kind_name(h), "size of control frames", "more",
                    limit(most_bytes, bytes_s, " bytes"));
}

}  // namespace poseidon
