"""What the programs say about themselves with --help, as a tree of commands, as manual pages and as bash completions.

Nothing about verbs or options is written here: a verb is a word for which `PROGRAM WORD --help` prints the usage of that
word, and options are the entries of that text. So pages and completions cannot lack one that a program has.
"""
import dataclasses
import re
import subprocess

PROGRAMS = ("poseidon-node", "poseidon-graph", "poseidon-data")
COLUMN = 30  # where CLI11 begins a description
EXIT_CODE = re.compile(r"^(Exit codes?): ")


@dataclasses.dataclass
class Entry:
    """A line of the help: an option with all of its names, a positional, or a verb."""
    names: list
    value: str  # "" for a flag
    text: str

    @property
    def choices(self):
        found = re.search(r"\{([^{}]*)\}", self.value)
        return found[1].split(",") if found else []


@dataclasses.dataclass
class Command:
    words: list  # ["poseidon-data", "convert", "list"]
    about: str
    usage: str
    positionals: list
    options: list
    footer: str
    verbs: list  # of Command
    others: list  # verbs that do what the program does without one

    def all(self):
        yield self
        for verb in self.verbs:
            yield from verb.all()


def help_of(program, words):
    """The text, or None where the program does not know these words."""
    done = subprocess.run([str(program), *words, "--help"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    return done.stdout if done.returncode == 0 else None


def entries_of(lines):
    """Entries begin in column 2. A long name has its description in the next line."""
    found = []
    for line in lines:
        if line.startswith(" " * COLUMN):
            found[-1].text = (found[-1].text + " " + line.strip()).strip()
        elif line.strip():
            long_name = len(line) >= COLUMN and "  " not in line[2:COLUMN] and line[COLUMN - 1] != " "
            name, text = (line, "") if long_name else (line[:COLUMN], line[COLUMN:])
            names, _, value = name.strip().partition(" ")
            found.append(Entry(names.split(","), value.strip(), text.strip()))
    return found


def sections_of(text):
    """about, usage, section -> entries, and what follows the last section."""
    about, usage, sections, footer, current = [], "", {}, [], None
    lines = text.splitlines()
    for number, line in enumerate(lines):
        heading = re.fullmatch(r"(Positionals|Options|Subcommands|[A-Z][\w ]*):", line)
        if line.startswith("Usage: "):
            usage = line.removeprefix("Usage: ")
        elif heading and number + 1 < len(lines) and re.match(r"  \S", lines[number + 1]) and not footer and usage:
            if heading[1] == "Examples":
                footer = [line]
                continue
            current = heading[1]
            sections[current] = []
        elif not usage:
            about.append(line)
        elif footer or (line and not line.startswith("  ")):
            footer.append(line)
        elif current:
            sections[current].append(line)
    return " ".join(about).strip(), usage, {k: entries_of(v) for k, v in sections.items()}, "\n".join(footer).strip()


def verb_names(program, words, text, listed):
    """Words that are verbs: those listed as such, and those that the help or the refusal of another verb mentions."""
    name = words[0]
    refusal = subprocess.run([str(program), *words[1:], "no-such-verb", "--no-such-option"], capture_output=True, text=True,
                             stdin=subprocess.DEVNULL, timeout=60).stderr
    mentioned = re.findall(rf"{name} ([a-z][a-z-]+)", text) + re.findall(r"--([a-z][a-z-]+)", text) + \
        re.findall(r"(?m)^  ([a-z][a-z-]+)  ", text) + (re.findall(r"\b[a-z][a-z-]+\b", refusal) if "verb" in refusal else [])
    for word in dict.fromkeys([*listed, *mentioned]):
        said = help_of(program, [*words[1:], word])
        refuses = "verb" in refusal  # else any word is taken for the name of a file
        if said is not None and (re.search(rf"(?m)^Usage: {' '.join([*words, word])}( |$)", said) or (refuses and said == text)):
            yield word, said


def command_of(program, words, text, inherited=""):
    about, usage, sections, footer = sections_of(text)
    if not usage or "Options" not in sections:
        raise ValueError(f"{' '.join(words)} --help has another form than tools/lib/manual.py reads:\n{text[:400]}")
    listed = [entry.names[0] for entry in sections.get("Subcommands", [])]
    positionals = sections.get("Positionals", [])
    options = [e for name, found in sections.items() if name not in ("Positionals", "Subcommands") for e in found]
    # Only programs, and verbs that list verbs of their own, have any.
    names = list(verb_names(program, words, text, listed)) if len(words) == 1 or listed else []
    verbs = [command_of(program, [*words, word], said, footer) for word, said in names if said != text]
    others = [word for word, said in names if said == text]
    return Command(words, about, usage, positionals, options, "" if footer == inherited else footer, verbs, others)


def read_program(program, name):
    text = help_of(program, [])
    if text is None:
        raise ValueError(f"{program} --help fails")
    return command_of(program, [name], text)


# -- manual pages ---------------------------------------------------------------------------------------------


def troff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def entry_lines(entry):
    names = ", ".join(rf"\fB{troff(name)}\fR" for name in entry.names)
    value = rf" \fI{troff(entry.value)}\fR" if entry.value else ""
    return [".TP", names + value, troff(entry.text)]


def literally(text):
    return [".nf", troff(text), ".fi"]


def manual_page(command, version):
    name = command.words[0]
    lines = [f'.\\" Written by tools/manual from {name} --help.', f'.TH {name.upper()} 1 "" "poseidon {version}" "Poseidon"',
             ".SH NAME", rf"{troff(name)} \- {troff(command.about[0].lower() + command.about[1:].rstrip('.'))}", ".SH SYNOPSIS"]
    for one in command.all():
        lines += [".PP", rf"\fB{troff(' '.join(one.words))}\fR{troff(one.usage.removeprefix(' '.join(one.words)))}"]
    lines += [".SH OPTIONS"]
    for entry in command.positionals + command.options:
        lines += entry_lines(entry)
    if command.verbs:
        lines += [".SH VERBS"]
    for word in command.others:
        lines += [f'.SS "{troff(command.words[0] + " " + word)}"', "The same as without a verb."]
    for verb in [one for one in command.all() if one is not command]:
        lines += [f'.SS "{troff(" ".join(verb.words))}"', troff(verb.about)]
        for entry in verb.positionals + verb.options:
            lines += entry_lines(entry)
        if verb.footer:
            lines += [".PP", *literally(verb.footer)]
    if command.footer:
        lines += [".SH NOTES", *literally(command.footer)]
    others = ", ".join(rf"\fB{troff(other)}\fR(1)" for other in PROGRAMS if other != name)
    lines += [".SH SEE ALSO", others + ";", "the user guide in the package's documentation folder."]
    return "\n".join(lines) + "\n"


# -- bash -----------------------------------------------------------------------------------------------------

COMPLETION = r"""# bash completion for {name}. Written by tools/manual from {name} --help.
{function}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command="" words="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command/${{COMP_WORDS[i]}}" in
{steps}
    esac
  done
  COMPREPLY=()
  case "$command $before" in
{values}
  esac
  case "$command" in
{commands}
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}}
complete -o default -F {function} {name}
"""


def completion(command):
    """Choices after an option that has some, files after other options with a value, else options and verbs."""
    steps, values, commands = [], [], []
    for one in command.all():
        path = "".join("/" + word for word in one.words[1:])
        if path:
            steps.append(f'      "{path}") command="{path}" ;;')
        for entry in one.options:
            pattern = " | ".join(f'"{path} {name}"' for name in entry.names)
            if entry.choices:
                values.append(f'    {pattern}) mapfile -t COMPREPLY < <(compgen -W "{" ".join(entry.choices)}" -- "$word"); return ;;')
            elif entry.value and not entry.value.startswith("["):
                values.append(f"    {pattern}) return ;;")
        words = [name for entry in one.options for name in entry.names] + [verb.words[-1] for verb in one.verbs] + one.others
        commands.append(f'    "{path}") words="{" ".join(words)}" ;;')
    return COMPLETION.format(name=command.words[0], function="_" + command.words[0].replace("-", "_"),
                             steps="\n".join(steps) or '      "") ;;', values="\n".join(values), commands="\n".join(commands))
