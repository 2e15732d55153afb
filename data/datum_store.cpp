#include "data/datum_store.hpp"

#include "models/printable.hpp"

#include <stdexcept>
#include <utility>

namespace poseidon {
namespace {

class datum_store final : public image_store {
 public:
  datum_store(std::shared_ptr<const record_reader> records, picture_colour colour)
      : records_(std::move(records)), colour_(colour) {
    if (records_->size() == 0)
      throw std::runtime_error(records_->path().string() +
                               (records_->kind() == database_kind::lmdb ? ": an " : ": a ") +
                               name_of(records_->kind()) + " without records; a source needs one.");
    image_scratch scratch;
    shape_ = shape_of(get(0, scratch));
  }
  std::uint64_t size() const override { return records_->size(); }
  const shape& image_shape() const override { return shape_; }
  std::string key(std::uint64_t n) const override { return records_->key(n); }
  std::string describe() const override {
    return std::string(name_of(records_->kind())) + " of Datum";
  }
  std::string where(std::uint64_t n) const override {
    return records_->path().string() + ": record \"" + key_text(key(n)) + "\"";
  }
  image get(std::uint64_t n, image_scratch& scratch) const override {
    try {
      const auto out = parse_datum(records_->value(n, scratch.record), scratch, colour_);
      records_->check();
      return out;
    } catch (const std::runtime_error& e) {
      throw std::runtime_error(where(n) + " " + e.what() + ".");
    }
  }

 private:
  std::shared_ptr<const record_reader> records_;
  picture_colour colour_;
  shape shape_;
};

}  // namespace

std::shared_ptr<const image_store> open_datums(std::shared_ptr<const record_reader> records,
                                               picture_colour colour) {
  return std::make_shared<datum_store>(std::move(records), colour);
}

}  // namespace poseidon
