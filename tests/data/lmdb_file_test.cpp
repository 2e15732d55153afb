#include "data/lmdb_file.hpp"

#include "data/database.hpp"
#include "data/image_store.hpp"
#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>
#include <lmdb.h>

#include <atomic>
#include <charconv>
#include <limits>
#include <random>
#include <thread>
#include <unistd.h>

using namespace poseidon;
using namespace poseidon::test;

namespace {
struct pair {
  std::string key, value;
  bool operator==(const pair&) const = default;
};

/// The content of a folder as liblmdb reads it: the oracle for our reader.
std::vector<pair> read_with_liblmdb(const std::filesystem::path& folder) {
  MDB_env* environment = nullptr;
  MDB_txn* transaction = nullptr;
  MDB_cursor* cursor = nullptr;
  MDB_dbi database = 0;
  REQUIRE(mdb_env_create(&environment) == 0);
  REQUIRE(mdb_env_open(environment, folder.c_str(), MDB_RDONLY | MDB_NOLOCK, 0664) == 0);
  REQUIRE(mdb_txn_begin(environment, nullptr, MDB_RDONLY, &transaction) == 0);
  REQUIRE(mdb_dbi_open(transaction, nullptr, 0, &database) == 0);
  REQUIRE(mdb_cursor_open(transaction, database, &cursor) == 0);
  std::vector<pair> result;
  MDB_val key, value;
  while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0)
    result.push_back({{static_cast<char*>(key.mv_data), key.mv_size},
                      {static_cast<char*>(value.mv_data), value.mv_size}});
  mdb_cursor_close(cursor);
  mdb_txn_abort(transaction);
  mdb_env_close(environment);
  return result;
}

std::vector<pair> read_with_ours(const std::filesystem::path& folder) {
  const lmdb_file file(folder);
  std::vector<pair> result;
  for (std::size_t n = 0; n < file.size(); ++n) {
    const auto record = file.at(n);
    result.push_back(
        {std::string(record.key), std::string(record.value.begin(), record.value.end())});
  }
  return result;
}

/// Random keys and values put in random order with some deleted again: a tree with a history.
void make_used_lmdb(const std::filesystem::path& folder, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::filesystem::create_directory(folder);
  MDB_env* environment = nullptr;
  REQUIRE(mdb_env_create(&environment) == 0);
  REQUIRE(mdb_env_set_mapsize(environment, 64 << 20) == 0);
  REQUIRE(mdb_env_open(environment, folder.c_str(), MDB_NOLOCK | MDB_NOSYNC, 0664) == 0);
  for (int round = 0; round < 5; ++round) {
    MDB_txn* transaction = nullptr;
    MDB_dbi database = 0;
    REQUIRE(mdb_txn_begin(environment, nullptr, 0, &transaction) == 0);
    REQUIRE(mdb_dbi_open(transaction, nullptr, 0, &database) == 0);
    for (int i = 0; i < 300; ++i) {
      auto name = std::to_string(random() % 2000);
      name.append(random() % 200, 'x');
      std::string content(random() % 4 == 0 ? random() % 20000 : random() % 300,
                          char('a' + i % 26));
      MDB_val key{name.size(), name.data()}, value{content.size(), content.data()};
      if (random() % 5 == 0)
        mdb_del(transaction, database, &key, nullptr);
      else
        REQUIRE(mdb_put(transaction, database, &key, &value, 0) == 0);
    }
    REQUIRE(mdb_txn_commit(transaction) == 0);
  }
  mdb_env_close(environment);
}
}  // namespace

TEST_CASE(
    "lmdb_file: reads what liblmdb reads, in its order, big values and deleted records included") {
  temporary_folder folder;
  for (std::uint32_t seed = 0; seed < 8; ++seed) {
    const auto path = folder / std::to_string(seed);
    make_used_lmdb(path, seed);
    const auto expected = read_with_liblmdb(path);
    REQUIRE(expected.size() > 500);
    CHECK(read_with_ours(path) == expected);
  }
}

