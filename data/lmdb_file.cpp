// The walk over the pages. Offsets below are those of struct MDB_page, MDB_node, MDB_db and
// MDB_meta of LMDB 0.9 with 64-bit page numbers.
#include "data/lmdb_file.hpp"

#include "data/lmdb_writers.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <stdexcept>

namespace poseidon {
namespace {
static_assert(std::endian::native == std::endian::little,
              "LMDB files have the machine's byte order");

constexpr std::uint32_t magic_word = 0xBEEFC0DE;
constexpr std::uint32_t data_version = 1;
constexpr std::uint64_t no_page = ~std::uint64_t{0};
// number 8, pad 2, flags 2, then lower 2 + upper 2 or pages 4
constexpr std::size_t page_header = 16;
constexpr std::size_t node_header = 8;  // low 2, high 2, flags 2, key bytes 2
constexpr std::size_t meta_bytes = page_header + 136;
enum page_flag : std::uint16_t { branch = 1, leaf = 2, overflow = 4, meta = 8 };
enum table_flag : std::uint16_t { reverse_key = 2, integer_key = 8 };
enum node_flag : std::uint16_t { big_value = 1, sub_database = 2, duplicates = 4 };

template <class T>
T load(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::filesystem::path data_file(const std::filesystem::path& path) {
  return std::filesystem::is_directory(path) ? path / "data.mdb" : path;
}

std::uint64_t number_of(std::string_view key) {
  const auto* at = reinterpret_cast<const std::uint8_t*>(key.data());
  return key.size() == 4 ? load<std::uint32_t>(at) : load<std::uint64_t>(at);
}

struct meta_page {
  std::uint64_t page_bytes, entries, root, last_page, transaction;
  std::uint16_t flags, depth;
};
}  // namespace

class lmdb_walk {
 public:
  lmdb_walk(lmdb_file& to, const opening_progress& progress)
      : to_(to), progress_(progress), bytes_(to.file_->bytes()) {}

  void run() {
    meta_ = newest_meta();
    to_.transaction_ = meta_.transaction;
    to_.integer_keys_ = (meta_.flags & integer_key) != 0;
    if (meta_.flags & ~(integer_key | reverse_key) & 0x7e)
      corrupt("the main database has flags", meta_.flags, "a Datum database has", 0);
    if (meta_.root == no_page) {
      if (meta_.entries != 0)
        corrupt("an empty tree", 0, "the meta page counts records", meta_.entries);
      return;
    }
    // A record takes 8 bytes and its key at least, whatever the meta page claims.
    to_.index_.reserve(std::min<std::uint64_t>(meta_.entries, bytes_.size() / node_header));
    visit(meta_.root, 1);
    if (to_.index_.size() != meta_.entries)
      corrupt("the tree holds records", to_.index_.size(), "the meta page counts", meta_.entries);
  }

 private:
  [[noreturn]] void fail(const std::string& text) const {
    throw std::runtime_error(to_.path_.string() + ": " + text);
  }
  [[noreturn]] void corrupt(const std::string& found_what, std::uint64_t found,
                            const std::string& wanted_what, std::uint64_t wanted) const {
    fail("corrupt LMDB: " + found_what + " " + std::to_string(found) + ", " + wanted_what + " " +
         std::to_string(wanted) + ". Copy or convert it again.");
  }

  meta_page read_meta(std::size_t offset) const {
    if (offset + meta_bytes > bytes_.size())
      fail("truncated: the file has " + std::to_string(bytes_.size()) +
           " bytes, its meta page ends at " + std::to_string(offset + meta_bytes) +
           ". Copy or convert it again.");
    const auto* at = bytes_.data() + offset;
    if (!(load<std::uint16_t>(at + 10) & meta) || load<std::uint32_t>(at + 16) != magic_word)
      fail("not an LMDB file of a 64-bit machine: the magic word at byte " +
           std::to_string(offset + 16) + " is " + std::to_string(load<std::uint32_t>(at + 16)) +
           ", it should be " + std::to_string(magic_word) + ".");
    if (load<std::uint32_t>(at + 20) != data_version)
      fail("LMDB format version " + std::to_string(load<std::uint32_t>(at + 20)) +
           "; this reads version " + std::to_string(data_version) + " (LMDB 0.9).");
    // dbs[1]; dbs[0], whose pad word is the page size, is the free list
    const auto* main = at + 88;
    return {.page_bytes = load<std::uint32_t>(at + 40),
            .entries = load<std::uint64_t>(main + 32),
            .root = load<std::uint64_t>(main + 40),
            .last_page = load<std::uint64_t>(at + 136),
            .transaction = load<std::uint64_t>(at + 144),
            .flags = load<std::uint16_t>(main + 4),
            .depth = load<std::uint16_t>(main + 6)};
  }

