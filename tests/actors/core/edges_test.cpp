#include "actors/core/edges.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace poseidon;

namespace {

constexpr const char* carried_message = "bottom_ready";

std::shared_ptr<edge_table> open_table(edge_book& book, const std::string& name, std::uint64_t id) {
  auto table = book.open(name, name.substr(0, name.find(' ')));
  table->bind(id);
  return table;
}

}  // namespace

TEST_CASE("edge_book: actors that bore one name are one in what is measured of a run") {
  edge_book book;
  (void)open_table(book, "solver", 9);
  for (const std::uint64_t id : {1, 2})
    open_table(book, "layer ip1 [0]", id)->count(9, carried_message, 5 * id);
  const auto rows = book.rows();
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].from == "layer ip1 [0]");
  CHECK(rows[0].count == 2);
  CHECK(rows[0].bytes == 15);
  CHECK(book.actors().size() == 2);
}

TEST_CASE("edge_book: tables of ended actors are folded by name, and what they sent stays sent") {
  edge_book book;
  auto node = open_table(book, "node", 1);
  std::uint64_t id = 2;
  std::size_t most = 0;
  for (int generation = 0; generation < 1000; ++generation) {
    auto layer = open_table(book, "layer ip1 [0]", id++);
    auto push = open_table(book, "gradient_push ip1", id++);
    layer->count(push->id(), carried_message, 10);
    push->count(1, carried_message, 1);
    if (generation % 100 == 0) node->count(layer->id(), carried_message, 2);
    layer->end();
    push->end();
    book.fold({layer, push});
    most = std::max(most, book.tables().size());
  }
  CHECK(most == 1);
  CHECK(book.actors().size() == 3);
  const auto rows = book.rows();
  REQUIRE(rows.size() == 3);
  for (const auto& r : rows) {
    CAPTURE(r.from);
    CHECK(r.count == (r.from == "node" ? 10 : 1000));
    CHECK(r.bytes == (r.from == "node" ? 20 : r.from == "layer ip1 [0]" ? 10000 : 1000));
    CHECK(r.to == (r.from == "node"      ? "layer ip1 [0]"
                   : r.to_type == "node" ? "node"
                                         : "gradient_push ip1"));
  }
  CHECK(book.tables(2001).empty());
  (void)open_table(book, "layer ip1 [0]", id);
  CHECK(book.tables(2001).size() == 1);
}

TEST_CASE(
    "edge_book: what a lasting actor has sent to others that have ended is kept by their names "
    "alone") {
  edge_book book;
  const auto node = open_table(book, "node", 1);
  const auto edges_of_node = [&] {
    std::size_t out = 0;
    (void)node->for_each_since(0, [&](const auto&) { ++out; });
    return out;
  };
  std::uint64_t id = 2;
  for (int generation = 0; generation < 1000; ++generation) {
    const auto layer = open_table(book, "layer ip1 [0]", id++);
    node->count(layer->id(), carried_message, 2);
    layer->end();
    book.fold({layer});
    book.forget({layer->id()});
    REQUIRE(edges_of_node() == 0);
  }
  node->count(id, carried_message, 2);
  CHECK(node->for_each_since(1000, [](const auto&) {}) == 1001);
  const auto rows = book.rows();
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].count == 1000);
  CHECK(rows[0].bytes == 2000);
  CHECK(rows[0].to == "layer ip1 [0]");
}

TEST_CASE("edge_book: of the links of those that came and went the last ones are kept by name") {
  edge_book book;
  const auto node = open_table(book, "node", 1);
  for (std::uint64_t seat = 1; seat <= 1000; ++seat) {
    const auto link = open_table(book, "network_link " + std::to_string(seat), 2 * seat);
    const auto in = open_table(book, "network_link " + std::to_string(seat) + " in", 2 * seat + 1);
    node->count(2 * seat, carried_message, 3);
    in->count(1, carried_message, 4);
    link->end();
    in->end();
    book.fold({link, in});
    book.forget({2 * seat, 2 * seat + 1});
  }
  CHECK(book.rows().size() == 66);
  CHECK(book.actors().size() == 67);
  std::uint64_t to = 0, from = 0;
  bool has_newest = false;
  for (const auto& r : book.rows()) {
    (r.to == "node" ? from : to) += r.bytes;
    has_newest = has_newest || r.to == "network_link 1000";
    CHECK(r.to != "network_link 1");
    if (r.to == "former network_link") CHECK(r.count == 968);
  }
  CHECK(to == 3000);
  CHECK(from == 4000);
  CHECK(has_newest);
}

TEST_CASE("edge_book: the backlog is what living actors were told and have not handled") {
  edge_book book;
  const auto layer = open_table(book, "layer ip1 [0]", 1);
  const auto push = open_table(book, "gradient_push ip1", 2);
  const auto gone = open_table(book, "stream compute [0]", 3);
  for (int i = 0; i < 3; ++i) layer->count(2, carried_message, 0);
  layer->count(3, carried_message, 0);
  push->count(1, carried_message, 0);
  push->handle_one();
  layer->handle_one();
  gone->end();
  using found = std::vector<std::pair<std::string, std::uint64_t>>;
  CHECK(book.backlog() == found{{"gradient_push ip1", 2}});
  push->handle_one();
  push->handle_one();
  CHECK(book.backlog().empty());
}