TEST_CASE("lmdb_file: reads a folder and the bare file alike, and records of 0, 1 and many pages") {
  temporary_folder folder;
  make_lmdb(folder / "db", {"", "a", std::string(100000, 'b')});
  CHECK(read_with_ours(folder / "db") == read_with_liblmdb(folder / "db"));
  CHECK(read_with_ours(folder / "db/data.mdb") == read_with_ours(folder / "db"));
}

TEST_CASE("lmdb_file: an empty database has no records, and as a source it is refused by name") {
  temporary_folder folder;
  make_lmdb(folder / "db", {});
  CHECK(lmdb_file(folder / "db").size() == 0);
  const auto text = complaint([&] { (void)open_images(folder / "db"); });
  CHECK(text.find("data.mdb: an LMDB without records") != std::string::npos);
}

TEST_CASE("lmdb_file: a file cut short anywhere is refused with both sizes, or still whole") {
  temporary_folder folder;
  make_image_lmdb(folder / "db", 40, {1, 28, 28});
  const auto whole = read_file(folder / "db/data.mdb");
  const auto expected = read_with_ours(folder / "db");
  int refused = 0;
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 1000) {
    write_file(folder / "cut", whole.substr(0, bytes));
    std::vector<pair> found;
    const auto text = complaint([&] { found = read_with_ours(folder / "cut"); });
    if (text.empty()) {
      CHECK(found == expected);
      continue;
    }
    ++refused;
    CHECK_MESSAGE(text.find("truncated") != std::string::npos, text);
    CHECK_MESSAGE(text.find(std::to_string(bytes) + " bytes") != std::string::npos, text);
  }
  CHECK(refused > 30);
}

TEST_CASE(
    "lmdb_file: flipped bits never crash a reader: an exception or 40 images of the first one's "
    "shape") {
  temporary_folder folder;
  make_image_lmdb(folder / "small", 40, {1, 28, 28});
  make_image_lmdb(folder / "big", 12, {3, 40, 40});  // values on overflow pages
  make_used_lmdb(folder / "used", 3);
  for (const char* name : {"small", "big", "used"}) {
    const auto whole = read_file(folder / (std::string(name) + "/data.mdb"));
    const auto expected = read_with_ours(folder / name).size();
    int refused = 0;
    for (std::uint32_t seed = 0; seed < 400; ++seed) {
      std::mt19937 random(seed);
      auto content = whole;
      const int flips = 1 + static_cast<int>(random() % 8);
      for (int i = 0; i < flips; ++i) {
        // Half of them where the structure is: in the first bytes of a page.
        auto at = random() % content.size();
        if (random() % 2 == 0) at = at / 4096 * 4096 + random() % 160;
        if (at < content.size())
          content[at] = static_cast<char>(content[at] ^ (1u << random() % 8));
      }
      write_file(folder / "flipped", content);
      bool whole_images = true;
      const auto text = complaint([&] {
        const lmdb_file file(folder / "flipped");
        CHECK(file.size() == expected);  // not silently an older state of the database
        std::size_t bytes = 0;
        for (std::size_t n = 0; n < file.size(); ++n) {
          const auto value = file.at(n).value;  // copied whole: each byte can be read
          bytes += std::vector<std::uint8_t>(value.begin(), value.end()).size();
        }
        CHECK(bytes > 0);
        const auto images = open_images(folder / "flipped");
        image_scratch scratch;
        const auto values = static_cast<std::size_t>(count(images->image_shape()));
        for (std::uint64_t n = 0; n < images->size(); ++n) {
          const auto one = images->get(n, scratch);
          whole_images = whole_images && one.bytes.size() + one.floats.size() == values;
        }
      });
      CHECK(whole_images);
      if (!text.empty()) {
        ++refused;
        CHECK_MESSAGE(text.find("flipped") != std::string::npos, text);
      }
    }
    CHECK(refused > 40);  // the other flips hit unused bytes or pixels
  }
}

