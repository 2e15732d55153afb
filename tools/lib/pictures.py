# tools/lib/pictures.py - draws the two pictures of docs/how-it-works.md and the README's chart; tools/docs calls it.
"""usage: python3 tools/lib/pictures.py [--check]

Writes docs/one-iteration.svg (what computes and what travels when), docs/two-nodes.svg (who owns which part of a
parameter) and docs/against-ddp.svg (the table of docs/measurements/clusters.md between its "ddp" markers). With --check it writes nothing and exits with 1 if a file is not what this script draws.
"""
import html
import pathlib
import sys

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
STYLE = """<style>
  svg { --ink: #1f2328; --paper: #ffffff; --compute: #cfe3ff; --travel: #ffe0b8; --own: #cdeccf; --line: #57606a }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e6edf3; --paper: #0d1117; --compute: #1b3c66; --travel: #66420e; --own: #1d4d26; --line: #9aa4af }
  }
  text { font: 14px sans-serif; fill: var(--ink) } .m { text-anchor: middle } .b { font-weight: bold }
  rect { stroke: var(--line) } .paper { fill: var(--paper); stroke: none } .node { fill: none }
  .compute { fill: var(--compute) } .travel { fill: var(--travel) } .own { fill: var(--own) }
  path { fill: none; stroke: var(--line); stroke-width: 1.5 } .tip { fill: var(--line); stroke: none } .dash { stroke-dasharray: 5 4 }
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
  <path class="tip" d="M0,0 L8,4 L0,8 z"/></marker></defs>"""


def text(x, y, words, kind=""):
    return f'<text x="{x}" y="{y}" class="{kind}">{html.escape(words)}</text>'


def box(x, y, width, height, kind, words=""):
    label = text(x + width / 2, y + height / 2 + 5, words, "m") if words else ""
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" class="{kind}"/>{label}'


def arrow(path, kind=""):
    return f'<path d="{path}" class="{kind}" marker-end="url(#tip)"/>'


def picture(width, height, title, parts):
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
                      f"<title>{html.escape(title)}</title>", STYLE, box(0, 0, width, height, "paper"), *parts, "</svg>", ""])


def one_iteration():
    parts = [text(12, 66, "computes", "b"), text(12, 136, "sends", "b"), text(12, 196, "receives", "b")]
    for x, width, words in ((100, 70, "ip forw."), (174, 90, "ip back."), (268, 130, "conv2 back."), (402, 130, "conv1 back."),
                            (616, 100, "conv1 forw."), (720, 100, "conv2 forw."), (824, 70, "ip forw.")):
        parts.append(box(x, 44, width, 36, "compute", words))
    for x, width, words in ((266, 150, "gradient of ip"), (420, 80, "conv2"), (534, 50, "conv1")):
        parts.append(box(x, 114, width, 36, "travel", words))
    for x, width, words in ((430, 150, "parameters of ip"), (600, 14, ""), (618, 76, "conv2"), (698, 76, "rest of ip")):
        parts.append(box(x, 174, width, 36, "travel", words))
    parts += [arrow("M264,80 L268,112"), arrow("M398,80 L421,112"), arrow("M532,80 L538,112"), arrow("M607,174 L618,82"),
              arrow("M694,174 L722,82"), arrow("M774,174 L826,82"), text(634, 228, "conv1 overtakes ip"),
              '<path d="M594,30 L594,236" class="dash"/>', text(330, 26, "iteration 7", "m b"),
              text(755, 26, "iteration 8", "m b"), text(100, 258, "Time runs to the right. Each layer of iteration 8 waits only for its own parameters.")]
    return picture(910, 274, "One iteration: gradients travel while the layers below still compute", parts)


def two_nodes():
    parts = []
    for x, number in ((20, 0), (500, 1)):
        parts += [box(x, 20, 300, 260, "node"), text(x + 150, 46, f"node {number}", "m b"),
                  box(x + 30, 64, 240, 40, "compute", "conv2: gradient of its batch"),
                  box(x + 30, 150, 116, 40, "own" if number == 0 else "travel", "piece A"),
                  box(x + 154, 150, 116, 40, "own" if number == 1 else "travel", "piece B"),
                  text(x + 150, 142, "parameters of conv2", "m"),
                  box(x + 30, 226, 240, 40, "own", f"owns {'AB'[number]}: sum, solver's rule")]
    parts += [arrow("M290,84 C400,84 400,236 526,240"), arrow("M530,84 C420,84 420,236 294,240"),
              text(410, 70, "gradients of the", "m"), text(410, 88, "other node's piece", "m"),
              arrow("M290,256 C400,300 440,300 560,192", "dash"), arrow("M530,256 C430,320 370,310 250,192", "dash"),
              text(410, 318, "fresh values of the piece that a node owns (dashed)", "m")]
    return picture(820, 334, "Two nodes: each owns one piece of every large parameter", parts)


def against_ddp():
    """Seconds per iteration of each net: a bar for each program, and a line at the bound."""
    table = (DOCS / "measurements/clusters.md").read_text().split("<!-- begin ddp -->")[1].split("<!-- end ddp -->")[0]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines() if line.startswith("|")][2:]
    left, scale, height = 150, 78, 58
    parts = [text(12, 28, "Seconds per iteration on 4 hosts with links of 1 Gbit/s: less is better", "b")]
    for n, (net, bound, ours, ddp, *_) in enumerate(rows):
        y = 46 + n * height
        parts.append(text(12, y + 28, net))
        for at, kind, name, seconds in ((y, "compute", "Poseidon", ours), (y + 24, "travel", "DDP, gloo", ddp)):
            width = round(float(seconds) * scale, 1)
            parts += [f'<rect x="{left}" y="{at}" width="{width}" height="20" class="{kind}"/>', text(left + width + 8, at + 15, f"{seconds}  {name}")]
        line = round(left + float(bound) * scale, 1)
        parts.append(f'<path d="M{line},{y - 4} L{line},{y + 48}" class="dash"/>')
    foot = 46 + len(rows) * height + 16
    parts.append(text(12, foot, "Dashed: the bound, the longer of computing and sending. Layers sleep for the times of a GPU; the bytes really travel."))
    return picture(910, foot + 20, "Poseidon and PyTorch DDP with gloo: seconds per iteration", parts)


def main():
    stale = False
    for name, drawn in (("one-iteration.svg", one_iteration()), ("two-nodes.svg", two_nodes()), ("against-ddp.svg", against_ddp())):
        path = DOCS / name
        if "--check" not in sys.argv[1:]:
            path.write_text(drawn)
        elif not path.is_file() or path.read_text() != drawn:
            print(f"tools/docs: docs/{name} is not what tools/lib/pictures.py draws. Run tools/docs.", file=sys.stderr)
            stale = True
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
