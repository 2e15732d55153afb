#include "actors/telemetry/graph_text.hpp"

#include "actors/core/actor_names.hpp"
#include "models/json.hpp"

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

std::string font(const char* colour, int points, const std::string& inner) {
  return std::string("<font color=\"") + colour + "\" point-size=\"" + std::to_string(points) +
         "\">" + inner + "</font>";
}

std::string layer_of(const actor_graph::node& a) {
  return parse_actor_name(a.name).layer;
}

/// The receiving half of a link is drawn in the link's box.
bool is_half(const actor_graph::node& a) {
  return a.kind == "network_link" && parse_actor_name(a.name).receives;
}

bool is_test(const actor_graph::node& a) {
  return a.group.rfind("test", 0) == 0;
}

/// One box per actor would be a tangle thousands of pixels wide: some hundred actors, whose gradients all go to a few
/// shards. So there is one card per layer, helpers are on the card, replicas are a number, and the traffic of parameters
/// is one double line per card and destination. Strings of DOT are written as those of JSON.
class dot_writer {
 public:
  explicit dot_writer(const actor_graph& g) : g_(g) {
    for (const auto& a : g.actors) {
      if (a.card.empty() || is_test(a)) continue;
      cards_.insert(a.card);
      pushes_ += a.kind == "gradient_push" ? 1 : 0;
      broadcasts_ += a.kind == "factor_broadcast" ? 1 : 0;
      lowrank_ += a.kind == "lowrank_exchange" ? 1 : 0;
    }
    for (const auto& a : g.actors) links_ += a.kind == "network_link" && !is_half(a) ? 1 : 0;
  }

  std::string write() {
    out_ += "digraph " + json_text(name()) + " {\n";
    out_ +=
        "  graph [rankdir=TB, nodesep=0.3, ranksep=0.7, fontname=\"Helvetica\", fontsize=13, "
        "newrank=true, splines=spline, pad=0.3, bgcolor=\"white\", labelloc=t, label=<" +
        title() + ">];\n";
    out_ += std::string("  node [shape=plain, fontname=\"Helvetica\", fontsize=11, fontcolor=\"") +
            ink + "\"];\n  edge [arrowsize=0.6];\n";
    for (const auto& group : g_.groups) write_module(group);
    if (in_a_row()) {
      out_ += "  {rank=same;";
      for (const auto& card : cards_) out_ += " " + json_text("card " + card) + ";";
      out_ += "}\n";
    }
    card_edges();
    if (!in_a_row()) bus();
    shards_and_links();
    parameter_edges();
    strip();
    return out_ + "}\n";
  }

 private:
  /// Few layers stand side by side above the shards; a big net flows downwards, module by module,
  /// and its parameters' traffic is drawn as one line instead of hundreds.
  [[nodiscard]] bool in_a_row() const { return cards_.size() <= 12; }
  [[nodiscard]] bool links_in_one() const { return links_ > 4; }
  [[nodiscard]] std::string name() const { return g_.model.empty() ? "net" : g_.model; }

  [[nodiscard]] std::string title() const {
    return "<b>" + html(name()) + "</b>  " +
           font(faint, 11,
                "the actors of worker " + std::to_string(g_.worker) + " of " +
                    std::to_string(g_.nodes) + (g_.nodes == 1 ? " node" : " nodes") +
                    (g_.replicas > 1 ? ", " + std::to_string(g_.replicas) + " replicas each" : "") +
                    ": " + std::to_string(g_.actors.size()) + " actors, " +
                    std::to_string(g_.edges.size()) + " edges");
  }

  static std::string table(const std::string& rows, const char* fill,
                           const char* border = "#9aa5b1") {
    return std::string(
               "<<table border=\"1\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"4\" "
               "color=\"") +
           border + "\" style=\"rounded\" bgcolor=\"" + fill + "\">" + rows + "</table>>";
  }

  /// The cards of one module, in a box if the module has a name.
  void write_module(const actor_graph::group& group) {
    std::string inner;
    std::set<std::string> drawn;
    for (const auto& a : g_.actors)
      if (a.group == group.id && cards_.count(a.card) != 0 && !is_test(a) &&
          drawn.insert(a.card).second)
        inner += "  " + json_text("card " + a.card) + " [label=" + card(a.card) +
                 ", tooltip=" + json_text(a.card) + "];\n";
    if (inner.empty()) return;
    if (group.id == "net") {
      out_ += inner;
      return;
    }
    out_ += "  subgraph " + json_text("cluster_" + group.id) +
            " {\n  label=" + json_text(group.label) +
            "; labeljust=l; style=\"rounded,filled\"; color=\"#d9dee4\"; fillcolor=\"#f5f7fa\"; "
            "fontcolor=\"" +
            faint + "\"; fontsize=10; margin=10;\n" + inner + "  }\n";
  }

