#include "apps/web/recorded_site.hpp"

#include "apps/web/live_site.hpp"
#include "apps/web/run_files.hpp"
#include "models/files/file_kind.hpp"
#include "models/json.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <vector>

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

std::string read_recording(const std::filesystem::path& path) {
  if (const auto kind = kind_if_no_file(path); !kind.empty())
    throw std::invalid_argument(path.string() + " is " + kind +
                                ". Give a folder with snapshots, or the file that poseidon-node "
                                "--trace has written.");
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  if (!in || !(all << in.rdbuf()))
    throw std::invalid_argument("cannot read " + path.string() +
                                ": give a folder with snapshots, or the file that poseidon-node "
                                "--trace has written.");
  auto text = std::move(all).str();
  if (text.find("\"traceEvents\"") == std::string::npos)
    throw std::invalid_argument(path.string() +
                                " is no trace: it has no \"traceEvents\". Give a folder with "
                                "snapshots, or the file that poseidon-node --trace has written.");
  return text;
}

/// The last file, with the runs before it that it was resumed from.
std::string recording_of(const std::vector<std::filesystem::path>& files) {
  auto last = read_recording(files.back());
  if (files.size() == 1) return last;
  std::string earlier;
  for (std::size_t f = 0; f + 1 < files.size(); ++f)
    earlier += (f == 0 ? "" : ",") + read_recording(files[f]);
  return json_object()
      .put("earlier", json_value{"[" + earlier + "]"})
      .put("last", json_value{std::move(last)})
      .text();
}

}  // namespace

std::unique_ptr<server> serve_recording(const host_port& at, const std::filesystem::path& run) {
  const bool folder = std::filesystem::is_directory(run);
  const auto files = folder ? newest_run_in(run) : std::vector{run};
  server_options o;
  o.at = at;
  o.hosts = hosts_of(at);
  return std::make_unique<server>(std::move(o),
                                  std::make_shared<recorded_site>(recording_of(files)));
}

}  // namespace poseidon::web
