// Sealed links, and links that somebody floods.
#include "tests/actors/links/puppet_link.hpp"

namespace poseidon {
namespace {

using test::link_and_puppet;
using test::piece_with_header;

TEST_CASE("sealed_link: on a sealed link nothing counts that has no tag, or another place") {
  const auto keys = [](bool dialer) {
    const std::array<std::byte, 80> one{std::byte{1}}, two{std::byte{2}};
    return keys_of_link("secret", one, two, dialer);
  };
  test::end_options o;
  o.keys = keys(false);
  link_and_puppet t(o);
  frame_seal seal(keys(true).out);
  const auto sealed = [&](const frame_header& h, std::size_t payload) {
    auto piece = piece_with_header(h, std::vector<std::byte>(payload), payload);
    const std::array<std::span<const std::byte>, 1> whole{piece};
    const auto tag = seal.next(whole);
    piece.insert(piece.end(), tag.begin(), tag.end());
    return piece;
  };
  const auto first = sealed(frames::push_gradient{chunk_id{0}, clock_id{0}}, 4000);
  t.puppet->write(first);
  REQUIRE(t.end.gradients->wait_for(1).size() == 1);
  SUBCASE("a frame that somebody on the way has put in") {
    t.puppet->write(piece_with_header(frames::push_gradient{chunk_id{1}, clock_id{0}},
                                      std::vector<std::byte>(4000), 4000));
    t.puppet->write(std::vector<std::byte>(seal_bytes));
  }
  SUBCASE("a frame that was heard before") {
    t.puppet->write(first);
  }
  SUBCASE("a frame whose values were changed, and its checksum with them") {
    auto changed = sealed(frames::push_gradient{chunk_id{1}, clock_id{0}}, 4000);
    const auto tag = std::vector<std::byte>(changed.end() - seal_bytes, changed.end());
    changed = piece_with_header(frames::push_gradient{chunk_id{1}, clock_id{0}},
                                std::vector<std::byte>(4000, std::byte{1}), 4000);
    changed.insert(changed.end(), tag.begin(), tag.end());
    t.puppet->write(changed);
  }
  SUBCASE("a frame too few") {
    (void)sealed(frames::push_gradient{chunk_id{1}, clock_id{0}}, 4000);
    t.puppet->write(sealed(frames::push_gradient{chunk_id{2}, clock_id{0}}, 4000));
  }
  CHECK(t.lost().why.find("frame: seal is wrong") != std::string::npos);
  CHECK(t.end.gradients->size() == 1);
}

TEST_CASE("link_receiver: a flood of control frames ends the link, not the process") {
  link_and_puppet t;
  // Few enough for the buffers of the connection: nobody reads them to the end.
  std::vector<std::byte> many;
  for (int i = 0; i < 1500; ++i) {
    const auto one = piece_with_header(frames::stop_requested{"flood"}, {}, 0);
    many.insert(many.end(), one.begin(), one.end());
  }
  t.puppet->write(many);
  CHECK(t.lost().why.find("number of control frames") != std::string::npos);
  CHECK(t.end.control->size() < 1500);
}

}  // namespace
}  // namespace poseidon
