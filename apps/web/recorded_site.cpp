#include "apps/web/recorded_site.hpp"

#include "apps/web/live_site.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace poseidon::web {

namespace {

class recorded_site : public site {
 public:
  explicit recorded_site(std::string trace) : trace_(std::move(trace)) {}
  answer get(const request& r) override {
    if (r.path == "/api/recording") return {{200, "application/json", trace_, ""}, {}};
    return {page_file(r.path), {}};
  }

 private:
  std::string trace_;
};

}  // namespace

std::unique_ptr<server> serve_recording(const host_port& at, const std::filesystem::path& trace) {
  std::ifstream in(trace, std::ios::binary);
  std::ostringstream all;
  if (!in || !(all << in.rdbuf()))
    throw std::invalid_argument("cannot read " + trace.string() +
                                ": give the file that poseidon-node --trace has written.");
  auto text = std::move(all).str();
  if (text.find("\"traceEvents\"") == std::string::npos)
    throw std::invalid_argument(trace.string() +
                                " is no trace: it has no \"traceEvents\". Give the file that "
                                "poseidon-node --trace has written.");
  server_options o;
  o.at = at;
  o.hosts = hosts_of(at);
  return std::make_unique<server>(std::move(o), std::make_shared<recorded_site>(std::move(text)));
}

}  // namespace poseidon::web
