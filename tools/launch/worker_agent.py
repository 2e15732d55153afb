# tools/launch/worker_agent.py - runs beside one worker of a script, on the worker's machine, and ends it when it is told to.
"""usage: python3 -c (this text) PLAN

PLAN is one word of JSON, which script_run.py writes. The first line of standard input is the cluster's token; it may be empty.
Each later line is the name of a signal, which the worker gets: ssh hands on no signals. The end of the input means that
the launcher has gone. Nothing of Poseidon needs to lie on the machine, so this file imports only what Python brings.
"""
import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time


def first_library(roots):
    """The first of these folders that is a checkout with a built library."""
    return next((root for root in map(os.path.abspath, roots) if os.path.exists(f"{root}/build/release/lib/libposeidon.so")), None)


def environment_of(plan, token):
    out = dict(os.environ, **plan["set"])
    for name, value in plan["default"].items():
        out.setdefault(name, value)
    root = first_library(plan["roots"])
    if root:
        out.setdefault("POSEIDON_LIBRARY", f"{root}/build/release/lib/libposeidon.so")
        out["PYTHONPATH"] = os.pathsep.join(filter(None, [f"{root}/apps/python", out.get("PYTHONPATH")]))
    if token:  # not in a command line, which every user of the machine can read; /proc shows an environment to its owner alone
        out.update(POSEIDON_TOKEN=token, POSEIDON_TOKEN_FILE="")
    return out


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def kill_all_of(pid):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # with what the worker has started


def obey(lines, pid, grace):
    for name in map(str.strip, lines):
        if name == "KILL":
            kill_all_of(pid)
        else:
            os.kill(pid, signal.Signals["SIG" + name])
    os.kill(pid, signal.SIGTERM)
    time.sleep(grace)
    kill_all_of(pid)


def main(plan):
    lines = os.fdopen(os.dup(0))
    token = lines.readline()
    if not token:
        return 2  # the launcher has gone already
    words = plan["words"]
    try:
        os.chdir(plan["directory"])
        worker = subprocess.Popen(words, env=environment_of(plan, token.rstrip("\n")), stdin=subprocess.DEVNULL,
                                  start_new_session=True, preexec_fn=die_with_parent)
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) and error.filename == words[0] else 126
    signal.signal(signal.SIGTERM, lambda *_: os.kill(worker.pid, signal.SIGTERM))
    threading.Thread(target=obey, args=(lines, worker.pid, plan["grace"]), daemon=True).start()
    os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)  # until it is waited for nobody else gets its number
    kill_all_of(worker.pid)  # what it has left behind holds the pipes, and the launcher would wait
    code = worker.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    code = main(json.loads(sys.argv[1]))
    sys.stderr.flush()
    os._exit(code)  # the thread still reads
