#!/usr/bin/env python3
# tools/lib/wheel.py - writes the wheel of what has been built: tools/wheel builds, calls this, and tries the result.
"""usage: python3 -B tools/lib/wheel.py --build DIR --out DIR

Prints the wheel's path. Two calls on the same files write the same bytes: all files have the time of SOURCE_DATE_EPOCH, or that of the commit.

Source  packaging.python.org, "Binary distribution format", "Entry points", "Platform compatibility tags" (PEP 600)."""
import argparse
import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

sys.dont_write_bytecode = True
from elf import Elf, NotElf  # noqa: E402
from packed_libraries import Failed, ROOT, SYSTEM, pack, python_files, versions_needed, write_licences  # noqa: E402

LIBRARY = "libposeidon.so"
TAG = "manylinux_2_36_x86_64"
# The newest symbols that a system may be asked for: glibc's version is in the tag, the others are those of Debian 12, the oldest system with it.
NEWEST = {"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}

METADATA = """Metadata-Version: 2.1
Name: poseidon
Version: {version}
Summary: Distributed training on ordinary networks, for PyTorch and NumPy programs
License: Apache-2.0; the licenses of the libraries that are packed lie in the folder licenses
Requires-Python: >=3.9
Classifier: Operating System :: POSIX :: Linux
Description-Content-Type: text/markdown

A PyTorch script joins with two lines more, or with another import of DistributedDataParallel:

    import poseidon.torch as poseidon
    poseidon.join(model, optimizer)

`poseidon-launch 2 python3 train.py` starts two workers of it on this machine. PyTorch and NumPy are yours: this package asks for none of them.
"""
WHEEL = f"""Wheel-Version: 1.0
Generator: tools/wheel
Root-Is-Purelib: false
Tag: py3-none-{TAG}
"""
ENTRY_POINTS = """[console_scripts]
poseidon-launch = poseidon.launch:main
"""


def refuse_what_would_not_load(folder):
    """Every library is packed or the system's, and no system with the tag's glibc lacks a symbol."""
    files = sorted(folder.iterdir())
    for path in files:
        elf = Elf(path)
        strange = [name for name in elf.needed if not SYSTEM.match(name) and not (folder / name).exists()]
        if strange:
            raise Failed(f"{path.name} needs {strange[0]}, which is neither packed nor a library that every Linux has")
        elsewhere = [place for text in elf.paths for place in text.split(":") if not place.startswith("$ORIGIN")]
        if elsewhere:
            raise Failed(f'{path.name} looks for libraries in "{elsewhere[0]}", a folder of the machine that built it')
        if any("GLIBC_PRIVATE" in names for names in elf.versions.values()):
            raise Failed(f"{path.name} needs private symbols of glibc, which each release has its own of")
    for prefix, newest in NEWEST.items():
        found, path = versions_needed(files, prefix)
        if found > newest:
            raise Failed(f"{path.name} needs symbols of {prefix}_{'.'.join(map(str, found))}, and a system of the tag {TAG} has {prefix}_"
                         f"{'.'.join(map(str, newest))}: build the wheel on Debian 12 (tools/other_debian bookworm tools/wheel)")


# -- the file -----------------------------------------------------------------------------------------------

def version():
    return re.search(r"^project\(poseidon VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]


def build_time():
    """Seconds since 1970; a zip file begins with 1980."""
    text = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not text:
        text = subprocess.run(["git", "-c", "safe.directory=*", "-C", ROOT, "log", "-1", "--format=%ct"], capture_output=True, text=True).stdout.strip()
    return max(int(text or 0), 315532800)


def write(folder, path):
    """All files of the folder, sorted, with a RECORD of them."""
    when = time.gmtime(build_time())[:6]
    info, = folder.glob("*.dist-info")
    record = []
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as part:
        try:
            with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
                def add(name, data):
                    entry = zipfile.ZipInfo(name, when)
                    entry.external_attr = (0o100755 if ".so" in name else 0o100644) << 16
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    archive.writestr(entry, data)

                for file in sorted(f for f in folder.rglob("*") if f.is_file()):
                    name, data = str(file.relative_to(folder)), file.read_bytes()
                    add(name, data)
                    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                    record.append(f"{name},sha256={digest},{len(data)}\n")
                add(f"{info.name}/RECORD", "".join(record) + f"{info.name}/RECORD,,\n")
            os.chmod(part.name, 0o644)
            os.replace(part.name, path)
        finally:
            pathlib.Path(part.name).unlink(missing_ok=True)


def make(build, out):
    ours = build / "lib" / LIBRARY
    if not ours.exists():
        raise Failed(f"{ours} is not there: tools/build poseidon builds it")
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"poseidon-{version()}-py3-none-{TAG}.whl"
    with tempfile.TemporaryDirectory(prefix="poseidon-wheel-") as name:
        folder = pathlib.Path(name)
        info = folder / f"poseidon-{version()}.dist-info"
        for place, file in python_files().items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, folder / place)
        libraries = folder / "poseidon/lib"
        libraries.mkdir()
        sources = pack({ours: libraries / LIBRARY}, libraries)
        refuse_what_would_not_load(libraries)
        write_licences(sources, info / "licenses")
        shutil.copy(ROOT / "LICENSE", info / "licenses/LICENSE")
        (info / "METADATA").write_text(METADATA.format(version=version()))
        (info / "WHEEL").write_text(WHEEL)
        (info / "entry_points.txt").write_text(ENTRY_POINTS)
        write(folder, path)
    return path


def main():
    parser = argparse.ArgumentParser(prog="tools/lib/wheel.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    path = make(options.build, options.out)
    print(path)


try:
    main()
except (Failed, NotElf, OSError, subprocess.SubprocessError) as failure:
    sys.exit(f"tools/wheel: {failure}")
