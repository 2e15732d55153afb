// actors/training/finished_work.hpp
//
// What stream and copy_out tell others when the results of a work are on the host: the layer its outputs, the solver the
// first output that is NaN or infinite.
#pragma once
#include "actors/training/work.hpp"

#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace poseidon {

struct finished_work {
  work_done done;                            ///< for results.reply
  std::optional<nonfinite_found> nonfinite;  ///< for the solver
};

class result_reader {
 public:
  result_reader() = default;  ///< for no results
  /// `first_nonfinite`: replica::first_nonfinite().
  explicit result_reader(std::function<std::optional<std::string>()> first_nonfinite)
      : first_nonfinite_(std::move(first_nonfinite)) {}

  /// Reads the outputs. Looks for the layer of a NaN immediately, because the next work of the stream may overwrite its
  /// values; where it has done so, the layer of the output is named. Only the first NaN is reported.
  [[nodiscard]] finished_work finished(const issue_work& work);

 private:
  std::function<std::optional<std::string>()> first_nonfinite_;
  bool reported_ = false;
};

}  // namespace poseidon
