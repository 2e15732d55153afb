#include "apps/web/token.hpp"

#include "models/spec/spec_file.hpp"
#include "tests/folder.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <sys/stat.h>

using namespace poseidon;

TEST_CASE(
    "warn_of_readers: a secret that every user of the machine can read is said, with what to do") {
  const test::temporary_folder in;
  const auto path = in.path() / "token";
  std::ofstream(path) << "secret\n";
  for (const ::mode_t mode : {0600, 0640, 0400, 0644, 0604, 0666}) {
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    const auto line = web::warn_of_readers("--token-file", path);
    CHECK(line.empty() == ((mode & 4) == 0));
    if (!line.empty()) CHECK(line.find("chmod 600 " + path.string()) != std::string::npos);
  }
  CHECK(web::warn_of_readers("--token-file", "").empty());
  CHECK(web::warn_of_readers("--token-file", in.path() / "none").empty());
  CHECK(web::warn_of_readers("--token-file", "/dev/null").empty());
}

TEST_CASE("read_token: the first line of a file, and no file keeps the program") {
  const test::temporary_folder in;
  const auto written = [&](const std::string& text) {
    const auto path = in.path() / "token";
    std::ofstream(path) << text;
    return path;
  };
  CHECK(web::read_token("--token-file", written("secret\nmore\n")) == "secret");
  CHECK(web::read_token("--token-file", written("secret")) == "secret");
  CHECK(web::read_token("--token-file", written(std::string(4096, 'x') + "\n")).size() == 4096);
  const auto refused = [](const std::filesystem::path& path, const std::string& why) {
    try {
      (void)web::read_token("--token-file", path);
    } catch (const spec_error& e) {
      return std::string(e.what()).find("--token-file " + path.string() + ": " + why) !=
             std::string::npos;
    }
    return false;
  };
  CHECK(refused(written(""), "cannot read a token"));
  CHECK(refused(written("\nsecond\n"), "cannot read a token"));
  CHECK(refused(in.path() / "none", "cannot read a token"));
  CHECK(refused(in.path(), "cannot read a token"));
  CHECK(refused(written(std::string(4097, 'x')), "its first line has more than 4096 bytes"));
  CHECK(refused("/dev/zero", "its first line has more than 4096 bytes"));
  const auto pipe = in.path() / "pipe";  // that nobody writes
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(refused(pipe, "cannot read a token"));
}
