#include "data/parts.hpp"

#include "data/list_file.hpp"
#include "data/new_file.hpp"

#include <algorithm>
#include <fstream>
#include <functional>
#include <queue>
#include <stdexcept>
#include <string>
#include <utility>

namespace poseidon {
namespace {
namespace fs = std::filesystem;

/// Keys and values of a database take no more than its files, except where LevelDB has compressed them. Their size is then
/// unknown, so a large bound is used.
database_limits limits_of(const record_reader& from) {
  std::uint64_t bytes = 0;
  if (!fs::is_directory(from.path()))
    bytes = fs::file_size(from.path());
  else
    for (const auto& file : fs::directory_iterator(from.path()))
      if (file.is_regular_file()) bytes += file.file_size();
  constexpr std::uint64_t packed_at_most = 64;
  if (from.kind() == database_kind::leveldb) bytes *= packed_at_most;
  return {from.size(), bytes};
}

void require_enough(std::uint64_t records, const partition_options& options, const fs::path& what,
                    const char* noun) {
  std::vector<bool> has(options.parts);
  for (std::uint64_t n = 0; n < records; ++n) has[part_of(n, records, options)] = true;
  const auto empty = std::find(has.begin(), has.end(), false);
  if (empty == has.end()) return;
  throw std::runtime_error(what.string() + ": " + std::to_string(records) + " " + noun +
                           " are too few for " + std::to_string(options.parts) + " parts: part " +
                           std::to_string(empty - has.begin()) + " would have none.");
}

void put(const record_reader& from, std::uint64_t n, std::vector<std::uint8_t>& scratch,
         record_writer& to) {
  const auto key = from.key(n);
  std::span<const std::uint8_t> value;
  try {
    value = from.value(n, scratch);
  } catch (const std::runtime_error& e) {
    throw std::runtime_error(from.path().string() + ": record \"" + key + "\" " + e.what() + ".");
  }
  to.put(key, {reinterpret_cast<const char*>(value.data()), value.size()});
  from.check();
}

std::vector<std::string> lines_of(const fs::path& list) {
  auto file = open_list(list, "files");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.find('\0') != std::string::npos)
      throw std::runtime_error(list.string() +
                               ": neither a database nor a list: it has bytes that are no text. "
                               "Convert it first: poseidon-data convert.");
    if (line.find_first_not_of(" \t\r") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

}  // namespace

fs::path part_path(const fs::path& prefix, std::uint64_t part) {
  auto text = prefix.string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text + "_" + std::to_string(part);
}

std::uint64_t part_of(std::uint64_t n, std::uint64_t records, const partition_options& options) {
  if (options.order == part_order::round_robin) return n / options.block % options.parts;
  // The k that has records * k / parts <= n < records * (k + 1) / parts, both rounded down.
  auto k = n * options.parts / records;
  while (records * (k + 1) / options.parts <= n) ++k;
  return k;
}

std::vector<std::uint64_t> partition_database(const record_reader& from, const fs::path& prefix,
                                              const partition_options& options) {
  require_enough(from.size(), options, from.path(), "records");
  std::vector<std::unique_ptr<record_writer>> writers;
  for (std::uint64_t k = 0; k < options.parts; ++k)
    writers.push_back(
        make_database(from.kind(), part_path(prefix, k), limits_of(from), options.replace));
  std::vector<std::uint64_t> counts(options.parts);
  std::vector<std::uint8_t> scratch;
  for (std::uint64_t n = 0; n < from.size(); ++n) {
    if (options.progress && n % 1000 == 0 && n > 0) options.progress(n);
    const auto part = part_of(n, from.size(), options);
    put(from, n, scratch, *writers[part]);
    ++counts[part];
  }
  for (auto& writer : writers) writer->seal();  // a disk that is full says so before any has a name
  for (auto& writer : writers) writer->finish();
  return counts;
}

std::vector<std::uint64_t> partition_list(const fs::path& list, const fs::path& prefix,
                                          const partition_options& options) {
  const auto lines = lines_of(list);
  require_enough(lines.size(), options, list, "lines");
  std::vector<std::unique_ptr<new_file>> files;
  for (std::uint64_t k = 0; k < options.parts; ++k)
    files.push_back(std::make_unique<new_file>(part_path(prefix, k), options.replace));
  std::vector<std::uint64_t> counts(options.parts);
  std::vector<std::string> texts(options.parts);
  for (std::uint64_t n = 0; n < lines.size(); ++n) {
    const auto part = part_of(n, lines.size(), options);
    texts[part] += lines[n] + "\n";
    ++counts[part];
  }
  for (std::uint64_t k = 0; k < options.parts; ++k) files[k]->write(texts[k]);
  for (auto& file : files) file->seal();
  for (auto& file : files) file->finish();
  return counts;
}

std::uint64_t merge_databases(const std::vector<fs::path>& parts, const fs::path& out, bool replace,
                              const std::function<void(std::uint64_t)>& progress) {
  std::vector<std::shared_ptr<const record_reader>> from;
  database_limits limits;
  for (const auto& part : parts) {
    from.push_back(open_database(part));
    if (from.back()->kind() != from.front()->kind())
      throw std::runtime_error(part.string() + " is a " + name_of(from.back()->kind()) + ", " +
                               parts.front().string() + " is a " + name_of(from.front()->kind()) +
                               ". Merge parts of one kind (poseidon-data convert db).");
    const auto more = limits_of(*from.back());
    limits.records += more.records;
    limits.bytes += more.bytes;
  }
  const auto writer = make_database(from.front()->kind(), out, limits, replace);

  using next = std::pair<std::string, std::size_t>;  // key, and whose it is
  std::priority_queue<next, std::vector<next>, std::greater<>> smallest;
  std::vector<std::uint64_t> at(from.size());
  const auto offer = [&](std::size_t p) {
    if (at[p] < from[p]->size()) smallest.emplace(from[p]->key(at[p]), p);
  };
  for (std::size_t p = 0; p < from.size(); ++p) offer(p);
  std::vector<std::uint8_t> scratch;
  std::uint64_t done = 0;
  next last;
  while (!smallest.empty()) {
    const auto [key, p] = smallest.top();
    smallest.pop();
    if (done > 0 && key == last.first)
      throw std::runtime_error("record \"" + key + "\" is in " + parts[last.second].string() +
                               " and in " + parts[p].string() +
                               ": these are no parts of one whole.");
    put(*from[p], at[p]++, scratch, *writer);
    last = {key, p};
    if (++done % 1000 == 0 && progress) progress(done);
    offer(p);
  }
  writer->finish();
  return done;
}

}  // namespace poseidon
