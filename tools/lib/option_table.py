"""The table of poseidon-node's options in docs/user-guide.md, written from the program itself (`poseidon-node option-table`).

usage: python3 tools/lib/option_table.py --bin DIR [--check]      tools/docs calls it

Writes the lines between the two comments of MARKS. --check: writes nothing, and exits with 1 and the difference where they are others.
"""
import argparse
import difflib
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GUIDE = ROOT / "docs/user-guide.md"
MARKS = ("<!-- begin options -->", "<!-- end options -->")


def anchors_of(guide):
    """Anchor -> title of each heading, as GitHub makes them."""
    titles = re.findall(r"(?m)^#+ (.+)$", guide)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-"): title for title in titles}


def in_a_cell(text):
    """Plain text as Markdown in a table: options, and what the help has between backticks, as code."""
    pieces = re.split(r"(`[^`]*`|(?<![\w-])--[a-z][\w-]*)", text)
    shown = [f"`{piece.strip('`')}`" if i % 2 else re.sub(r"([*<>])", r"\\\1", piece) for i, piece in enumerate(pieces)]
    return "".join(shown).replace("|", r"\|")


def row_of(option, anchors):
    words = f" {option['value']}" if option["value"] else ""
    names = ", ".join(f"`{name}{words}`" for name in option["names"].split(",")).replace("|", r"\|")
    link = ""
    if option["chapter"]:
        if option["chapter"] not in anchors:
            raise ValueError(f"{option['names']}: docs/user-guide.md has no chapter #{option['chapter']}")
        link = f"; see [{anchors[option['chapter']]}](#{option['chapter']})"
    return f"| {names} | {option['owner']} | {in_a_cell(option['help'])}{link} |"


def condition(word):
    """`--math fp32` of "--math=fp32"; what is any text in a pattern is "..."."""
    option, _, pattern = word.partition("=")
    if option.endswith("!"):
        return f"`{option[:-1]}` other than {pattern}"
    shown = "" if pattern in ("", "*") else " " + pattern.replace("*", "...")
    return f"`{option}{shown}`"


def conditions(words):
    return " and ".join(condition(word) for word in words.split())


def lines_of_rules(rules):
    yield from ("", "**What needs or excludes what**", "", "| option | and | why, and what to do |", "| --- | --- | --- |")
    for rule in rules:
        unless = f" (unless {conditions(rule['unless'])})" if rule["unless"] else ""
        kind = {"is idle without": "has no effect without"}.get(rule["kind"], rule["kind"])
        why = rule["why"][0].upper() + rule["why"][1:]
        yield f"| {conditions(rule['one'])} | {kind} {conditions(rule['other'])}{unless} | {in_a_cell(why)} |"


def table_of(options, rules, guide):
    anchors = anchors_of(guide)
    lines = []
    for heading in dict.fromkeys(o["heading"] for o in options if o["heading"]):
        lines += ["", f"**{heading}**", "", "| option | of | meaning |", "| --- | --- | --- |"]
        lines += [row_of(o, anchors) for o in options if o["heading"] == heading]
    return "\n".join([*lines[1:], *lines_of_rules(rules)])


def with_table(guide, table):
    pattern = re.compile("(?s)(" + re.escape(MARKS[0]) + "\n).*?(" + re.escape(MARKS[1]) + ")")
    if len(pattern.findall(guide)) != 1:
        raise ValueError(f"docs/user-guide.md has lost its lines \"{MARKS[0]}\" and \"{MARKS[1]}\"")
    return pattern.sub(lambda found: f"{found[1]}{table}\n{found[2]}", guide)


def main():
    parser = argparse.ArgumentParser(prog="tools/lib/option_table.py", usage=argparse.SUPPRESS, description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--check", action="store_true")
    o = parser.parse_args()
    said = subprocess.run([o.bin / "poseidon-node", "option-table"], check=True, capture_output=True, text=True).stdout
    guide = GUIDE.read_text()
    table = json.loads(said)
    fresh = with_table(guide, table_of(table["options"], table["rules"], guide))
    if fresh == guide:
        return 0
    if not o.check:
        GUIDE.write_text(fresh)
        return 0
    sys.stdout.writelines(difflib.unified_diff(guide.splitlines(True), fresh.splitlines(True), str(GUIDE.relative_to(ROOT)), "the program", n=0))
    print("tools/docs: the table of options in docs/user-guide.md is not the program's (above). Run tools/docs.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError, subprocess.SubprocessError) as failure:
        sys.exit(f"tools/docs: {failure}")
