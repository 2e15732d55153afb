// actors/client/factor_offers.hpp - what all workers' programs can give as factors, as far as worker 0 has heard it.
#pragma once
#include "messages/ids.hpp"
#include "models/indexed.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace poseidon {

class factor_offers {
 public:
  factor_offers(std::size_t workers, std::size_t parameters)
      : of_worker_(workers), parameters_(parameters) {}

  /// `rows`: by parameter; 0: its gradient comes as a whole. A shorter list ends in zeros.  Returns  true: it was the last one.
  [[nodiscard]] bool take(worker_id from, std::vector<std::uint32_t> rows);

  /// By parameter, once all have come: the rows that the factors have at most on one worker; 0 where a worker has none.
  [[nodiscard]] std::vector<std::uint32_t> rows() const;

 private:
  by_id<worker_id, std::optional<std::vector<std::uint32_t>>> of_worker_;
  std::size_t parameters_;
  std::size_t heard_ = 0;
};

}  // namespace poseidon
