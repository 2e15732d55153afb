// apps/library/poseidon.cpp - the functions of poseidon.h over a session. Long because the whole interface is in one place.
#include "apps/library/poseidon.h"

#include "apps/library/session.hpp"
#include "apps/library/words.hpp"
#include "messages/wire/codec.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <set>
#include <string>
#include <utility>
#include <vector>

using poseidon::declared_parameter;
using poseidon::fresh_board;
using poseidon::plural;
using poseidon::shared_memory;
using poseidon::library::first_unfit;
using poseidon::library::in_program_words;
using poseidon::library::one_line;
using poseidon::library::option_names;
using poseidon::library::seconds;
using poseidon::library::session;
using poseidon::library::session_error;

/// The opaque type of the C interface.
struct poseidon_run {
  explicit poseidon_run(poseidon::library::options told) : run(std::move(told)) {}
  session run;
  std::string line;  ///< that poseidon_next_line has answered last
};

namespace {

thread_local std::string last_error;

void keep_error(const char* text) noexcept {
  try {
    last_error = in_program_words(poseidon::in_words(text), option_names());
  } catch (...) {
    last_error = "out of memory";  // so short that it needs none
  }
}

/// Runs a part of the interface: no exception leaves the library. False: it has failed, and last_error says why.
template <class F>
bool guarded(F f) {
  try {
    f();
    return true;
  } catch (const std::exception& e) {
    keep_error(e.what());
  } catch (...) {
    keep_error("an unknown exception inside the library");
  }
  return false;
}

/// What a program says it would wait. Years would overflow the clock, and what is no number waits for nothing.
seconds limit_of(double timeout_s) {
  return seconds(timeout_s > 0 ? std::min(timeout_s, 1e8) : 0);
}

/// A function that answers with a number.
template <class F>
int called(poseidon_run* p, F f) {
  int answer = -1;
  const bool done = guarded([&] {
    if (p == nullptr) throw session_error("the handle is null");
    answer = f(p->run);
  });
  return done ? answer : -1;
}

std::string unfit(const std::string& nth, const char* name, std::size_t at) {
  return nth + ", \"" + one_line(name) + "\": byte " + std::to_string(at) + " of its name is " +
         std::to_string(static_cast<unsigned char>(name[at])) +
         ", expected UTF-8 without control characters. Give it another name";
}

declared_parameter read(const poseidon_parameter& from, std::size_t number) {
  const auto nth = "parameter " + std::to_string(number);
  if (from.name == nullptr || *from.name == 0) throw session_error(nth + " has no name");
  if (const auto at = first_unfit(from.name); at != std::string::npos)
    throw session_error(unfit(nth, from.name, at));
  if (from.dims_count > 0 && from.dims == nullptr)
    throw session_error(nth + ", \"" + from.name + "\", has no dims");
  if (from.kind > POSEIDON_BUNDLE)
    throw session_error(nth + ", \"" + from.name + "\", is of kind " + std::to_string(from.kind) +
                        ", expected POSEIDON_MEAN, POSEIDON_GIVEN or POSEIDON_BUNDLE");
  declared_parameter p{from.name,
                       {from.dims, from.dims + from.dims_count},
                       from.kind == POSEIDON_GIVEN,
                       from.kind == POSEIDON_BUNDLE};
  for (const auto d : p.shape)
    if (d < 1 || d > 0xffffffffll)
      throw session_error(nth + ", \"" + from.name + "\", has a dimension " + std::to_string(d) +
                          ", expected 1 or more");
  if (!poseidon::checked_count(p.shape))
    throw session_error(nth + ", \"" + from.name +
                        "\", has too many values: " + poseidon::to_string(p.shape));
  return p;
}

/// A view has room for these words of all entries.
constexpr std::size_t most_words = 8u << 20;

shared_memory read(const poseidon_shared& from, std::size_t number, std::size_t& words) {
  const auto nth = "shared state " + std::to_string(number);
  for (const auto* text : {from.name, from.kind}) {
    const auto size = text == nullptr ? 0 : std::strlen(text);
    if (size == 0 || size > poseidon::max_text_bytes)
      throw session_error(nth + " has a name or a kind of " + plural(size, "byte") +
                          ", expected 1 to " + std::to_string(poseidon::max_text_bytes));
    if (const auto at = first_unfit(text); at != std::string::npos)
      throw session_error(unfit(nth, text, at));
    words += size;
  }
  if (words > most_words)
    throw session_error("the names and kinds of shared state have more than " +
                        std::to_string(most_words) + " bytes: give it shorter ones");
  if ((from.bytes == nullptr && from.size > 0) || from.size > poseidon::max_shared_bytes)
    throw session_error(nth + ", \"" + from.name +
                        "\", has no bytes, or too many: " + std::to_string(from.size));
  return {from.name, from.kind, {static_cast<std::byte*>(from.bytes), from.size}};
}

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
  return last_error.c_str();
}

