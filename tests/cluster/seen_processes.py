# tests/cluster/seen_processes.py - what the system says of processes: which there are, and what they do.
import contextlib
import os
import pathlib
import re


def processes_of(folder):
    """Pids of living processes whose command line names `folder`: a test must leave none."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes()
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            if str(folder).encode() in words and int(entry.name) != os.getpid() and state != "Z":
                found.append(int(entry.name))
    return found


def threads_of(pid):
    """What each thread of a process does: whether it hangs, or the machine is slow. Its name, its state, where the kernel holds it, and its processor time."""
    lines = []
    for task in sorted(pathlib.Path(f"/proc/{pid}/task").glob("*")):
        with contextlib.suppress(OSError):
            name, rest = re.fullmatch(r"\d+ \((.*)\) (.*)\n?", (task / "stat").read_text(), re.S).groups()
            words = rest.split()  # from the state on, which is field 3 of proc(5)
            used = sum(map(int, words[11:13])) / os.sysconf("SC_CLK_TCK")
            lines.append(f"  {name}: {words[0]}, in {(task / 'wchan').read_text() or 'no wait'}, {used:.2f} s of processor time")
    return "its threads:\n" + "\n".join(lines)
