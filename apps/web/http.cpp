#include "apps/web/http.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <arpa/inet.h>
#include <cctype>
#include <charconv>

namespace poseidon::web {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (auto& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string_view trimmed(std::string_view t) {
  while (!t.empty() && (t.front() == ' ' || t.front() == '\t')) t.remove_prefix(1);
  while (!t.empty() && (t.back() == ' ' || t.back() == '\t')) t.remove_suffix(1);
  return t;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const int l = std::tolower(static_cast<unsigned char>(c));
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

/// Nothing for a broken escape or a zero byte.
std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
    out += static_cast<char>(16 * high + low);
    i += 2;
  }
  return out;
}

/// "[::1]:80" and "name:80" without their ports and brackets.
std::string_view without_port(std::string_view host) {
  if (!host.empty() && host.front() == '[') {
    const auto end = host.find(']');
    return end == std::string_view::npos ? std::string_view{} : host.substr(1, end - 1);
  }
  return host.substr(0, host.find(':'));
}

bool is_address(const std::string& host, bool& loopback) {
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    loopback = (ntohl(v4.s_addr) >> 24) == 127;
    return true;
  }
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) != 1) return false;
  loopback = IN6_IS_ADDR_LOOPBACK(&v6);
  return true;
}

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 303:
      return "See Other";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 421:
      return "Misdirected Request";
    case 431:
      return "Request Header Fields Too Large";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Error";
  }
}

parsed refuse(int status, std::string text) {
  return {std::nullopt, {status, std::move(text)}};
}

}  // namespace

std::optional<std::string> request::parameter(std::string_view name) const {
  std::string_view rest = query;
  while (!rest.empty()) {
    const auto end = rest.find('&');
    const auto pair = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    const auto equals = pair.find('=');
    if (pair.substr(0, equals) != name) continue;
    return decoded(equals == std::string_view::npos ? std::string_view{} : pair.substr(equals + 1));
  }
  return std::nullopt;
}

std::size_t request::number(std::string_view name, std::size_t otherwise) const {
  const auto text = parameter(name);
  std::size_t out = 0;
  if (!text) return otherwise;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), out);
  return error == std::errc{} && end == text->data() + text->size() ? out : otherwise;
}

bool host_rule::allows(std::string_view header) const {
  const auto host = lower(without_port(header));
  bool loopback = false;
  if (is_address(host, loopback)) return loopback || !loopback_only;
  if (host == "localhost") return true;
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& n) { return lower(n) == host; });
}

parsed parse_head(std::string_view head, const host_rule& hosts) {
  const auto line_end = head.find("\r\n");
  const auto line = head.substr(0, line_end);
  const auto space = line.find(' ');
  const auto space2 = line.find(' ', space + 1);
  if (space == std::string_view::npos || space2 == std::string_view::npos)
    return refuse(400, "the first line is no request");
  const auto method = line.substr(0, space);
  const auto target = line.substr(space + 1, space2 - space - 1);
  const auto version = line.substr(space2 + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return refuse(505, "HTTP/1.1 is spoken here");
  std::size_t hosts_seen = 0;
  bool host_allowed = false, has_body = false;
  request r;
  r.keep_alive = version == "HTTP/1.1";
  auto rest = line_end == std::string_view::npos ? std::string_view{} : head.substr(line_end + 2);
  while (!rest.empty()) {
    const auto end = rest.find("\r\n");
    const auto field = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 2);
    const auto colon = field.find(':');
    if (colon == std::string_view::npos || colon == 0 || field[colon - 1] == ' ')
      return refuse(400, "a header line without a name");
    const auto name = lower(field.substr(0, colon));
    const auto value = trimmed(field.substr(colon + 1));
    if (name == "host") {
      ++hosts_seen;
      host_allowed = hosts.allows(value);
    } else if (name == "connection") {
      const auto option = lower(value);
      if (option.find("close") != std::string::npos) r.keep_alive = false;
    } else if (name == "cookie") {
      r.cookie = value;
    } else if (name == "authorization") {
      r.authorization = value;
    } else if (name == "transfer-encoding" || (name == "content-length" && value != "0")) {
      has_body = true;
    }
  }
  if (hosts_seen != 1) return refuse(400, "exactly one Host is wanted");
  if (!host_allowed)
    return refuse(421,
                  "this host name does not belong to this page. Use the address that --web says.");
  if (method != "GET") return refuse(405, "this page can only be looked at: GET");
  if (has_body) return refuse(400, "a GET has no body");
  const auto question = target.find('?');
  const auto path = decoded(target.substr(0, question));
  if (!path || path->empty() || path->front() != '/') return refuse(400, "no such path");
  r.path = *path;
  if (question != std::string_view::npos) r.query = target.substr(question + 1);
  return {std::move(r), {}};
}

std::string head_of(const response& r, bool keep_alive, bool stream) {
  auto out =
      "HTTP/1.1 " + std::to_string(r.status) + " " + std::string(reason_of(r.status)) +
      "\r\nContent-Type: " + r.type + "\r\nCache-Control: no-store" +
      "\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer" +
      "\r\nContent-Security-Policy: default-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
      "form-action 'none'" +
      "\r\nX-Frame-Options: DENY\r\nCross-Origin-Resource-Policy: same-origin\r\n" + r.extra;
  if (r.status == 405) out += "Allow: GET\r\n";
  if (!stream) out += "Content-Length: " + std::to_string(r.body.size()) + "\r\n";
  return out + "Connection: " + (keep_alive && !stream ? "keep-alive" : "close") + "\r\n\r\n";
}

bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace poseidon::web
