#include "apps/terminal/tensorboard_file.hpp"

#include "messages/wire/checksum.hpp"
#include "tests/folder.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <optional>

using namespace poseidon;

namespace {

/// An Event as a reader of the format finds it.
struct event {
  double wall_time = 0;
  std::uint64_t step = 0;
  std::string version;
  std::map<std::string, float> values;
};

class bytes_reader {
 public:
  explicit bytes_reader(std::string bytes) : bytes_(std::move(bytes)) {}
  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }
  template <class T>
  T fixed() {
    T value;
    REQUIRE(at_ + sizeof value <= bytes_.size());
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string take(std::size_t n) {
    REQUIRE(at_ + n <= bytes_.size());
    at_ += n;
    return bytes_.substr(at_ - n, n);
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = fixed<std::uint8_t>();
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

/// TensorFlow's mask of a checksum, taken back.
std::uint32_t unmasked(std::uint32_t masked) {
  const auto rotated = masked - 0xa282ead8u;
  return rotated >> 17 | rotated << 15;
}

std::uint32_t sum_of(const std::string& bytes) {
  return crc32c_portable(std::as_bytes(std::span(bytes)));
}

event read_event(const std::string& message) {
  event e;
  for (bytes_reader in(message); !in.at_end();) {
    const auto key = in.varint();
    if (key == (1 << 3 | 1)) {
      e.wall_time = in.fixed<double>();
    } else if (key == (2 << 3 | 0)) {
      e.step = in.varint();
    } else if (key == (3 << 3 | 2)) {
      e.version = in.take(in.varint());
    } else {
      REQUIRE(key == (5 << 3 | 2));
      for (bytes_reader summary(in.take(in.varint())); !summary.at_end();) {
        REQUIRE(summary.varint() == (1 << 3 | 2));
        bytes_reader value(summary.take(summary.varint()));
        REQUIRE(value.varint() == (1 << 3 | 2));
        const auto tag = value.take(value.varint());
        REQUIRE(value.varint() == (2 << 3 | 5));
        e.values[tag] = value.fixed<float>();
        CHECK(value.at_end());
      }
    }
  }
  return e;
}

std::vector<event> read_events(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  bytes_reader in({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
  std::vector<event> events;
  while (!in.at_end()) {
    const auto length = in.take(8);
    CHECK(unmasked(in.fixed<std::uint32_t>()) == sum_of(length));
    const auto message = in.take(bytes_reader(length).fixed<std::uint64_t>());
    CHECK(unmasked(in.fixed<std::uint32_t>()) == sum_of(message));
    events.push_back(read_event(message));
  }
  return events;
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(folder)) files.push_back(file.path());
  return files;
}

std::string hexadecimal(const std::string& bytes) {
  std::string out;
  char two[3];
  for (const unsigned char b : bytes) {
    std::snprintf(two, sizeof two, "%02x", b);
    out += two;
  }
  return out;
}

struct warnings : app::run_listener {
  std::vector<std::string> lines;
  void warning(const std::string& line) override { lines.push_back(line); }
};

}  // namespace

TEST_CASE("tensorboard_file: every value is in its file, under its name and iteration") {
  test::temporary_folder folder;
  warnings said;
  {
    app::tensorboard_file t(folder / "log", said);
    t.trained(
        {.clock = 3, .last_clock = 10, .loss = 0.5, .outputs = {0.25, 0.75}, .learning_rate = 0.01},
        {{"accuracy", 0}, {"loss", 1}});
    t.trained({.clock = 300,
               .last_clock = 1000,
               .loss = std::nan(""),
               .outputs = {1, 2},
               .learning_rate = 0.02},
              {{"accuracy", 0}, {"loss", 1}});
    t.tested(1, 400, {0.5}, {{"accuracy", 0}});
  }
  const auto files = files_in(folder / "log/train");
  REQUIRE(files.size() == 1);
  CHECK(files[0].filename().string().starts_with("events.out.tfevents."));
  const auto events = read_events(files[0]);
  REQUIRE(events.size() == 3);
  CHECK(events[0].version == "brain.Event:2");
  CHECK(events[0].wall_time > 1.7e9);
  CHECK(events[1].step == 3);
  CHECK(events[1].values == std::map<std::string, float>{{"accuracy", 0.25f},
                                                         {"loss", 0.75f},
                                                         {"smoothed_loss", 0.5f},
                                                         {"learning_rate", 0.01f}});
  CHECK(events[2].step == 300);
  CHECK(std::isnan(events[2].values.at("smoothed_loss")));
  const auto tests = files_in(folder / "log/test1");
  REQUIRE(tests.size() == 1);
  const auto found = read_events(tests[0]);
  REQUIRE(found.size() == 2);
  CHECK(found[1].step == 400);
  CHECK(found[1].values == std::map<std::string, float>{{"accuracy", 0.5f}});
  CHECK(said.lines.empty());
}

/// Recorded from messages that were put together byte by byte, as the format's description has them.
TEST_CASE("tensorboard_file: the bytes of records: what is 0, empty, NaN or no UTF-8 is in them") {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const std::string long_name(200, 'n');
  CHECK(hexadecimal(app::version_record(1764347000.25)) ==
        "1800000000000000a37f4b22"
        "090000101e734ada411a0d627261696e2e4576656e743a3270e118d8");
  CHECK(hexadecimal(app::version_record(0)) ==
        "1800000000000000a37f4b22"
        "0900000000000000001a0d627261696e2e4576656e743a32eedf28a3");
  CHECK(hexadecimal(app::event_record(1764347000.25, 300, {{"loss", 0.5f}, {"accuracy", 0}})) ==
        "2c00000000000000f4aecc45"
        "090000101e734ada4110ac022a1e0a0b0a046c6f7373150000003f"
        "0a0f0a0861636375726163791500000000c01b6db6");
  CHECK(hexadecimal(app::event_record(0, 0, {})) ==
        "0d000000000000003c37b834"
        "09000000000000000010002a006d31e5b4");
  CHECK(hexadecimal(app::event_record(-1, std::uint64_t{1} << 40, {{"", nan}, {"\xff", -0.f}})) ==
        "2500000000000000eabc36f3"
        "09000000000000f0bf108080808080202a130a070a00150000c07f0a080a01ff150000008061df29b0");
  CHECK(sum_of(app::event_record(1, 1, {{long_name, 1.f}, {long_name, 2.f}})) == 3696196118);
}

TEST_CASE("tensorboard_file: a second run in the same second begins another file") {
  test::temporary_folder folder;
  warnings said;
  for (int run = 0; run < 3; ++run) {
    app::tensorboard_file t(folder.path(), said);
    t.trained({.clock = 1, .last_clock = 10, .loss = 0.5, .outputs = {}, .learning_rate = 0.01},
              {});
  }
  const auto files = files_in(folder / "train");
  CHECK(files.size() == 3);
  for (const auto& file : files) CHECK(read_events(file).size() == 2);
}

TEST_CASE("tensorboard_file: a folder that cannot be made is refused; later it is said once") {
  test::temporary_folder folder;
  warnings said;
  folder.write("file", "");
  CHECK_THROWS_WITH_AS(
      app::tensorboard_file(folder / "file", said),
      doctest::Contains(
          "cannot be written: Not a directory. Name a folder where files can be made."),
      std::invalid_argument);
  app::tensorboard_file t(folder.path(), said);
  folder.write("test0", "stands where the folder of the tests would be");
  for (std::uint64_t clock = 0; clock < 3; ++clock) t.tested(0, clock, {0.5}, {{"loss", 1}});
  REQUIRE(said.lines.size() == 1);
  CHECK(said.lines[0].find("gets no more values, because they cannot be written") !=
        std::string::npos);
}
