# tools/bench/lib/report.py - the tables that tools write into the files of docs/measurements.
import pathlib
import platform
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
FOLDER = ROOT / "docs/measurements"
PLACES = {  # the section between <!-- begin SECTION --> and <!-- end SECTION --> -> its file
    "math": "cpu-bfloat16.md",
    "small-nets": "cpu-training.md",
    "large-nets": "cpu-training.md",
    "roofline fp32": "cpu-roofline.md",
    "roofline bf16": "cpu-roofline.md",
    "convergence": "convergence.md",
    "wire convergence": "convergence.md",
    "fewer bytes": "accuracy-of-fewer-bytes.md",
    "ddp": "clusters.md",
    "cluster": "clusters.md",
    "routes": "routes.md",
    "page drawing": "page.md",
    "page cost": "page.md",
    "batch_share": "batch-share.md",
    "cost of survive": "survive.md",
}


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


def parts(section, folder=FOLDER):
    """The file that has this section, and what stands before, between and behind its markers, which belong to the first and the last part."""
    if section not in PLACES:
        sys.exit(f'there is no section "{section}": {", ".join(PLACES)}')
    path = folder / PLACES[section]
    begin, end = f"<!-- begin {section} -->\n", f"<!-- end {section} -->"
    before, found, rest = path.read_text().partition(begin)
    between, closed, after = rest.partition(end)
    if not found or not closed:
        sys.exit(f"{path} has no lines {begin.strip()} and {end}")
    return path, before + begin, between, end + after


def write(section, text, folder=FOLDER):
    """Puts `text` between the markers of this section."""
    path, before, _, after = parts(section, folder)
    path.write_text(before + text + after)
