#include "data/leveldb_file.hpp"

#include "data/image_store.hpp"
#include "data/leveldb_writer.hpp"
#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>

using namespace poseidon;
using namespace poseidon::test;
namespace fs = std::filesystem;

namespace {

void make_leveldb(const fs::path& folder, std::size_t records) {
  leveldb_writer writer(folder, false);
  for (std::size_t n = 0; n < records; ++n)
    writer.put(key_of(n), make_datum({1, 5, 6}, made_image(n, 30), static_cast<int>(n % 10)));
  writer.finish();
}

std::size_t views() {
  std::size_t n = 0;
  for (const auto& entry : fs::directory_iterator(fs::temp_directory_path()))
    n += entry.path().filename().string().rfind("poseidon-leveldb-", 0) == 0;
  return n;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("leveldb: every record comes back by place, in the order of the keys") {
  temporary_folder folder;
  make_leveldb(folder / "db", 2345);
  const auto images = open_images(folder / "db");
  CHECK(images->describe() == "LevelDB of Datum");
  REQUIRE(images->size() == 2345);
  CHECK(images->image_shape() == shape{1, 5, 6});
  image_scratch scratch;
  for (std::uint64_t n = 2345; n-- > 0;) {
    const auto one = images->get(n, scratch);
    const auto expected = made_image(n, 30);
    CHECK(images->key(n) == key_of(n));
    CHECK(one.label == static_cast<int>(n % 10));
    CHECK(std::equal(expected.begin(), expected.end(), one.bytes.begin(), one.bytes.end()));
  }
}

TEST_CASE(
    "leveldb: two readers at once, in one process and in two, and the folder stays as it was") {
  temporary_folder folder;
  make_leveldb(folder / "db", 100);
  const auto names = [&] {
    std::vector<std::pair<std::string, std::uintmax_t>> all;
    for (const auto& e : fs::directory_iterator(folder / "db"))
      all.emplace_back(e.path().filename().string(), e.file_size());
    std::sort(all.begin(), all.end());
    return all;
  };
  const auto before = names();
  const auto views_before = views();
  {
    const leveldb_file one(folder / "db"), two(folder / "db");
    CHECK(one.size() == 100);
    CHECK(two.size() == 100);
    const auto child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const bool good = complaint([&] {
                          const leveldb_file three(folder / "db");
                          if (three.size() != 100) throw std::runtime_error("size");
                        }) == "";
      ::_exit(good ? 0 : 1);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  CHECK(names() == before);
  CHECK(views() == views_before);
}

TEST_CASE("leveldb: what is missing or damaged is named, as the user knows it") {
  temporary_folder folder;
  CHECK(has(complaint([&] { leveldb_file{folder / "none"}; }), "none: no such folder."));
  fs::create_directory(folder / "empty");
  CHECK(has(complaint([&] { leveldb_file{folder / "empty"}; }), "a folder without CURRENT"));
  make_leveldb(folder / "db", 300);
  std::size_t refused = 0, files = 0;
  for (const auto& entry : fs::directory_iterator(folder / "db")) {
    if (entry.file_size() == 0 || entry.path().filename() == "LOG") continue;
    const auto content = read_file(entry.path());
    for (const auto& damaged :
         {content.substr(0, content.size() / 2), std::string(content.size(), 'x')}) {
      ++files;
      write_file(entry.path(), damaged);
      const auto text = complaint([&] {
        const auto images = open_images(folder / "db");
        image_scratch scratch;
        for (std::uint64_t n = 0; n < images->size(); ++n) (void)images->get(n, scratch);
        if (images->size() != 300) throw std::runtime_error("lost records silently");
      });
      CHECK_MESSAGE(text != "lost records silently", entry.path().string());
      CHECK_FALSE(has(text, "poseidon-leveldb-"));
      refused += has(text, (folder / "db").string());
    }
    write_file(entry.path(), content);
  }
  CHECK(files >= 6);  // CURRENT, a manifest, a table; cut and overwritten
  CHECK(refused == files);
  CHECK(open_images(folder / "db")->size() == 300);
}

TEST_CASE("leveldb: one flipped bit of one pixel does not reach a net") {
  temporary_folder folder;
  make_leveldb(folder / "db", 300);
  fs::path table;
  for (const auto& entry : fs::directory_iterator(folder / "db"))
    if (entry.path().extension() == ".ldb" || entry.path().extension() == ".sst")
      table = entry.path();
  REQUIRE_FALSE(table.empty());
  auto content = read_file(table);
  content[content.size() / 2] ^= 1;
  write_file(table, content);
  const auto text = complaint([&] { leveldb_file{folder / "db"}; });
  CHECK_MESSAGE(has(text, "damaged after "), text);
}

TEST_CASE("leveldb_writer: all or nothing, rising keys, and only a database is replaced") {
  temporary_folder folder;
  {
    leveldb_writer writer(folder / "db", false);
    writer.put("b", "1");
    CHECK_FALSE(fs::exists(folder / "db"));
    CHECK(has(complaint([&] { writer.put("a", "2"); }), "Keys must rise from record to record."));
  }
  CHECK(fs::is_empty(folder.path()));
  make_leveldb(folder / "db", 3);
  CHECK(has(complaint([&] { leveldb_writer(folder / "db", false); }), "exists already"));
  {
    leveldb_writer writer(folder / "db", true);
    writer.put("a", "new");
    CHECK(leveldb_file(folder / "db").size() == 3);
    writer.finish();
  }
  CHECK(leveldb_file(folder / "db").size() == 1);
  write_file(folder / "db/thesis.tex", "years of work");
  CHECK(has(complaint([&] { leveldb_writer(folder / "db", true); }), "more than a database"));
}
