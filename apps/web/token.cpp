#include "apps/web/token.hpp"

#include "models/spec/spec_file.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace poseidon::web {

namespace {

std::string cookie_of(const std::string& header) {
  constexpr std::string_view name = "poseidon=";
  for (std::size_t at = 0; at < header.size();) {
    auto end = header.find(';', at);
    if (end == std::string::npos) end = header.size();
    auto pair = std::string_view(header).substr(at, end - at);
    while (!pair.empty() && pair.front() == ' ') pair.remove_prefix(1);
    if (pair.starts_with(name)) return std::string(pair.substr(name.size()));
    at = end + 1;
  }
  return {};
}

/// A decoded path as a browser may be sent to: no line end in it begins another header, and no second slash another host.
std::string redirectable(const std::string& path) {
  constexpr std::string_view plain = "-._~/";
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out = "/";
  for (const char c : path.substr(std::min(path.find_first_not_of('/'), path.size()))) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x80 && std::isalnum(byte) != 0) || plain.find(c) != plain.npos) {
      out += c;
    } else {
      out += '%';
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  return out;
}

constexpr std::size_t most_token_bytes = 4096;
/// A pipe may be written while it is read, by `<(command)`; one that nobody writes must not keep the program.
constexpr std::chrono::milliseconds most_patience{5000};

class open_file {
 public:
  explicit open_file(const std::filesystem::path& file)
      : number_(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}
  ~open_file() {
    if (number_ >= 0) ::close(number_);
  }
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;

  /// Adds what comes to `out`. False: it has ended, or nothing has come within `limit`.
  [[nodiscard]] bool read(std::string& out, std::chrono::milliseconds limit) const {
    pollfd waits{number_, POLLIN, 0};
    if (number_ < 0 || ::poll(&waits, 1, static_cast<int>(limit.count())) != 1) return false;
    std::array<char, 512> bytes{};
    const auto got = ::read(number_, bytes.data(), bytes.size());
    if (got > 0) out.append(bytes.data(), static_cast<std::size_t>(got));
    return got > 0;
  }

 private:
  int number_;
};

/// Without its end; of a longer line a part with more than `most` bytes. Empty: there is none, or the file cannot be read.
std::string first_line(const std::filesystem::path& file, std::size_t most) {
  const open_file in(file);
  const auto until = std::chrono::steady_clock::now() + most_patience;
  std::string out;
  while (out.size() <= most && out.find('\n') == out.npos) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    if (left.count() <= 0 || !in.read(out, left)) break;
  }
  return out.substr(0, out.find('\n'));
}

}  // namespace

std::string read_token(const std::string& option, const std::filesystem::path& file) {
  const auto refuse = [&](const std::string& why) {
    return spec_error(option + " " + file.string() + ": " + why +
                      ". Make one with: openssl rand -hex 32 > " + file.string());
  };
  auto token = first_line(file, most_token_bytes);
  if (token.empty()) throw refuse("cannot read a token from its first line");
  if (token.size() > most_token_bytes)
    throw refuse("its first line has more than " + std::to_string(most_token_bytes) +
                 " bytes, and a token has 64");
  return token;
}

std::string warn_of_readers(const std::string& option, const std::filesystem::path& file) {
  struct stat s {};
  if (file.empty() || ::stat(file.c_str(), &s) != 0 || !S_ISREG(s.st_mode)) return {};
  if ((s.st_mode & S_IROTH) == 0) return {};
  return option + " " + file.string() +
         ": every user of this machine can read this secret. chmod 600 " + file.string() +
         " keeps it to its owner.";
}

bool token_gate::knows(const request& r) const {
  constexpr std::string_view bearer = "Bearer ";
  return token_.empty() || same_secret(cookie_of(r.cookie), token_) ||
         (r.authorization.starts_with(bearer) &&
          same_secret(std::string_view(r.authorization).substr(bearer.size()), token_));
}

std::optional<response> token_gate::refusal(const request& r) const {
  constexpr auto plain = "text/plain; charset=utf-8";
  if (!token_.empty() && same_secret(r.parameter("token").value_or(""), token_))
    return response{303, plain, "",
                    "Location: " + redirectable(r.path) + "\r\nSet-Cookie: poseidon=" + token_ +
                        "; HttpOnly; SameSite=Strict; Path=/" + (tls_ ? "; Secure" : "") + "\r\n"};
  if (knows(r)) return std::nullopt;
  return response{401, plain,
                  std::string("this page wants its token once: ") + (tls_ ? "https" : "http") +
                      "://HOST:PORT/?token=T, "
                      "where T is the first line of --web-token-file\n",
                  ""};
}

}  // namespace poseidon::web
