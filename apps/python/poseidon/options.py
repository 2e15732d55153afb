"""The options of a run, as a script gives them, and the words of the library about them."""

import os
import re
from typing import Dict, Sequence

# The environment's names of the options, without "POSEIDON_".
OPTIONS = ("listen", "nodes", "join", "token", "token-file", "tls-cert", "tls-key", "tls-ca", "silence-limit", "progress-limit", "link-mbit", "routes", "rank",
           "wire", "on-loss", "replay-gflops", "trace", "graph", "web", "web-token-file")
OF_PYTORCH = ("lossy",)  # which poseidon.torch has beside them


class PoseidonError(RuntimeError):
    """What Poseidon refuses, or why a run is over: one line for the user."""


def options_from(given: Dict[str, object], more: Sequence[str] = ()) -> Dict[str, str]:
    """The options of a run: those given as keywords (`token_file=...`), the others from POSEIDON_TOKEN_FILE and so on. `more`: names beside OPTIONS."""
    out, known = {}, (*OPTIONS, *more)
    for name in known:
        value = given.get(name.replace("-", "_"), os.environ.get("POSEIDON_" + name.replace("-", "_").upper()))
        if value is not None and value != "":
            out[name] = str(value)
    unknown = [key for key in given if key.replace("_", "-") not in known]
    if unknown:
        raise PoseidonError(f'there is no option "{unknown[0]}"; there are: ' + ", ".join(name.replace("-", "_") for name in known))
    return out


def has_others(options: Dict[str, str]) -> bool:
    """Whether the run is to have more workers than this one."""
    return "listen" in options or "join" in options


_HYPHENATED = re.compile(r"(?<![\w/.-])(" + "|".join(sorted((name for name in OPTIONS if "-" in name), key=len, reverse=True)) + ")=")


# What scripts say in another way.
_IN_SCRIPTS = {"newcomers=accept": "state=[...]", "newcomers=refuse": "no state=[...]",
               "poseidon_leave_others": "poseidon.leave(others_go_on=True)"}
# As words of a sentence: not within a name, a path, an address or an option.
_OTHER_WORDS = {"node": "worker", "iteration": "step", "clock": "step"}
_OTHER_WORD = re.compile(r"""(?<![\w./"'=-])(""" + "|".join(_OTHER_WORDS) + r""")(?=s?(?![\w/"=-]|[.:]\w))""")


def in_script_words(text: str) -> str:
    """The library names options as a program in C gives them, "token-file=FILE"; a script writes token_file=FILE. Nodes are a script's workers, and what
    they count are its steps."""
    for option, words in _IN_SCRIPTS.items():
        text = text.replace(option, words)
    text = _OTHER_WORD.sub(lambda found: _OTHER_WORDS[found[1]], text)
    return _HYPHENATED.sub(lambda found: found[1].replace("-", "_") + "=", text)
