// tests/tls_authority.hpp - certificates for one test, made by the command openssl: elliptic keys, so in some milliseconds.
#pragma once
#include "messages/wire/tls_context.hpp"
#include "tests/folder.hpp"

#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace poseidon::test {

/// An authority, and what it signs.
class tls_authority {
 public:
  explicit tls_authority(const std::string& name = "the cluster") {
    make("ca", "/CN=" + name, " -addext keyUsage=critical,keyCertSign,cRLSign");
  }

  /// A certificate of `name` with its key, and this authority.
  [[nodiscard]] tls_files sign(const std::string& name, int days = 30,
                               const std::string& more = "") const {
    make(name, "/CN=" + name,
         " -CA " + (folder_ / "ca.pem").string() + " -CAkey " + (folder_ / "ca.key").string() +
             " -addext basicConstraints=critical,CA:FALSE " + more,
         days);
    return {folder_ / (name + ".pem"), folder_ / (name + ".key"), folder_ / "ca.pem"};
  }
  [[nodiscard]] std::shared_ptr<const tls_context> context(
      const std::string& name, int days = 30, std::optional<std::time_t> now = std::nullopt) const {
    return std::make_shared<const tls_context>(sign(name, days), now);
  }
  /// Of a program that has no certificate.
  [[nodiscard]] std::shared_ptr<const tls_context> reader() const {
    return std::make_shared<const tls_context>(tls_files{{}, {}, folder_ / "ca.pem"});
  }
  [[nodiscard]] const temporary_folder& folder() const { return folder_; }

 private:
  void make(const std::string& file, const std::string& subject, const std::string& more,
            int days = 3650) const {
    const auto path = (folder_ / file).string();
    const auto command =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days " +
        std::to_string(days) + " -subj '" + subject + "' -keyout " + path + ".key -out " + path +
        ".pem" + more + " 2> " + path + ".log";
    if (std::system(command.c_str()) != 0)
      throw std::runtime_error("openssl made no certificate: " + command);
  }

  temporary_folder folder_;
};

}  // namespace poseidon::test