  meta_page newest_meta() const {
    const auto first = read_meta(0);
    if (!std::has_single_bit(first.page_bytes) || first.page_bytes < 256 ||
        first.page_bytes > 65536)
      corrupt("page size", first.page_bytes, "expected a power of two up to", 65536);
    const auto second = read_meta(first.page_bytes);
    // Both must be good: falling back to the older one would silently lose the last transaction.
    if (second.page_bytes != first.page_bytes)
      corrupt("second meta page has page size", second.page_bytes, "the first", first.page_bytes);
    const auto apart = std::max(first.transaction, second.transaction) -
                       std::min(first.transaction, second.transaction);
    if (apart > 1)
      corrupt("its meta pages are of transactions " + std::to_string(first.transaction) + " and",
              second.transaction, "which should be apart by", 1);
    return second.transaction > first.transaction ? second : first;
  }

  /// Offset of `pages` pages from `number` on, all of which lie inside the file.
  std::uint64_t locate(std::uint64_t number, std::uint64_t pages) const {
    const auto have = bytes_.size() / meta_.page_bytes;
    if (number > meta_.last_page || pages > meta_.last_page + 1 - number)
      corrupt("the tree points at page", number + pages - 1, "the last page is", meta_.last_page);
    if (number >= have || pages > have - number)
      fail("truncated: the file has " + std::to_string(bytes_.size()) + " bytes, its page " +
           std::to_string(number + pages - 1) + " ends at " +
           std::to_string((number + pages) * meta_.page_bytes) + ". Copy or convert it again.");
    return number * meta_.page_bytes;
  }

  const std::uint8_t* open_page(std::uint64_t number, std::uint16_t kind) const {
    const auto* page = bytes_.data() + locate(number, 1);
    if (load<std::uint64_t>(page) != number)
      corrupt("a page calls itself", load<std::uint64_t>(page), "it is number", number);
    const auto flags = load<std::uint16_t>(page + 10);
    if ((flags & 0x2f) != kind)
      corrupt("page " + std::to_string(number) + " has flags", flags, "expected", kind);
    return page;
  }

  /// The i-th node of a page, whose header and key lie inside the page.
  std::uint64_t node_offset(const std::uint8_t* page, std::size_t nodes, std::size_t i) const {
    const std::size_t at = load<std::uint16_t>(page + page_header + 2 * i);
    if (at < page_header + 2 * nodes || at + node_header > meta_.page_bytes)
      corrupt("a record starts at byte " + std::to_string(at) + " of a page of", meta_.page_bytes,
              "its pointers end at", page_header + 2 * nodes);
    const auto key_end = at + node_header + load<std::uint16_t>(page + at + 6);
    if (key_end > meta_.page_bytes)
      corrupt("a key ends at byte", key_end, "its page at", meta_.page_bytes);
    return at;
  }

  // Depth is bounded by the meta page's and a tree has every page once, so a loop of pages ends
  // here.
  void visit(std::uint64_t number, int depth) {
    if (depth > meta_.depth || depth > 32)
      corrupt("the tree is deeper than", meta_.depth, "at page", number);
    if (++visited_ > meta_.last_page)
      corrupt("the tree has pages", visited_, "the file", meta_.last_page + 1);
    const bool is_leaf = depth == meta_.depth;
    const auto* page = open_page(number, is_leaf ? leaf : branch);
    const std::size_t lower = load<std::uint16_t>(page + 12);
    if (lower < page_header || lower > meta_.page_bytes)
      corrupt("page " + std::to_string(number) + " has its pointers' end at", lower, "page size is",
              meta_.page_bytes);
    const auto nodes = (lower - page_header) / 2;
    for (std::size_t i = 0; i < nodes; ++i) {
      const auto at = node_offset(page, nodes, i);
      if (is_leaf)
        add_record(page, at);
      else
        visit(load<std::uint32_t>(page + at) | std::uint64_t{load<std::uint16_t>(page + at + 4)}
                                                   << 32,
              depth + 1);
    }
    if (is_leaf && progress_) progress_(to_.index_.size(), meta_.entries);
  }

  void add_record(const std::uint8_t* page, std::uint64_t at) {
    const auto flags = load<std::uint16_t>(page + at + 4);
    if (flags & (sub_database | duplicates))
      fail("holds named or duplicate-key databases (record flags " + std::to_string(flags) +
           "), a Datum database has plain records (0).");
    const auto key_bytes = load<std::uint16_t>(page + at + 6);
    const std::uint64_t value_bytes = load<std::uint32_t>(page + at);
    const auto key_at = static_cast<std::uint64_t>(page - bytes_.data()) + at + node_header;
    auto value_at = key_at + key_bytes;
    const auto end = at + node_header + key_bytes + ((flags & big_value) ? 8 : value_bytes);
    if (end > meta_.page_bytes)
      corrupt("a record ends at byte", end, "its page at", meta_.page_bytes);
    if (flags & big_value)
      value_at = big_value_offset(load<std::uint64_t>(bytes_.data() + value_at), value_bytes);
    const std::string_view key(reinterpret_cast<const char*>(bytes_.data() + key_at), key_bytes);
    if (const auto n = to_.index_.size(); n > 0 && !is_below(to_.record(n - 1).key, key))
      corrupt("keys out of order at record", n, "of", meta_.entries);
    if (to_.index_.size() >= meta_.entries)
      corrupt("more records than", to_.index_.size(), "the meta page counts", meta_.entries);
    to_.index_.push_back({key_at, value_at, static_cast<std::uint32_t>(value_bytes), key_bytes});
  }

