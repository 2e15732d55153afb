#include "apps/terminal/growing_files.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

namespace poseidon::app {

growing_files::growing_files(std::string option, std::string pieces, progress& display)
    : option_(std::move(option)), pieces_(std::move(pieces)), display_(display) {}

std::string growing_files::reason() {
  return errno != 0 ? std::strerror(errno) : "the disk takes no more";
}

void growing_files::append(growing_file& f, const std::string& piece) {
  if (f.broken) return;
  errno = 0;
  f.file << piece << std::flush;
  if (!f.file) stop(f, "they cannot be written: " + reason());
}

void growing_files::stop(growing_file& f, const std::string& why) {
  f.broken = true;
  display_.warning(option_ + " " + f.path.string() + " gets no more " + pieces_ + ", because " +
                   why);
}

}  // namespace poseidon::app
