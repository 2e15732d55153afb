# tools/lib/packed_libraries.py - the libraries of Debian that go with our programs where they are not installed: for tools/bundle and tools/wheel.
import os
import pathlib
import re
import shutil
import subprocess

from elf import Elf

# Libraries of glibc, GCC and CUDA are never packed.
SYSTEM = re.compile(r"(ld-linux-x86-64|linux-vdso|lib(c|m|dl|rt|pthread|resolv|util|nss_\w+|anl|mvec|stdc\+\+|gcc_s))\.so")
CUDA = re.compile(r"lib(cuda|cudart|cudnn\w*|cublas\w*|nv\w+|nccl)\.so")
HERE = "$ORIGIN/../lib"
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# What tools/launch/local consists of.
LAUNCHER = ("local", "host_file.py", "remote_node.py", "script_run.py", "ssh_run.py", "worker_agent.py")


class Failed(Exception):
    """One line for the user."""


def output_of(command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}: {(done.stderr or done.stdout)[-800:]}")
    return done.stdout


def libraries_of(file):
    """name -> path of all that are packed with the file; glibc and the like, and CUDA's, are left out."""
    found = re.findall(r"(?m)^\s*(\S+)(?: => (not found|\S+))? ?(?:\(0x\w+\))?$", output_of(["ldd", file]))
    out = {name: path for name, path in found if not SYSTEM.match(pathlib.Path(name).name) and not CUDA.match(name)}
    missing = [name for name, path in out.items() if path == "not found"]
    if missing:
        raise Failed(f"{file.name} needs {missing[0]}, which is not on this machine: tools/dependencies installs what the build needs")
    return out


def renamed(name):
    """A packed library's name: another one than that of Debian's own, for a process that has both. Of the same length."""
    return "psd" + name.removeprefix("lib") if name.startswith("lib") else name


def copy_stripped(file, to):
    """A program or library of ours. Of where libraries are looked for only the folder of the packed ones stays: CUDA's of the machine that built
    it would go before LD_LIBRARY_PATH where another machine has such a folder, too."""
    subprocess.run(["strip", "--strip-unneeded", "-o", to, file], check=True)
    shutil.copymode(file, to)
    elf = Elf(to)
    elf.forget_paths(HERE)
    return elf


def pack(ours, folder):
    """Copies files of ours, {from: to}, and to `folder` the libraries that they need, which get names that no system has: a process may have
    others of the same libraries. Returns the files that these are from, for write_licences()."""
    sources = {}
    for file in ours:
        sources.update(libraries_of(file))
    names = {name: renamed(name) for name in sources}
    for file, to in ours.items():
        elf = copy_stripped(file, to)
        elf.rename(names)
        to.write_bytes(bytes(elf))
    for name, path in sources.items():
        elf = Elf(pathlib.Path(path))  # the file that a link names
        elf.rename(names)
        elf.forget_unique()
        (folder / names[name]).write_bytes(bytes(elf))
        (folder / names[name]).chmod(0o755)
    return list(sources.values())


def versions_needed(files, prefix):
    """(version as numbers, the file that needs it) for the newest symbols, for example of prefix "GLIBC"."""
    found = [(tuple(map(int, number.split("."))), file) for file in files for names in Elf(file).versions.values() for name in names
             for number in re.findall(rf"^{prefix}_([\d.]+)$", name)]
    return max(found, key=lambda one: one[0], default=((0,), None))


def glibc_needed(files):
    return ".".join(map(str, versions_needed(files, "GLIBC")[0]))


def python_files():
    """Where each file of the package poseidon goes, from the folder of the package on: with the launcher of scripts, which lies elsewhere in
    a checkout."""
    folder = ROOT / "apps/python"
    out = {str(path.relative_to(folder)): path for path in sorted((folder / "poseidon").rglob("*.py"))}
    out.update({f"poseidon/launcher/{name}": ROOT / "tools/launch" / name for name in LAUNCHER})
    return out


# -- whose they are -----------------------------------------------------------------------------------------

def packages_of(paths):
    """Debian's package of each of these files, where there is one."""
    asked = {}
    for path in map(pathlib.Path, paths):
        real = os.path.realpath(path)
        for name in (real, real.removeprefix("/usr"), "/usr" + real):  # dpkg knows one of them
            asked[name] = str(path)
    done = subprocess.run(["dpkg-query", "--search", *asked], capture_output=True, text=True, stdin=subprocess.DEVNULL)  # ends with 1: not all are known
    return {asked[name]: owners.split(",")[0] for owners, name in re.findall(r"(?m)^(\S.*?): (/.*)$", done.stdout) if name in asked}


def write_licences(paths, folder):
    """For each package that these libraries come from its copyright file, and libraries.txt, which says which file is from which version of
    which package, and what pack() has done to it."""
    owners = packages_of(paths)
    lines = []
    for path in sorted(map(str, paths), key=lambda path: pathlib.Path(path).name):
        name, package = pathlib.Path(path).name, owners.get(path)
        if package is None:
            raise Failed(f"{path} is of no Debian package, so its licence is not known. Build with Debian's libraries (tools/dependencies)")
        version, source = output_of(["dpkg-query", "--show", "--showformat", "${Version}\t${source:Package} ${source:Version}", package]).split("\t")
        lines.append(f"{name}: {package.split(':')[0]} {version} (source {source})\n")
        to = folder / package.split(":")[0]
        if not to.exists():
            to.mkdir(parents=True)
            shutil.copy(f"/usr/share/doc/{package.split(':')[0]}/copyright", to / "copyright")
    (folder / "libraries.txt").write_text(
        "Libraries of Debian, and the packages that they are from; the folder of a package has its licence. Their sources are at\n"
        "https://snapshot.debian.org. Here their names begin with \"psd\" in place of \"lib\", in their headers, too, and none of their symbols is\n"
        "the only one of its name in a process (STB_GNU_UNIQUE): a process may have another copy of each. Nothing else is changed.\n\n" + "".join(lines))
