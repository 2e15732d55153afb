#include "apps/web/token.hpp"

#include "models/spec/spec_file.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>

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

}  // namespace

std::string read_token(const std::string& option, const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string token;
  if (!std::getline(in, token) || token.empty())
    throw spec_error(option + " " + file.string() +
                     ": cannot read a token from its first line. Make one with: "
                     "openssl rand -hex 32 > " +
                     file.string());
  return token;
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