  /// One layer with its in-place followers, its data source and its gradient_push.
  std::string card(const std::string& layer) {
    std::string rows;
    for (const auto& a : g_.actors) {
      if (a.card != layer || a.replica > 0) continue;
      if (a.kind == "layer" && a.card == layer_of(a)) {
        rows += "<tr><td align=\"left\"><b>" + html(layer_of(a)) + "</b>  " +
                font(faint, 10, html(a.type)) + "</td></tr>";
        if (!a.tops.empty())
          rows += "<tr><td align=\"left\">" + font(faint, 9, html(a.tops)) + "</td></tr>";
      } else if (a.kind == "layer") {
        rows += "<tr><td align=\"left\">" + font(faint, 10, "+") + " <b>" + html(layer_of(a)) +
                "</b>  " + font(faint, 10, html(a.type)) + "</td></tr>";
      } else {
        const bool push = a.kind == "gradient_push" || a.kind == "factor_broadcast" ||
                          a.kind == "lowrank_exchange";
        rows += std::string("<tr><td align=\"left\" bgcolor=\"") + (push ? "#fdecc8" : "#dcebf8") +
                "\">" +
                font(ink, 9,
                     html(a.kind) +
                         (push ? "  " + font(faint, 9, grouped(a.params) + " values") : "")) +
                "</td></tr>";
      }
    }
    if (g_.replicas > 1)
      rows += "<tr><td align=\"right\">" +
              font(faint, 9, "in " + std::to_string(g_.replicas) + " replicas") + "</td></tr>";
    return table(rows, "white");
  }

  /// The net's dataflow: values one way, diffs the other, one line each between two cards.
  void card_edges() {
    std::set<std::tuple<std::string, std::string, kind>> drawn;
    for (const auto& e : g_.edges) {
      if (e.kind != kind::data && e.kind != kind::grad) continue;
      const auto& from = g_.actors[e.src];
      const auto& to = g_.actors[e.dst];
      if (is_test(from) || from.card.empty() || from.card == to.card) continue;
      if (!drawn.emplace(from.card, to.card, e.kind).second) continue;
      out_ += "  " + json_text("card " + from.card) + " -> " + json_text("card " + to.card) +
              " [color=\"" + (e.kind == kind::data ? data_colour : grad_colour) + "\", " +
              (e.kind == kind::data ? "weight=50" : "constraint=false") + "];\n";
    }
  }

  void bus() {
    out_ += "  " + json_text("bus") + " [label=" +
            table("<tr><td>" + std::to_string(pushes_) + " &times; gradient_push</td></tr>" +
                      (broadcasts_ == 0 ? ""
                                        : "<tr><td>" + std::to_string(broadcasts_) +
                                              " &times; factor_broadcast</td></tr>") +
                      (lowrank_ == 0 ? ""
                                     : "<tr><td>" + std::to_string(lowrank_) +
                                           " &times; lowrank_exchange</td></tr>"),
                  "#fdecc8") +
            "];\n";
    out_ += "  " + json_text("card " + last_card()) + " -> \"bus\" [style=invis, weight=50];\n";
  }

  [[nodiscard]] std::string last_card() const {
    std::string last;
    for (const auto& a : g_.actors)
      if (cards_.count(a.card) != 0 && a.kind == "layer" && !is_test(a)) last = a.card;
    return last;
  }

  /// Many links are drawn as one box.
  [[nodiscard]] std::string box_of(const actor_graph::node& a) const {
    return a.kind == "network_link" && links_in_one() ? "network_links" : a.name;
  }

  void shards_and_links() {
    std::string row;
    bool links_drawn = false;
    for (const auto& a : g_.actors) {
      const bool link = a.kind == "network_link";
      if ((!link && a.kind != "server_shard") || is_half(a)) continue;
      if (link && links_in_one() && links_drawn) continue;
      links_drawn = links_drawn || link;
      std::string text = html(a.name);
      std::string note = link ? "to worker " +
                                    std::to_string(parse_actor_name(a.name).worker.value_or(0)) +
                                    " and its shard"
                              : "owns " + size_text(a.chunk_bytes);
      if (link && links_in_one()) {
        text = std::to_string(links_) + " &times; network_link";
        note = "one to each other worker and its shard";
      }
      out_ += "  " + json_text(box_of(a)) + " [label=" +
              table("<tr><td width=\"230\">" + text + "</td></tr><tr><td>" + font(faint, 9, note) +
                        "</td></tr>",
                    link ? "#ece4f6" : "#e3f4e9") +
              "];\n";
      row += " " + json_text(box_of(a)) + ";";
    }
    out_ += "  {rank=same;" + row + "}\n";
  }

