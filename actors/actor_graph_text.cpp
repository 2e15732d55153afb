// actors/actor_graph_text.cpp - an actor graph as DOT and as JSON.
//
// Why not one box per actor: a generic layout of some hundred actors whose gradients all go to a
// few shards is a tangle thousands of pixels wide. What reads well knows the domain: one card per
// layer, helpers on the card, replicas as a number, and the traffic of parameters as one double
// line per card and destination.
#include "actors/actor_graph.hpp"

#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>

namespace poseidon {

namespace {

using kind = actor_graph::edge_kind;

constexpr const char* ink = "#1f2933";
constexpr const char* faint = "#7b8794";
constexpr const char* data_colour = "#2f6fb0";
constexpr const char* grad_colour = "#c4453c";
constexpr const char* push_colour = "#e08600";
constexpr const char* pull_colour = "#2e8b57";
constexpr const char* net_colour = "#7048a8";

/// 431080 -> "431,080".
std::string grouped(std::int64_t n) {
  auto digits = std::to_string(n);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

/// 1724320 -> "1.72 MB"; decimal units, as everywhere.
std::string size_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 4> units{"B", "kB", "MB", "GB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < units.size(); ++unit) value /= 1000;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.3g %s", value, units[unit]);
  return text.data();
}

std::string html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// A double-quoted string of DOT or JSON.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> code{};
      std::snprintf(code.data(), code.size(), "\\u%04x", c);
      out += code.data();
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string font(const char* colour, int points, const std::string& inner) {
  return std::string("<font color=\"") + colour + "\" point-size=\"" + std::to_string(points) +
         "\">" + inner + "</font>";
}

/// "layer conv1 [0]" -> "conv1"
std::string layer_of(const actor_graph::node& a) {
  const auto begin = a.name.find("layer ") + 6;
  const auto end = a.replica < 0 ? a.name.size() : a.name.rfind(" [");
  return a.name.substr(begin, end - begin);
}

bool is_test(const actor_graph::node& a) {
  return a.group.rfind("test", 0) == 0;
}

class dot_writer {
 public:
  explicit dot_writer(const actor_graph& g) : g_(g) {}

  std::string write() {
    out_ += "digraph " + quoted(g_.model.empty() ? "net" : g_.model) + " {\n";
    out_ +=
        "  graph [rankdir=TB, nodesep=0.35, ranksep=0.42, fontname=\"Helvetica\", fontsize=12, "
        "compound=true, newrank=true, splines=spline, pad=0.3, bgcolor=\"white\", labelloc=t, "
        "label=<" +
        title() + ">];\n";
    out_ += std::string("  node [shape=plain, fontname=\"Helvetica\", fontsize=11, fontcolor=\"") +
            ink + "\"];\n";
    out_ += "  edge [fontname=\"Helvetica\", fontsize=9, arrowsize=0.6];\n";
    for (const auto& group : g_.groups) write_group(group);
    card_edges();
    parameter_edges();
    legend();
    return out_ + "}\n";
  }

 private:
  std::string title() const {
    std::string text = "<b>" + html(g_.model.empty() ? "net" : g_.model) + "</b>  ";
    text +=
        font(faint, 11,
             "the actors of worker " + std::to_string(g_.worker) + " of " +
                 std::to_string(g_.nodes) + (g_.nodes == 1 ? " node" : " nodes") +
                 (g_.replicas > 1 ? ", " + std::to_string(g_.replicas) + " replicas each" : "") +
                 ": " + std::to_string(g_.actors.size()) + " actors, " +
                 std::to_string(g_.edges.size()) + " edges");
    return text;
  }

