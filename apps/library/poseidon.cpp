// apps/library/poseidon.cpp - the functions of poseidon.h that join, train and leave, over a session; what a program says before is in declarations.cpp, its optimizer in optimizer.cpp.
#include "apps/library/poseidon.h"

#include "apps/library/run_handle.hpp"
#include "apps/library/words.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

using poseidon::fresh_board;
using poseidon::library::called;
using poseidon::library::guarded;
using poseidon::library::limit_of;
using poseidon::library::one_line;
using poseidon::library::session;
using poseidon::library::session_error;

namespace {

int answer_of(fresh_board::answer a) {
  switch (a) {
    case fresh_board::answer::here:
      return POSEIDON_HERE;
    case fresh_board::answer::not_yet:
      return POSEIDON_NOT_YET;
    case fresh_board::answer::no_gradient:
      return POSEIDON_NO_GRADIENT;
    case fresh_board::answer::failed:
      break;
  }
  return -1;
}

}  // namespace

extern "C" {

uint32_t poseidon_abi(void) {
  return POSEIDON_ABI;
}

const char* poseidon_version(void) {
  return POSEIDON_VERSION;
}

poseidon_run* poseidon_join(const char* options) {
  poseidon_run* made = nullptr;
  guarded([&] {
    made = new poseidon_run{poseidon::library::parse_options(options == nullptr ? "" : options)};
  });
  return made;
}

const char* poseidon_error(const poseidon_run*) {
  return poseidon::library::error_of_this_thread();
}

int poseidon_begin(poseidon_run* p, double timeout_s) {
  const int answer =
      called(p, [&](session& s) { return s.begin(limit_of(timeout_s)) ? 0 : POSEIDON_NOT_YET; });
  return answer < 0 && p != nullptr && p->run.is_left_out() ? POSEIDON_LEFT_OUT : answer;
}

uint32_t poseidon_worker(const poseidon_run* p) {
  return p == nullptr ? 0 : p->run.worker();
}

uint32_t poseidon_workers(const poseidon_run* p) {
  return p == nullptr ? 0 : p->run.workers();
}

int poseidon_view(const poseidon_run* p, size_t index, uint64_t* first_clock, uint32_t* seats,
                  size_t room) {
  if (p == nullptr) return 0;
  int workers = 0;
  (void)guarded([&] {
    const auto view = p->run.view(index);
    if (!view) return;
    if (first_clock != nullptr) *first_clock = view->first_clock;
    for (std::size_t w = 0; seats != nullptr && w < std::min(room, view->seats.size()); ++w)
      seats[w] = value(view->seats[w]);
    workers = static_cast<int>(view->seats.size());
  });
  return workers;
}

int poseidon_order(poseidon_run* p, const uint32_t* places) {
  return called(p, [&](session& s) {
    if (places == nullptr) throw session_error("poseidon_order was given no places");
    s.order(places);
    return 0;
  });
}

int poseidon_wire(poseidon_run* p, int format) {
  return called(p, [&](session& s) {
    if (format < POSEIDON_FLOAT32 || format > POSEIDON_INT4)
      throw session_error("the wire format is " + std::to_string(format) +
                          ", expected POSEIDON_FLOAT32, POSEIDON_FLOAT16, POSEIDON_BFLOAT16, "
                          "POSEIDON_INT8 or POSEIDON_INT4");
    return static_cast<int>(s.wire(static_cast<poseidon::wire_format>(format)));
  });
}

int poseidon_push(poseidon_run* p, uint32_t parameter, uint64_t clock, const float* gradient,
                  size_t bytes) {
  return called(p, [&](session& s) {
    const auto wanted = sizeof(float) * s.values_of(parameter);
    if (gradient == nullptr || bytes != wanted)
      throw session_error("parameter " + std::to_string(parameter) + " is pushed with " +
                          std::to_string(gradient == nullptr ? 0 : bytes) + " bytes, expected " +
                          std::to_string(wanted));
    s.push(parameter, clock, gradient);
    return 0;
  });
}

int poseidon_push_nothing(poseidon_run* p, uint32_t parameter, uint64_t clock) {
  return called(p, [&](session& s) {
    s.push(parameter, clock, nullptr);
    return 0;
  });
}

int poseidon_measured(poseidon_run* p, const poseidon_load* loads) {
  return called(p, [&](session& s) {
    if (loads == nullptr) throw session_error("poseidon_measured was given no loads");
    std::vector<poseidon::parameter_load> all;
    for (std::size_t i = 0; i < s.parameters(); ++i)
      all.push_back({loads[i].backward_s, loads[i].product_s, loads[i].factor_rows});
    s.measured(std::move(all));
    return 0;
  });
}

int poseidon_begin_clock(poseidon_run* p, uint64_t clock, double timeout_s) {
  return called(p, [&](session& s) {
    switch (s.begin_clock(clock, limit_of(timeout_s))) {
      case poseidon::clock_gate::answer::begun:
        return 0;
      case poseidon::clock_gate::answer::wants_state:
        return static_cast<int>(POSEIDON_GIVE_STATE);
      case poseidon::clock_gate::answer::not_yet:
        break;
    }
    return static_cast<int>(POSEIDON_NOT_YET);
  });
}

int poseidon_give_state(poseidon_run* p, uint64_t clock, const void* bytes, uint64_t size,
                        uint64_t own) {
  return called(p, [&](session& s) {
    if (bytes == nullptr) throw session_error("the state that is given is null");
    s.give_state(clock, {static_cast<const std::byte*>(bytes), size}, own);
    return 0;
  });
}

uint64_t poseidon_first_clock(const poseidon_run* p) {
  return p == nullptr ? 0 : p->run.first_clock();
}

const void* poseidon_state_given(const poseidon_run* p, uint64_t* size) {
  static constexpr char nothing = 0;
  const auto state = p == nullptr ? std::nullopt : p->run.state_that_came();
  if (size != nullptr) *size = state ? state->size() : 0;
  if (!state) return nullptr;
  return state->empty() ? static_cast<const void*>(&nothing) : state->data();
}

int poseidon_route(poseidon_run* p, uint32_t parameter) {
  return called(p, [&](session& s) { return s.goes_as_factors(parameter) ? 1 : 0; });
}

int poseidon_push_factors(poseidon_run* p, uint32_t parameter, uint64_t clock, const float* u,
                          const float* v, uint32_t rows, float* mean) {
  return called(p, [&](session& s) {
    if (rows > 0 && (u == nullptr || v == nullptr))
      throw session_error("parameter " + std::to_string(parameter) +
                          " is pushed with factors that are null");
    s.push_factors(parameter, clock, u, v, rows, mean);
    return 0;
  });
}

int poseidon_wait(poseidon_run* p, uint32_t parameter, uint64_t version, double timeout_s) {
  return called(
      p, [&](session& s) { return answer_of(s.wait(parameter, version, limit_of(timeout_s))); });
}

int poseidon_look(poseidon_run* p, const uint32_t* parameters, uint32_t count, uint64_t version,
                  uint8_t* answers) {
  return called(p, [&](session& s) {
    if (count > 0 && (parameters == nullptr || answers == nullptr))
      throw session_error("poseidon_look was given no parameters, or no room for answers");
    const auto here = s.look({parameters, count}, version);
    std::transform(here.begin(), here.end(), answers,
                   [](auto a) { return static_cast<std::uint8_t>(answer_of(a)); });
    return static_cast<int>(here.size());
  });
}

int poseidon_collect(poseidon_run* p, const uint32_t* parameters, uint32_t count, uint64_t version,
                     float* const* to, uint8_t* answers, double timeout_s) {
  return called(p, [&](session& s) {
    if (count > 0 && (parameters == nullptr || to == nullptr || answers == nullptr))
      throw session_error("poseidon_collect was given no parameters, places or room for answers");
    std::vector<session::collected> wanted;
    std::vector<std::uint32_t> places;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (answers[i] != POSEIDON_NOT_YET) continue;
      wanted.push_back({poseidon::as_id<poseidon::parameter_id>(parameters[i]), to[i]});
      places.push_back(i);
    }
    const auto missing = s.collect(wanted, version, limit_of(timeout_s));
    for (std::size_t i = 0; i < places.size(); ++i)
      answers[places[i]] = static_cast<std::uint8_t>(answer_of(wanted[i].is));
    return static_cast<int>(missing);
  });
}