  /// Gradients out to a shard or link and fresh parameters back: one double line per card and
  /// destination.
  void parameter_edges() {
    std::map<std::pair<std::string, std::string>, std::uint64_t> pushed;  // (from, to) -> bytes
    std::map<std::pair<std::string, std::string>, std::uint64_t> served;
    for (const auto& e : g_.edges) {
      const auto& from = g_.actors[e.src];
      const auto& to = g_.actors[e.dst];
      if (e.kind == kind::push)
        pushed[{in_a_row() ? "card " + from.card : "bus", box_of(to)}] += e.bytes;
      if (e.kind == kind::net && from.kind == "server_shard")
        served[{from.name, box_of(to)}] += e.bytes;
    }
    for (const auto& [ends, bytes] : pushed)
      line(ends.first, ends.second, std::string(push_colour) + ":" + pull_colour,
           size_text(bytes) + " out and back per iteration",
           bytes > 1000000 ? ", penwidth=1.7" : "");
    for (const auto& [ends, bytes] : served)
      line(ends.first, ends.second, std::string(net_colour) + ":" + net_colour,
           size_text(bytes) + " of the other workers' gradients in, parameters out, per iteration",
           ", constraint=false");
  }

  void line(const std::string& from, const std::string& to, const std::string& colours,
            const std::string& tooltip, const char* more) {
    out_ += "  " + json_text(from) + " -> " + json_text(to) + " [dir=both, color=\"" + colours +
            "\", tooltip=" + json_text(tooltip) + more + "];\n";
  }

  /// The actors that serve all layers, in one row, and the meaning of the colours.
  void strip() {
    std::string cells;
    auto cell = [&](const std::string& text, const std::string& note, const char* fill) {
      cells += std::string("<td bgcolor=\"") + fill + "\" style=\"rounded\">" + html(text) +
               (note.empty() ? "" : "<br/>" + font(faint, 9, note)) + "</td>";
    };
    std::map<std::string, std::size_t> test_layers;
    std::size_t shown_streams = 0;
    for (const auto& a : g_.actors) {
      if (is_test(a) && a.kind == "layer") ++test_layers[a.group];
      if (!a.card.empty() || a.kind == "server_shard" || a.kind == "network_link") continue;
      const bool stream = a.kind == "stream";
      if (stream && ++shown_streams > 4) continue;
      cell(a.name, stream ? "runs every kernel of replica " + std::to_string(a.replica) : "",
           stream ? "#eaf2fb" : "#ffffff");
    }
    for (const auto& [group, layers] : test_layers)
      cell(group + " net", std::to_string(layers) + " layer actors, forward only", "#ffffff");
    auto sample = [](const char* colour, const char* text) {
      return font(colour, 12, "<b>&#8212;</b>") + " " + font(faint, 9, text) + "    ";
    };
    const auto legend =
        sample(data_colour, "bottom_ready: values") + sample(grad_colour, "top_diff_ready: diffs") +
        sample(push_colour, "push: gradients out") + sample(pull_colour, "pull: fresh parameters") +
        sample(net_colour, "the other workers' share");
    out_ +=
        "  \"strip\" [label=<<table border=\"0\" cellspacing=\"8\"><tr><td><table border=\"1\" "
        "cellborder=\"1\" "
        "cellspacing=\"7\" cellpadding=\"4\" color=\"#c3cbd4\" style=\"rounded\" "
        "bgcolor=\"#f5f7fa\"><tr>" +
        cells + "</tr></table></td></tr><tr><td>" + legend + "</td></tr></table>>];\n";
    for (const auto& a : g_.actors)
      if (a.kind == "server_shard" || (a.kind == "network_link" && !is_half(a) && !links_in_one()))
        out_ += "  " + json_text(a.name) + " -> \"strip\" [style=invis];\n";
  }

  const actor_graph& g_;
  std::set<std::string> cards_;
  std::size_t pushes_ = 0, broadcasts_ = 0, lowrank_ = 0, links_ = 0;
  std::string out_;
};

}  // namespace

std::string to_dot(const actor_graph& g) {
  return dot_writer(g).write();
}

std::string to_json(const actor_graph& g) {
  json_array groups(json_layout::lines), nodes(json_layout::lines), edges(json_layout::lines);
  for (const auto& group : g.groups)
    groups.put(
        json_object().put("id", group.id).put("label", group.label).put("order", group.order));
  for (const auto& a : g.actors) {
    json_object node;
    node.put("id", a.id).put("name", a.name).put("kind", a.kind).put("type", a.type);
    nodes.put(node.put("group", a.group).put("card", a.card).put("params", a.params));
  }
  for (const auto& e : g.edges) {
    json_object edge;
    edge.put("id", e.id).put("src", e.src).put("dst", e.dst).put("kind", to_string(e.kind));
    edges.put(edge.put("message", e.message).put("bytes", e.bytes));
  }
  json_object run, out;
  run.put("model", g.model).put("node", g.worker);
  run.put("nodes", g.nodes).put("replicas", g.replicas);
  out.put("schema", 1).put("run", run);
  return out.put("groups", groups).put("nodes", nodes).put("edges", edges).text() + "\n";
}

}  // namespace poseidon