  void write_group(const actor_graph::group& group) {
    const bool boxed = group.id != "net";
    const std::string indent = boxed ? "    " : "  ";
    std::string inner;
    if (group.id.rfind("test", 0) == 0) {
      inner = test_net(group);
    } else {
      std::set<std::string> drawn;
      for (const auto& a : g_.actors) {
        if (a.group != group.id) continue;
        if (a.card.empty())
          inner += indent + runtime_box(a);
        else if (drawn.insert(a.card).second)
          inner += indent + card(a.card);
      }
    }
    if (inner.empty()) return;
    if (!boxed) {
      out_ += inner;
      return;
    }
    out_ += "  subgraph " + quoted("cluster_" + group.id) + " {\n    label=" + quoted(group.label) +
            "; labeljust=l; style=\"rounded,filled\"; color=\"#d9dee4\"; fillcolor=\"#f5f7fa\"; "
            "fontcolor=\"" +
            faint + "\"; fontsize=10; margin=10;\n" + inner + "  }\n";
  }

  /// One layer with its in-place followers, its data source and its gradient_push.
  std::string card(const std::string& name) {
    std::string rows;
    for (const auto& a : g_.actors) {
      if (a.card != name || a.replica > 0) continue;
      if (a.kind == "layer" && a.card == layer_of(a)) {
        rows += "<tr><td align=\"left\"><b>" + html(layer_of(a)) + "</b>  " +
                font(faint, 10, html(a.type)) + "</td></tr>";
        if (!a.tops.empty())
          rows += "<tr><td align=\"left\">" + font(faint, 9, html(a.tops)) + "</td></tr>";
      } else if (a.kind == "layer") {
        rows += "<tr><td align=\"left\">+ " + html(layer_of(a)) + "  " +
                font(faint, 10, html(a.type)) + "</td></tr>";
      } else {
        const bool push = a.kind == "gradient_push";
        rows += std::string("<tr><td align=\"left\" bgcolor=\"") + (push ? "#fdecc8" : "#dcebf8") +
                "\">" +
                font(ink, 9, html(a.kind) + (push ? "  " + grouped(a.params) + " values" : "")) +
                "</td></tr>";
      }
    }
    const std::string stack = g_.replicas > 1
                                  ? "<tr><td align=\"right\">" +
                                        font(faint, 9, "&times; " + std::to_string(g_.replicas)) +
                                        "</td></tr>"
                                  : "";
    return quoted("card " + name) +
           " [label=<<table border=\"1\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"4\" "
           "color=\"#9aa5b1\" style=\"rounded\" bgcolor=\"white\">" +
           rows + stack + "</table>>, tooltip=" + quoted(name) + "];\n";
  }

  std::string runtime_box(const actor_graph::node& a) {
    std::string note;
    if (a.kind == "server_shard") note = "owns " + size_text(a.chunk_bytes);
    if (a.kind == "stream") note = "runs every kernel of replica " + std::to_string(a.replica);
    if (a.kind == "network_link") note = "to worker " + a.name.substr(a.name.rfind(' ') + 1);
    std::string rows = "<tr><td>" + html(a.name) + "</td></tr>";
    if (!note.empty()) rows += "<tr><td>" + font(faint, 9, html(note)) + "</td></tr>";
    const char* fill = a.kind == "server_shard"   ? "#e3f4e9"
                       : a.kind == "network_link" ? "#ece4f6"
                                                  : "white";
    return quoted(a.name) +
           " [label=<<table border=\"1\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"3\" "
           "color=\"#9aa5b1\" style=\"rounded\" bgcolor=\"" +
           fill + "\">" + rows + "</table>>];\n";
  }

  std::string test_net(const actor_graph::group& group) {
    std::size_t layers = 0;
    for (const auto& a : g_.actors) layers += a.group == group.id && a.kind == "layer" ? 1 : 0;
    return "    " + quoted("group " + group.id) +
           " [label=<<table border=\"1\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"4\" "
           "color=\"#9aa5b1\" style=\"rounded\" bgcolor=\"white\"><tr><td>" +
           std::to_string(layers) + " layer actors</td></tr><tr><td>" +
           font(faint, 9, "forward only, between two clocks") + "</td></tr></table>>];\n";
  }