int poseidon_declare(poseidon_run* p, const poseidon_parameter* list, size_t count) {
  return called(p, [&](session& s) {
    if (list == nullptr || count == 0)
      throw session_error("no parameter is declared: the model has none that training changes");
    if (count > 65536)
      throw session_error("declared are " + std::to_string(count) +
                          " parameters, at most 65536 are possible");
    std::vector<declared_parameter> parameters;
    std::vector<const float*> first;
    std::set<std::string> names;
    for (std::size_t i = 0; i < count; ++i) {
      parameters.push_back(read(list[i], i));
      first.push_back(list[i].values);
      if (!names.insert(parameters.back().name).second)
        throw session_error("two parameters have the name \"" + parameters.back().name + "\"");
    }
    s.declare(std::move(parameters), std::move(first));
    return 0;
  });
}

int poseidon_share(poseidon_run* p, const poseidon_shared* list, size_t count) {
  return called(p, [&](session& s) {
    if ((list == nullptr && count > 0) || count > poseidon::max_shared)
      throw session_error("shared are " + std::to_string(count) + " pieces of state" +
                          (list == nullptr ? ", and no list" : ", at most 65536 are possible"));
    std::vector<shared_memory> all;
    std::set<std::string> names;
    for (std::size_t i = 0, words = 0; i < count; ++i) {
      all.push_back(read(list[i], i, words));
      if (!names.insert(all.back().name).second)
        throw session_error("two pieces of shared state have the name \"" + all.back().name + "\"");
    }
    s.share(std::move(all));
    return 0;
  });
}

int poseidon_optimize(poseidon_run* p, int optimizer, const uint32_t* groups) {
  return called(p, [&](session& s) {
    if (optimizer < POSEIDON_OWN || optimizer > POSEIDON_ADAMW)
      throw session_error("optimizer is " + std::to_string(optimizer) +
                          ", expected POSEIDON_OWN, POSEIDON_SGD, POSEIDON_ADAM or POSEIDON_ADAMW");
    std::vector<std::uint32_t> of(s.parameters(), 0);
    if (groups != nullptr) of.assign(groups, groups + s.parameters());
    s.optimize(static_cast<poseidon::optimizer_rule>(optimizer), std::move(of));
    return 0;
  });
}

int poseidon_first_state(poseidon_run* p, uint32_t parameter, uint64_t steps,
                         const float* const* state, size_t count) {
  return called(p, [&](session& s) {
    if (count > 2 || (state == nullptr && count > 0))
      throw session_error("the state of parameter " + std::to_string(parameter) + " has " +
                          std::to_string(count) + " arrays, expected 2 at most");
    s.first_state(parameter, steps, {state, state + count});
    return 0;
  });
}

int poseidon_step(poseidon_run* p, uint32_t group, const poseidon_hyperparameters* h) {
  return called(p, [&](session& s) {
    if (h == nullptr) throw session_error("poseidon_step was given no hyperparameters");
    s.step(group, {.rate = h->rate,
                   .weight_decay = h->weight_decay,
                   .momentum = h->momentum,
                   .dampening = h->dampening,
                   .beta2 = h->beta2,
                   .epsilon = h->eps,
                   .nesterov = h->nesterov != 0,
                   .lerp = h->lerp != 0,
                   .rest = h->rest});
    return 0;
  });
}

int poseidon_step_from(poseidon_run* p, uint32_t parameter, const float* values) {
  return called(p, [&](session& s) {
    s.step_from(parameter, values);
    return 0;
  });
}

int poseidon_read_state(poseidon_run* p, double timeout_s) {
  return called(
      p, [&](session& s) { return s.read_state(limit_of(timeout_s)) ? 0 : POSEIDON_NOT_YET; });
}

const float* poseidon_state(poseidon_run* p, uint32_t parameter, uint32_t array) {
  return p == nullptr ? nullptr : p->run.state(parameter, array);
}

int64_t poseidon_steps(poseidon_run* p, uint32_t parameter) {
  int64_t made = -1;
  (void)called(p, [&](session& s) {
    made = static_cast<int64_t>(s.steps(parameter));
    return 0;
  });
  return made;
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
