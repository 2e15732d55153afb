#include "data/parts.hpp"
#include "tests/apps/data_program.hpp"

#include <algorithm>
#include <set>

using namespace poseidon;
using namespace poseidon::test;

namespace {

/// `n` records whose keys are not numbers and whose values are no Datum.
void make_records(const std::filesystem::path& folder, database_kind kind, std::size_t n) {
  const auto writer = make_database(kind, folder, {n, n * 100}, false);
  for (std::size_t i = 0; i < n; ++i)
    writer->put(key_of(i) + "_a.jpg", "value " + std::to_string(i * i));
  writer->finish();
}

}  // namespace

TEST_CASE("part_of: every record has one part, and sizes differ by one at most") {
  for (const std::uint64_t records : {2, 7, 10, 64, 101})
    for (const std::uint64_t parts : {2, 3, 7})
      for (const auto order : {part_order::round_robin, part_order::contiguous}) {
        if (records < parts) continue;
        partition_options options;
        options.parts = parts;
        options.order = order;
        std::vector<std::uint64_t> counts(parts);
        for (std::uint64_t n = 0, last = 0; n < records; ++n) {
          const auto part = part_of(n, records, options);
          REQUIRE(part < parts);
          if (order == part_order::contiguous) CHECK(part >= last);
          last = part;
          ++counts[part];
        }
        const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
        CHECK(*most - *least <= 1);
        CHECK(*least >= 1);
      }
  partition_options blocks;
  blocks.parts = 2;
  blocks.block = 3;
  std::string taken;
  for (std::uint64_t n = 0; n < 8; ++n) taken += std::to_string(part_of(n, 8, blocks));
  CHECK(taken == "00011100");
}

TEST_CASE("partition and merge: each record once, as it was, and the whole comes back") {
  for (const auto kind : {database_kind::lmdb, database_kind::leveldb})
    for (const std::string how : {"", " --block 3", " --order contiguous"}) {
      temporary_folder folder;
      make_records(folder / "db", kind, 23);
      const auto whole = records_of(folder / "db");
      check_done("partition " + (folder / "db").string() + " --parts 3 --out " +
                     (folder / "part").string() + how,
                 "3 parts of ");
      std::size_t all = 0;
      std::set<std::string> keys;
      for (const char* name : {"part_0", "part_1", "part_2"}) {
        CHECK(open_database(folder / name)->kind() == kind);
        for (const auto& record : records_of(folder / name)) {
          CHECK(std::find(whole.begin(), whole.end(), record) != whole.end());
          keys.insert(record.first);
          ++all;
        }
      }
      CHECK(all == 23);
      CHECK(keys.size() == 23);
      check_done("merge " + (folder / "part").string() + " --parts 3", "23 records of 3 parts");
      CHECK(records_of(folder / "part") == whole);
      CHECK(leftovers(folder.path()) == 0);
    }
}

TEST_CASE("partition: lists are cut by lines") {
  temporary_folder folder;
  write_file(folder / "train.txt", "a b.jpg 1\nc.jpg 2\n\n  \nd.jpg 3\ne.jpg 4");
  const auto list = (folder / "train.txt").string();
  check_done("partition " + list + " --parts 2", "2 parts of 2 lines");
  CHECK(read_file(folder / "train.txt_0") == "a b.jpg 1\nd.jpg 3\n");
  CHECK(read_file(folder / "train.txt_1") == "c.jpg 2\ne.jpg 4\n");
  check_refused("partition " + list + " --parts 2", "train.txt_0 exists already");
  check_done("partition " + list + " --parts 2 --order contiguous --force");
  CHECK(read_file(folder / "train.txt_1") == "d.jpg 3\ne.jpg 4\n");
}

TEST_CASE("partition: what cannot be cut is refused, and nothing is left") {
  temporary_folder folder;
  make_records(folder / "db", database_kind::lmdb, 4);
  const auto db = (folder / "db").string();
  check_refused("partition " + db + " --parts 5", "4 records are too few for 5 parts: part 4");
  check_refused("partition " + db + " --parts 1", "--parts");
  check_refused("partition " + db, "--parts is required");
  check_refused("partition " + db + " --parts 2 --order contiguous --block 2",
                "--block 2 is for --order round-robin");
  check_refused("partition " + db + "x --parts 2", "no such file or folder");
  check_refused("partition " + folder.path().string() + " --parts 2", "without data.mdb");
  write_file(folder / "binary", std::string("\0\1\2", 3));
  check_refused("partition " + (folder / "binary").string() + " --parts 2",
                "neither a database nor a list");
  // The second part's place is taken: the first is not made either.
  std::filesystem::create_directory(folder / "x_1");
  check_refused("partition " + db + " --parts 2 --out " + (folder / "x").string(),
                "x_1 exists already");
  CHECK_FALSE(std::filesystem::exists(folder / "x_0"));
  CHECK(leftovers(folder.path()) == 0);
}

TEST_CASE("partition: a disk that fills up leaves no part behind") {
  temporary_folder folder;
  const auto writer = make_database(database_kind::lmdb, folder / "db", {40, 40 * 5000}, false);
  for (std::size_t i = 0; i < 40; ++i) writer->put(key_of(i), std::string(5000, 'x'));
  writer->finish();
  const auto done =
      run_data("partition " + (folder / "db").string() + " --parts 2", "ulimit -f 40;");
  CHECK(done.code == 2);
  CHECK_MESSAGE((is_one_line(done.text) && has(done.text, "MiB free. Make room")), done.text);
  CHECK_FALSE(std::filesystem::exists(folder / "db_0"));
  CHECK_FALSE(std::filesystem::exists(folder / "db_1"));
  CHECK(leftovers(folder.path()) == 0);
}

TEST_CASE("merge: parts that are missing, too many, twice the same or of two kinds are refused") {
  temporary_folder folder;
  make_records(folder / "db", database_kind::lmdb, 6);
  const auto db = (folder / "db").string();
  check_done("partition " + db + " --parts 3");
  check_refused("merge " + db + " --parts 4", "db_3 is not there: part 3 of 4");
  check_refused("merge " + db + " --parts 2", "db_2 is there as well");
  check_refused("merge " + db + " --parts 3", "db exists already");
  std::filesystem::remove_all(folder / "db_1");
  std::filesystem::copy(folder / "db_0", folder / "db_1");
  check_refused("merge " + db + " --parts 3 --out " + (folder / "all").string(),
                "record \"00000000_a.jpg\" is in " + db + "_0 and in " + db + "_1");
  std::filesystem::remove_all(folder / "db_1");
  make_records(folder / "db_1", database_kind::leveldb, 2);
  check_refused("merge " + db + " --parts 3 --out " + (folder / "all").string(),
                "db_1 is a LevelDB");
  write_file(folder / "text_0", "hello\n");
  check_refused("merge " + (folder / "text").string() + " --parts 1", "no part of anything");
  CHECK_FALSE(std::filesystem::exists(folder / "all"));
  CHECK(leftovers(folder.path()) == 0);
}