const float* poseidon_values(poseidon_run* p, uint32_t parameter, uint64_t version) {
  return p == nullptr ? nullptr : p->run.values(parameter, version);
}

int poseidon_report(poseidon_run* p, uint64_t clock, double loss, uint64_t samples) {
  return called(p, [&](session& s) {
    s.report(clock, loss, samples);
    return 0;
  });
}

const char* poseidon_next_line(poseidon_run* p) {
  if (p == nullptr) return nullptr;
  auto line = p->run.next_line();
  if (!line) return nullptr;
  p->line = std::move(*line);
  return p->line.c_str();
}

int poseidon_leave(poseidon_run* p, const char* reason, double timeout_s) {
  return called(p, [&](session& s) {
    const auto why =
        reason == nullptr ? std::nullopt : std::optional<std::string>(one_line(reason));
    return s.leave(why, false, limit_of(timeout_s)) ? 0 : POSEIDON_NOT_YET;
  });
}

int poseidon_leave_others(poseidon_run* p, double timeout_s) {
  return called(p, [&](session& s) {
    return s.leave(std::nullopt, true, limit_of(timeout_s)) ? 0 : POSEIDON_NOT_YET;
  });
}

void poseidon_free(poseidon_run* p) {
  guarded([&] { delete p; });
}

}  // extern "C"
