# tools/lib/clang_format.py - clang-format 14, for tools/check and tools/format: every version formats otherwise, and Debian 12 has this one.
import platform
import shutil
import subprocess
import sys

ELSEWHERE = "the formatting is left out: clang-format 14 is Debian 12's, and other versions format otherwise"


class Missing(Exception):
    pass


def find():
    """The program; None on a system that has another version. Errors  Missing, where it only has to be installed."""
    for name in "clang-format-14", "clang-format":
        program = shutil.which(name)
        if program and " version 14." in subprocess.run([program, "--version"], capture_output=True, text=True).stdout:
            return program
    try:
        release = platform.freedesktop_os_release().get("VERSION_CODENAME")
    except OSError:
        release = None
    if release == "bookworm":
        raise Missing("clang-format-14 is not installed. Run tools/dependencies --developers.")
    return None


def main():
    try:
        program = find()
    except Missing as e:
        sys.exit(f"tools/format: {e}")
    if program is None:
        print(f"tools/format: {ELSEWHERE}", file=sys.stderr)
        sys.exit(77)
    print(program)


if __name__ == "__main__":
    main()