  /// What the net says: values down, diffs up, one line each between two cards.
  void card_edges() {
    std::set<std::tuple<std::string, std::string, kind>> drawn;
    for (const auto& e : g_.edges) {
      if (e.kind != kind::data && e.kind != kind::grad) continue;
      const auto& from = g_.actors[e.src];
      const auto& to = g_.actors[e.dst];
      if (is_test(from) || from.card.empty() || from.card == to.card) continue;
      if (!drawn.emplace(from.card, to.card, e.kind).second) continue;
      const auto line = quoted("card " + from.card) + " -> " + quoted("card " + to.card);
      if (e.kind == kind::data)
        out_ += "  " + line + " [color=\"" + data_colour + "\", weight=20];\n";
      else
        out_ += "  " + line + " [color=\"" + grad_colour + "\", constraint=false];\n";
    }
  }

  /// What leaves a card for a shard or a link and comes back: one double line.
  void parameter_edges() {
    for (const auto& e : g_.edges) {
      const auto& from = g_.actors[e.src];
      const auto& to = g_.actors[e.dst];
      if (e.kind == kind::push) {
        out_ += "  " + quoted("card " + from.card) + " -> " + quoted(to.name) +
                " [dir=both, color=\"" + push_colour + ":" + pull_colour +
                "\", constraint=false, tooltip=" +
                quoted(size_text(e.bytes) + " out and back per clock") + width(e.bytes) + "];\n";
      } else if (e.kind == kind::net && from.kind == "network_link") {
        out_ += "  " + quoted(from.name) + " -> " + quoted(to.name) + " [dir=both, color=\"" +
                net_colour + ":" + net_colour + "\", constraint=false];\n";
      }
    }
  }

  static std::string width(std::uint64_t bytes) { return bytes > 1000000 ? ", penwidth=1.6" : ""; }

  void legend() {
    auto sample = [](const char* colour, const char* text) {
      return std::string("<td>") + font(colour, 12, "<b>&#8212;</b>") + " " + font(faint, 9, text) +
             "</td>";
    };
    out_ += "  legend [label=<<table border=\"0\" cellborder=\"0\" cellspacing=\"4\"><tr>" +
            sample(data_colour, "bottom_ready: values") +
            sample(grad_colour, "top_diff_ready: diffs") + "</tr><tr>" +
            sample(push_colour, "push: gradients out") +
            sample(pull_colour, "pull: fresh parameters back") + "</tr></table>>];\n";
  }

  const actor_graph& g_;
  std::string out_;
};

}  // namespace

std::string to_dot(const actor_graph& g) {
  return dot_writer(g).write();
}

std::string to_json(const actor_graph& g) {
  std::string out = "{\"schema\":1,\"run\":{\"model\":" + quoted(g.model) +
                    ",\"node\":" + std::to_string(g.worker) +
                    ",\"nodes\":" + std::to_string(g.nodes) +
                    ",\"replicas\":" + std::to_string(g.replicas) + "},\"groups\":[";
  const char* comma = "";
  for (const auto& group : g.groups) {
    out += std::string(comma) + "\n{\"id\":" + quoted(group.id) +
           ",\"label\":" + quoted(group.label) + ",\"order\":" + std::to_string(group.order) + "}";
    comma = ",";
  }
  out += "],\"nodes\":[";
  comma = "";
  for (const auto& a : g.actors) {
    out += std::string(comma) + "\n{\"id\":" + std::to_string(a.id) +
           ",\"name\":" + quoted(a.name) + ",\"kind\":" + quoted(a.kind) +
           ",\"type\":" + quoted(a.type) + ",\"group\":" + quoted(a.group) +
           ",\"card\":" + quoted(a.card) + ",\"params\":" + std::to_string(a.params) + "}";
    comma = ",";
  }
  out += "],\"edges\":[";
  comma = "";
  for (const auto& e : g.edges) {
    out += std::string(comma) + "\n{\"id\":" + std::to_string(e.id) +
           ",\"src\":" + std::to_string(e.src) + ",\"dst\":" + std::to_string(e.dst) +
           ",\"kind\":" + quoted(to_string(e.kind)) + ",\"message\":" + quoted(e.message) +
           ",\"bytes\":" + std::to_string(e.bytes) + "}";
    comma = ",";
  }
  return out + "]}\n";
}

}  // namespace poseidon
