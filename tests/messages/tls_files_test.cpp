// Files of TLS that cannot be used: refused at the start, with option, file and reason.
#include "messages/wire/tls_context.hpp"
#include "tests/messages/tls_rig.hpp"

namespace poseidon {
namespace {

using test::tls_authority;

constexpr std::time_t day = 24 * 3600;

std::string refused(const tls_files& files, std::optional<std::time_t> now = std::nullopt) {
  try {
    const tls_context read(files, now);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "accepted";
}

TEST_CASE("tls: files that fit are accepted, an authority alone for readers") {
  const tls_authority authority;
  CHECK(refused(authority.sign("node")) == "accepted");
  CHECK(authority.context("other")->has_certificate());
  CHECK_FALSE(authority.reader()->has_certificate());
}

TEST_CASE("tls: a file that is missing, empty or something else is named with its option") {
  const tls_authority authority;
  const auto good = authority.sign("node");
  const auto missing = authority.folder() / "missing";
  const auto empty = authority.folder().write("empty", "");
  const auto text = authority.folder().write("text", "no PEM at all\n");
  struct place {
    const char* option;
    std::filesystem::path tls_files::*file;
    const char* holds;
  };
  for (const auto& p : {place{"--tls-cert", &tls_files::certificate,
                              "certificate in PEM form (-----BEGIN CERTIFICATE-----)"},
                        place{"--tls-key", &tls_files::key,
                              "private key in PEM form (-----BEGIN PRIVATE KEY-----)"},
                        place{"--tls-ca", &tls_files::authority,
                              "certificate in PEM form (-----BEGIN CERTIFICATE-----)"}}) {
    CAPTURE(std::string(p.option));
    const auto with = [&](const std::filesystem::path& file) {
      auto files = good;
      files.*p.file = file;
      return refused(files);
    };
    const auto begin = std::string(p.option) + " ";
    CHECK(with(missing) ==
          begin + missing.string() + ": cannot be read: No such file or directory");
    CHECK(with(authority.folder().path()) ==
          begin + authority.folder().path().string() + ": cannot be read: Is a directory");
    CHECK(with(empty) == begin + empty.string() + ": is empty");
    CHECK(with(text) == begin + text.string() + ": holds no " + p.holds);
  }
}

TEST_CASE("tls: a key of another certificate, and one with a passphrase, are refused") {
  const tls_authority authority;
  const auto one = authority.sign("one"), two = authority.sign("two");
  CHECK(refused({one.certificate, two.key, one.authority}) ==
        "--tls-key " + two.key.string() + ": is not the key of the certificate in " +
            one.certificate.string() + " (--tls-cert). Give the two that were made together.");
  const auto locked = authority.folder() / "locked.key";
  REQUIRE(std::system(("openssl ec -aes128 -passout pass:secret -in " + one.key.string() +
                       " -out " + locked.string() + " 2> /dev/null")
                          .c_str()) == 0);
  CHECK(refused({one.certificate, locked, one.authority}) ==
        "--tls-key " + locked.string() +
            ": is encrypted, and nobody is there to type its passphrase. Give a key without one, "
            "that only its owner can read (chmod 600).");
}

TEST_CASE("tls: a certificate that no peer would accept is refused at the start") {
  const tls_authority ours, others("another cluster");
  auto files = ours.sign("node", 1);
  const auto name = "--tls-cert " + files.certificate.string() + ": ";
  const auto expired = refused(files, std::time(nullptr) + 5 * day);
  CHECK(expired.starts_with(name + "has expired: it was valid until 20"));
  CHECK(refused(files, std::time(nullptr) - 5 * day).starts_with(name + "is not valid yet: "));
  files.authority = others.sign("foreign").authority;
  CHECK(refused(files).starts_with(name + "(of /CN=node, by /CN=the cluster) does not chain to " +
                                   files.authority.string() + " (--tls-ca): "));
}

TEST_CASE("tls: some of the three files are none") {
  const tls_authority authority;
  const auto good = authority.sign("node");
  const std::string together =
      "TLS needs --tls-cert, --tls-key and --tls-ca together, because both sides of a link prove "
      "themselves. Missing: ";
  const auto links = [](const tls_files& f) {
    return test::error_of([&] { (void)tls_of_links(f); });
  };
  CHECK(tls_of_links({}) == nullptr);
  CHECK(tls_of_links(good) != nullptr);
  CHECK(links({good.certificate, {}, {}}) == together + "--tls-key and --tls-ca.");
  CHECK(links({good.certificate, good.key, {}}) == together + "--tls-ca.");
  CHECK(links({{}, {}, good.authority}) == together + "--tls-cert and --tls-key.");
  CHECK(tls_of_reader({}) == nullptr);
  CHECK(tls_of_reader({{}, {}, good.authority}) != nullptr);
  CHECK(test::error_of([&] {
          (void)tls_of_reader({good.certificate, good.key, {}});
        }) == together + "--tls-ca.");
  CHECK(test::error_of([&] {
          (void)tls_of_reader({good.certificate, {}, good.authority});
        }) == together + "--tls-key.");
}

/// Writes over the files of one certificate what another one has.
void replace(const tls_files& old, const tls_files& by) {
  for (const auto file : {&tls_files::certificate, &tls_files::key}) {
    const auto next = (old.*file).string() + ".next";
    std::filesystem::copy_file(by.*file, next, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(next, old.*file);
  }
}

/// Whom a dialer that trusts `authority` sees; or why it sees nobody.
std::string seen_of(const tls_context& acceptor, const tls_authority& authority) {
  test::connection c;
  c.acceptor->use_tls(acceptor, tls_side::serves_pages);
  c.dialer->use_tls(*authority.reader(), tls_side::dials);
  auto there = std::async(std::launch::async, [&] {
    return test::error_of([&] { c.acceptor->shake_tls(test::soon()); });
  });
  return test::error_of([&] { c.dialer->shake_tls(test::soon()); });
}

TEST_CASE("tls: files that have changed are read again before the next connection") {
  const tls_authority before("the cluster"), after("the cluster of next year");
  const auto files = before.sign("node");
  const tls_context node(files);
  const auto first = node.newest();
  CHECK(node.newest() == first);
  CHECK(seen_of(node, before) == "no error");
  auto next = after.sign("node");
  replace(files, next);  // signed by an authority that this node does not know
  CHECK(node.newest() == first);
  CHECK(node.why_unused().starts_with("--tls-cert " + files.certificate.string() +
                                      ": (of /CN=node, by /CN=the cluster of next year) does not "
                                      "chain to "));
  CHECK(seen_of(node, before) == "no error");
  std::filesystem::copy_file(next.authority, files.authority,
                             std::filesystem::copy_options::overwrite_existing);
  CHECK(node.newest() != first);
  CHECK(node.why_unused().empty());
  CHECK(seen_of(node, after) == "no error");
}

TEST_CASE("tls: a file that is gone is no reason to refuse, but the one that is missed") {
  const tls_authority authority;
  const auto files = authority.sign("node");
  const tls_context node(files);
  std::filesystem::remove(files.key);
  CHECK(seen_of(node, authority) == "no error");
  CHECK(node.why_unused() ==
        "--tls-key " + files.key.string() + ": cannot be read: No such file or directory");
}

}  // namespace
}  // namespace poseidon
