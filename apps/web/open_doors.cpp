#include "apps/web/open_doors.hpp"

#include "models/spec/spec_file.hpp"

#include <algorithm>

namespace poseidon::web {

namespace {

void check_page(const open_doors& d) {
  if (!d.page_token.empty() && !d.page) throw spec_error("--web-token-file belongs to --web.");
  if (d.page_token.find_first_of(";, \t\r") != std::string::npos)
    throw spec_error("--web-token-file: a token has no spaces, commas or semicolons.");
  if (d.page && !is_loopback(*d.page) && d.page_token.empty())
    throw spec_error(
        "--web " + to_string(*d.page) +
        " can be reached from other machines, and no token is set, so anybody could "
        "look. Give --web-token-file FILE, or serve 127.0.0.1 and tunnel with ssh -L.");
}

}  // namespace

void require_tokens(const open_doors& d) {
  if (d.listen && !is_loopback(*d.listen) && d.token.empty())
    throw spec_error(
        "--listen " + to_string(*d.listen) +
        " can be reached from other machines, and no "
        "token is set, so anybody could take part. Give --token-file FILE (the same file on "
        "every node), or listen on 127.0.0.1.");
  if (!d.join.empty() && !std::all_of(d.join.begin(), d.join.end(), is_loopback) && d.token.empty())
    throw spec_error("--join " + to_string(d.join.front()) +
                     " leads to another machine, and this node will listen where other machines "
                     "reach it, but no token is set, so anybody could take part. Give "
                     "--token-file FILE, the first node's.");
  check_page(d);
}

}  // namespace poseidon::web
