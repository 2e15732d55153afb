#include "actors/core/actor_failure.hpp"

#include <caf/actor_system.hpp>
#include <caf/sec.hpp>

namespace poseidon {

caf::error error_of(const std::exception_ptr& thrown, const std::string& actor) {
  const auto failed = [&](const std::string& what, bool of_all) {
    return caf::make_error(caf::sec::runtime_error, actor + ": " + what, of_all);
  };
  try {
    std::rethrow_exception(thrown);
  } catch (const nodes_differ& e) {
    return failed(e.what(), true);
  } catch (const std::exception& e) {
    return failed(e.what(), false);
  } catch (...) {
    return failed("unknown exception", false);
  }
}

actor_failure failure_of(caf::actor_system& system, const caf::error& reason) {
  const auto& words = reason.context();
  if (!words.match_elements<std::string, bool>()) return {system.render(reason), false};
  return {words.get_as<std::string>(0), words.get_as<bool>(1)};
}

}  // namespace poseidon