  /// In the order of the table.
  bool is_below(std::string_view a, std::string_view b) const {
    if (meta_.flags & integer_key) {
      if (a.size() != b.size() || (a.size() != 4 && a.size() != 8))
        fail("keys of " + std::to_string(a.size()) + " and " + std::to_string(b.size()) +
             " bytes, where MDB_INTEGERKEY has numbers of 4 or 8.");
      return number_of(a) < number_of(b);
    }
    if (meta_.flags & reverse_key)
      return std::lexicographical_compare(
          a.rbegin(), a.rend(), b.rbegin(), b.rend(), [](char l, char r) {
            return static_cast<unsigned char>(l) < static_cast<unsigned char>(r);
          });
    return a < b;
  }

  std::uint64_t big_value_offset(std::uint64_t number, std::uint64_t value_bytes) const {
    const auto pages = (page_header + value_bytes + meta_.page_bytes - 1) / meta_.page_bytes;
    const auto offset = locate(number, pages);
    const auto* page = open_page(number, overflow);
    if (load<std::uint32_t>(page + 12) < pages)
      corrupt("a value of pages", load<std::uint32_t>(page + 12), "its record needs", pages);
    return offset + page_header;
  }

  lmdb_file& to_;
  const opening_progress& progress_;
  std::span<const std::uint8_t> bytes_;
  meta_page meta_{};
  std::uint64_t visited_ = 0;
};

namespace {
/// With two committed transactions more, a third can be writing over pages of the snapshot: it takes those that the first of them freed.
constexpr std::uint64_t most_behind = 1;
}  // namespace

lmdb_file::lmdb_file(const std::filesystem::path& path, const opening_progress& progress)
    : path_(data_file(path)) {
  constexpr int most_attempts = 5;  // each takes the newest snapshot, and so a file that has grown
  for (int attempt = 1;; ++attempt) {
    file_ = std::make_unique<const mapped_file>(path_);
    index_.clear();
    transaction_ = newest_transaction();
    try {
      lmdb_walk(*this, progress).run();
      if (newest_transaction() <= transaction_ + most_behind) return;
    } catch (const std::runtime_error& e) {
      if (newest_transaction() == transaction_) {
        const auto others = processes_with(path_);
        if (others.empty()) throw;
        throw std::runtime_error(std::string(e.what()) + " It is open in " + others +
                                 ": if that writes it, wait for its end.");
      }
    }
    if (attempt == most_attempts) throw std::runtime_error(being_written());
  }
}

std::uint64_t lmdb_file::newest_transaction() const {
  constexpr std::size_t of_page_bytes = 40, of_transaction = 144;
  const auto bytes = file_->bytes();
  if (bytes.size() < meta_bytes) return 0;
  const std::size_t page_bytes = load<std::uint32_t>(bytes.data() + of_page_bytes);
  std::uint64_t newest = 0;
  for (const auto page : {std::size_t{0}, page_bytes}) {
    // Damage may say any number; the walk refuses it.
    if (page % alignof(std::uint64_t) != 0 || page + meta_bytes > bytes.size()) continue;
    const auto* at = reinterpret_cast<const std::uint64_t*>(bytes.data() + page + of_transaction);
    newest = std::max(newest, __atomic_load_n(at, __ATOMIC_ACQUIRE));
  }
  return newest;
}

std::string lmdb_file::being_written() const {
  const auto others = processes_with(path_);
  return path_.string() + ": it is being written while it is read, by " +
         (others.empty() ? "a program that holds no lock on this machine" : others) +
         ". Stop that program first, or read a copy: mdb_copy makes one of an LMDB in use.";
}

lmdb_record lmdb_file::record(std::size_t n) const {
  const auto& e = index_[n];
  const auto* bytes = file_->bytes().data();
  return {{reinterpret_cast<const char*>(bytes + e.key_offset), e.key_bytes},
          {bytes + e.value_offset, e.value_bytes}};
}

void lmdb_file::check() const {
  // What was read before is not read after: the processor (x86-64) keeps the order of loads, and this has the compiler keep it.
  std::atomic_signal_fence(std::memory_order_acq_rel);
  if (newest_transaction() > transaction_ + most_behind) throw std::runtime_error(being_written());
}

lmdb_record lmdb_file::at(std::size_t n) const {
  check();
  return record(n);
}

}  // namespace poseidon
