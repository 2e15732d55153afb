// apps/library/declarations.cpp - the functions of poseidon.h that say what the program has: parameters and shared state.
#include "apps/library/poseidon.h"
#include "apps/library/run_handle.hpp"
#include "apps/library/words.hpp"
#include "messages/wire/codec.hpp"
#include "models/words.hpp"

#include <cstring>
#include <set>
#include <string>
#include <vector>

using poseidon::declared_parameter;
using poseidon::plural;
using poseidon::shared_memory;
using poseidon::library::called;
using poseidon::library::first_unfit;
using poseidon::library::one_line;
using poseidon::library::session;
using poseidon::library::session_error;

namespace {

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

}  // namespace

extern "C" {

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

}  // extern "C"
