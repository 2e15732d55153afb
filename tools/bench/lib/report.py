# tools/bench/lib/report.py - the sections of docs/performance.md that tools write.
import pathlib
import platform
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent


def commit():
    git = ["git", "-c", "safe.directory=*", "-C", str(ROOT)]
    said = lambda *words: subprocess.run([*git, *words], capture_output=True, text=True).stdout.strip()
    changed = said("status", "--porcelain", "--untracked-files=no", "--", ":!docs")
    return said("rev-parse", "--short", "HEAD") + (" with changes" if changed else "")


def rate_text(bits_per_s):
    return f"{bits_per_s / 1e9:g} Gbit/s" if bits_per_s >= 1e9 else f"{bits_per_s / 1e6:g} Mbit/s"


def machine_line():
    cores = len([x for x in open("/proc/cpuinfo") if x.startswith("processor")])
    return f"Commit {commit()}, {time.strftime('%Y-%m-%d')}, {cores} cores, Linux {platform.release()}."


def table(rows, options, arguments):
    command = []  # without paths of one machine
    for word in arguments:
        command.append(" ".join(pathlib.Path(w).name if w.startswith("/") else w for w in shlex.split(word))
                       if command and command[-1] == "--ddp" else word)
    lines = ["## A cluster, replayed", "",
             f"{machine_line()} {options.rounds} rounds of {options.iterations} iterations, byte scale {options.byte_scale:g}, time scale "
             f"{options.time_scale:g}.",
             f"Command: `tools/bench/cluster {shlex.join(command)}`", "",
             "| net | hosts | link | compute s | bound s | program | iteration s | MAD | to bound | MB out | MB in | theory MB | busy |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for r in rows:
        traffic = [f"{r[k]:.1f}" if r[k] is not None else "" for k in ("out_MB", "in_MB")]
        lines.append(f"| {r['net']} | {r['P']} | {rate_text(r['rate'])} | {r['compute_s']:.3f} | {r['bound_s']:.3f} | "
                     f"{r['program']} | {r['iteration_s']:.3f} | {r['mad_s']:.3f} | {r['iteration_s'] / r['bound_s']:.2f} | "
                     f"{traffic[0]} | {traffic[1]} | {r['theory_MB']:.1f} | {r['busy']:.2f} |")
    return "\n".join(lines) + "\n"


def write(path, text, section="cluster"):
    """Puts `text` between the section's markers, which are added at the end where there are none."""
    begin, end = f"<!-- begin {section} -->\n", f"<!-- end {section} -->"
    before, found, rest = path.read_text().partition(begin)
    if not found:
        path.write_text(before.rstrip("\n") + "\n\n" + begin + text + end + "\n")
        return
    _, closed, after = rest.partition(end)
    if not closed:
        sys.exit(f"{path}: {begin.strip()} without {end}")
    path.write_text(before + begin + text + end + after)
