"""Rules of tools/check about documents: what they name has to exist."""
import re


def readme_commands(tree):
    known = set(tree.files)
    for name, text in tree.texts(".md"):
        in_shell = False
        for number, line in enumerate(text.splitlines(), 1):
            if line.lstrip().startswith("```"):
                in_shell = line.strip() in ("```sh", "```console") and not in_shell
                continue
            words = line.split("#")[0].replace("$ ", " ").split()
            while words and re.match(r"\w+=", words[0]):
                words.pop(0)
            if in_shell and words:
                for problem in command_problems(tree, known, words[0], line):
                    yield name, number, problem


def command_problems(tree, known, command, line):
    """Sentences about a command that does not exist, or an option that its program does not have."""
    if re.match(r"(\./)?(tools|\.ci|tests)/", command) and command.removeprefix("./") not in known:
        yield f"{command} does not exist"
    found = re.search(r"(?:^|/)poseidon-([\w-]+)$", command)
    if not found:
        return
    stem = found[1].replace("-", "_")
    if f"apps/python/poseidon/{stem}.py" in known:  # an entry point of the wheel
        return
    if f"apps/poseidon_{stem}.cpp" not in known:
        yield f"{command}: there is no apps/poseidon_{stem}.cpp"
        return
    sources = [n for n in known if n == f"apps/poseidon_{stem}.cpp" or
               (n.startswith(f"apps/{stem}/") and n.endswith((".cpp", ".hpp")))]
    code = "\n".join(tree.text(n) for n in sources)
    for option in re.findall(r"(?<!\S)(--[a-z][\w-]*)", line.split("#")[0]):
        if option not in code and option not in ("--help",):
            yield f"{command} has no option {option}"


def decisions(tree):
    """A note of docs/decisions says first what holds, and only then why."""
    for name, text in tree.texts(".md"):
        if re.fullmatch(r"docs/decisions/\d+-[\w-]+\.md", name) and not re.match(r"# \d+[^\n]*\n\n\*\*Rule\b", text):
            yield name, 3, 'begins with no "**Rule.**": say what holds today first, then why, then what was measured and rejected'


TOUR = "docs/tour.md"


def tour(tree):
    """Each step of the tour (a list item) names files, and behind them words of those files, all between backticks."""
    known = set(tree.files)
    for number, step in steps(tree.text(TOUR) if TOUR in known else ""):
        words = re.findall(r"`([^`]+)`", step)
        files = [w for w in words if "/" in w]
        for file in files:
            if file not in known and not any(k.startswith(file.rstrip("/") + "/") for k in known):
                yield TOUR, number, f"{file} does not exist"
        code = "\n".join(tree.text(f) for f in files if f in known)
        for word in words:
            if "/" in word or not files:
                continue
            for part in re.findall(r"\w+", word):
                if not re.search(rf"\b{part}\b", code):
                    yield TOUR, number, f"none of {', '.join(files)} has the word \"{part}\""


def steps(text):
    """(line number, text) of each list item, its further lines included."""
    item, start = "", 0
    for number, line in enumerate(text.splitlines() + [""], 1):
        if re.match(r"\s*(\d+\.|-) ", line) or not line.strip():
            if item:
                yield start, item
            item, start = "", number
        if line.strip() and (item or re.match(r"\s*(\d+\.|-) ", line)):
            item += line + "\n"

