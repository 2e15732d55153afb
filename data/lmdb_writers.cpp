// Source   /proc/locks as proc(5) has it: "1: POSIX ADVISORY READ 1234 fe:01:5678 0 0".
#include "data/lmdb_writers.hpp"

#include "models/printable.hpp"

#include <fstream>
#include <set>
#include <sstream>
#include <sys/stat.h>

namespace poseidon {
namespace {

std::string name_of_process(const std::string& id) {
  std::ifstream file("/proc/" + id + "/comm");
  std::string name;
  std::getline(file, name);
  return name.empty() ? "process " + id : "process " + id + " (" + escaped(name) + ")";
}

}  // namespace

std::string processes_with(const std::filesystem::path& data) {
  const auto lock = data.filename() == "data.mdb" ? data.parent_path() / "lock.mdb"
                                                  : std::filesystem::path(data.string() + "-lock");
  struct stat about {};
  if (::stat(lock.c_str(), &about) != 0) return "";
  const auto inode = ":" + std::to_string(about.st_ino);
  std::ifstream locks("/proc/locks");
  std::set<std::string> ids;
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, advisory, what, id, file;
    if (!(words >> number >> kind >> advisory >> what >> id >> file) || kind != "POSIX") continue;
    if (file.size() > inode.size() &&
        file.compare(file.size() - inode.size(), inode.size(), inode) == 0)
      ids.insert(id);
  }
  std::string all;
  for (const auto& id : ids) all += (all.empty() ? "" : ", ") + name_of_process(id);
  return all;
}

}  // namespace poseidon