namespace {

/// A writer beside the reader, with liblmdb's lock file.
class live_writer {
 public:
  explicit live_writer(const std::filesystem::path& folder) {
    std::filesystem::create_directory(folder);
    REQUIRE(mdb_env_create(&environment_) == 0);
    REQUIRE(mdb_env_set_mapsize(environment_, 64 << 20) == 0);
    REQUIRE(mdb_env_open(environment_, folder.c_str(), MDB_NOSYNC, 0664) == 0);
  }
  live_writer(const live_writer&) = delete;
  live_writer& operator=(const live_writer&) = delete;
  ~live_writer() { mdb_env_close(environment_); }

  /// All records of a transaction have its number as their value.
  void commit(int number, int records = 40) {
    MDB_txn* transaction = nullptr;
    MDB_dbi database = 0;
    REQUIRE(mdb_txn_begin(environment_, nullptr, 0, &transaction) == 0);
    REQUIRE(mdb_dbi_open(transaction, nullptr, 0, &database) == 0);
    for (int i = 0; i < records; ++i) {
      auto name = "key" + std::to_string(i);
      auto content = std::to_string(number) + std::string(500, 'x');
      MDB_val key{name.size(), name.data()}, value{content.size(), content.data()};
      REQUIRE(mdb_put(transaction, database, &key, &value, 0) == 0);
    }
    REQUIRE(mdb_txn_commit(transaction) == 0);
  }

 private:
  MDB_env* environment_ = nullptr;
};

/// Of a record that is being overwritten: any number, or the largest one.
int number_in(const lmdb_record& r) {
  const std::string text(r.value.begin(), r.value.end());
  int number = std::numeric_limits<int>::max();
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

TEST_CASE(
    "lmdb_file: a snapshot stays what it was, and is refused with the writer's name before it can "
    "change") {
  temporary_folder folder;
  live_writer writer(folder / "db");
  writer.commit(1);
  const lmdb_file file(folder / "db");
  for (const int commits : {1, 2}) {
    for (std::size_t n = 0; n < file.size(); ++n) CHECK(number_in(file.at(n)) == 1);
    CHECK(number_in(lmdb_file(folder / "db").at(0)) == commits);
    writer.commit(commits + 1);
  }
  const auto text = complaint([&] { (void)file.at(0); });
  CHECK_MESSAGE(text.find("data.mdb: it is being written while it is read, by process " +
                          std::to_string(::getpid()) + " (") != std::string::npos,
                text);
  CHECK(text.find("read a copy: mdb_copy") != std::string::npos);
  CHECK(number_in(lmdb_file(folder / "db").at(0)) == 3);
}

TEST_CASE(
    "lmdb_file: opened again and again while it is written, it is one transaction's or names the "
    "writer") {
  temporary_folder folder;
  live_writer writer(folder / "db");
  writer.commit(1);
  std::atomic<bool> over{false};
  std::atomic<int> written{1};
  std::thread beside([&] {
    while (!over) writer.commit(written.fetch_add(1) + 1, 40 + written % 50);
  });
  int whole = 0, refused = 0;
  std::string others;
  while (whole + refused < 300) {
    try {
      const lmdb_file file(folder / "db");
      const auto first = file.at(0);
      const int number = number_in(first);
      int later = 0;
      // A transaction that wrote fewer records leaves those of an earlier one.
      for (std::size_t n = 0; n < file.size(); ++n) later += number_in(file.at(n)) > number ? 1 : 0;
      file.check();
      if (later > 0) others += std::to_string(later) + " later records; ";
      ++whole;
    } catch (const std::runtime_error& e) {
      ++refused;
      if (std::string(e.what()).find("process " + std::to_string(::getpid())) == std::string::npos)
        others += e.what();
    }
  }
  over = true;
  beside.join();
  CHECK(others == "");
}

TEST_CASE("lmdb_file: what was read while two transactions were written is refused afterwards") {
  temporary_folder folder;
  live_writer writer(folder / "db");
  writer.commit(1);
  const lmdb_file file(folder / "db");
  (void)file.at(0);
  writer.commit(2);
  file.check();
  writer.commit(3);
  CHECK(complaint([&] { file.check(); }).find("it is being written while it is read") !=
        std::string::npos);
}

TEST_CASE(
    "lmdb_file: integer keys and reversed keys have their own order, as liblmdb's cursor has") {
  for (const unsigned flags : {unsigned{MDB_INTEGERKEY}, unsigned{MDB_REVERSEKEY}})
    for (const std::size_t bytes : {4, 8}) {
      temporary_folder folder;
      std::filesystem::create_directory(folder / "db");
      MDB_env* environment = nullptr;
      MDB_txn* transaction = nullptr;
      MDB_dbi database = 0;
      REQUIRE(mdb_env_create(&environment) == 0);
      REQUIRE(mdb_env_open(environment, (folder / "db").c_str(), MDB_NOLOCK, 0664) == 0);
      REQUIRE(mdb_txn_begin(environment, nullptr, 0, &transaction) == 0);
      REQUIRE(mdb_dbi_open(transaction, nullptr, flags, &database) == 0);
      std::mt19937_64 random(bytes);
      for (int i = 0; i < 500; ++i) {
        std::uint64_t number = random() >> random() % 60;
        MDB_val key{bytes, &number}, value{sizeof number, &number};
        REQUIRE(mdb_put(transaction, database, &key, &value, 0) == 0);
      }
      REQUIRE(mdb_txn_commit(transaction) == 0);
      mdb_env_close(environment);
      CHECK(read_with_ours(folder / "db") == read_with_liblmdb(folder / "db"));
      CHECK(lmdb_file(folder / "db").has_integer_keys() == (flags == MDB_INTEGERKEY));
      const auto reader = open_database(folder / "db");
      if (flags != MDB_INTEGERKEY) continue;
      for (std::uint64_t n = 1; n < reader->size(); ++n) {
        CHECK(reader->key(n - 1) < reader->key(n));
        CHECK(reader->key(n).size() == (bytes == 4 ? 10 : 20));
      }
    }
}

TEST_CASE("lmdb_file: what is no LMDB says so, with the word it found") {
  temporary_folder folder;
  write_file(folder / "text", std::string(9000, 'x'));
  CHECK(complaint([&] { lmdb_file{folder / "text"}; }).find("not an LMDB file") !=
        std::string::npos);
  write_file(folder / "lfs", "version https://git-lfs.github.com/spec/v1\nsize 12\n");
  CHECK(complaint([&] {
          lmdb_file{folder / "lfs"};
        }).find("lfs: this is a pointer of Git LFS in") != std::string::npos);
  CHECK(complaint([&] { lmdb_file{folder / "none"}; }).find("No such file") != std::string::npos);
  CHECK(complaint([&] { lmdb_file{folder.path()}; }).find("data.mdb") != std::string::npos);
}

TEST_CASE(
    "lmdb_writer: nothing has the folder's name before finish, and a dead writer leaves no trace") {
  temporary_folder folder;
  {
    lmdb_writer writer(folder / "db", 10, 100, false);
    writer.put("a", "1");
    CHECK_FALSE(std::filesystem::exists(folder / "db"));
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("lmdb_writer: replaces a database only when told to, and nothing else ever") {
  temporary_folder folder;
  make_lmdb(folder / "db", {"old"});
  CHECK(complaint([&] { lmdb_writer(folder / "db", 1, 1, false); }).find("--force") !=
        std::string::npos);
  {
    lmdb_writer writer(folder / "db", 1, 10, true);
    writer.put("a", "new");
    CHECK(read_with_ours(folder / "db")[0].value == "old");
    writer.finish();
  }
  CHECK(read_with_ours(folder / "db") == std::vector<pair>{{"a", "new"}});
  CHECK_FALSE(std::filesystem::exists(folder / "db.old"));

  std::filesystem::create_directory(folder / "home");
  write_file(folder / "home/thesis.tex", "years of work");
  CHECK(complaint([&] { lmdb_writer(folder / "home", 1, 1, true); }).find("more than a database") !=
        std::string::npos);
  CHECK(read_file(folder / "home/thesis.tex") == "years of work");
}
