# tools/lib/gpu_check/steps.py - the steps of tools/gpu-check: each with a limit, none stopping the others, all in the report.
import contextlib
import ctypes
import json
import os
import pathlib
import platform
import re
import signal
import subprocess
import sysconfig
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
LOGGED = 2 << 20  # characters of a step's output at most


class Left(Exception):
    """A step that cannot be made here, with the reason."""


class Wrong(Exception):
    """A step that failed, with what it found."""


def folders_of_cuda():
    """Where CUDA's libraries may lie besides the system's own folders."""
    sites = {sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]}
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # the PATH's python3 may be another one, with PyTorch
        asked = subprocess.run(["python3", "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"],
                               capture_output=True, text=True, timeout=20)
        sites.add(asked.stdout.strip())
    wheels = [f for site in sorted(sites) if site for f in sorted(pathlib.Path(site).glob("nvidia/*/lib"))]
    system = [pathlib.Path("/usr/local/cuda") / f for f in ("lib64", "targets/x86_64-linux/lib")]
    return [f for f in wheels + system if any(f.glob("*.so*"))]


def tail(output):
    """The last lines that are not empty, as one line."""
    return " / ".join(line.strip() for line in output.splitlines()[-6:] if line.strip())[-500:] or "nothing was said"


def machine():
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {"system": platform.platform(), "cpu": cpu[1] if cpu else platform.machine(), "cores": os.cpu_count(),
            "python": platform.python_version(), "when": time.strftime("%Y-%m-%d %H:%M:%S %z")}


def die_with_parent():
    """However this script ends, it leaves no process that keeps a GPU busy."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Steps:
    def __init__(self, options):
        self.options = options
        self.began = time.monotonic()
        self.report = {"version": 1, "machine": machine(), "simulated": options.simulated, "steps": []}
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="poseidon-gpu-check-"))
        options.out.mkdir(parents=True, exist_ok=True)
        self.log = (options.out / "gpu-check.log").open("w")
        self.plugin = options.bin / ("libposeidon_gpu_simulated.so" if options.simulated else "libposeidon_gpu.so")
        self.environment = dict(os.environ, POSEIDON_BIN=str(options.bin), POSEIDON_GPU_PLUGIN=str(self.plugin),
                                POSEIDON_REQUIRE_GPU="1", PYTHONUNBUFFERED="1")
        self.environment.setdefault("USER", "root")  # torch.compile asks, where there is no /etc/passwd
        self.environment.setdefault("POSEIDON_TEST_SLACK", "2")  # each process starts with a cold driver
        with contextlib.suppress(OSError):  # while this is open the driver stays initialised between processes
            self.held = open("/dev/nvidia0", "rb", buffering=0)

    def left(self):
        return 60 * self.options.minutes - (time.monotonic() - self.began)

    def run(self, command, limit, watch=None):
        """Exit code and output; None for the code where the limit, or the check's time, ran out. `watch` sees every
        line and ends the program, which is then asked to, by returning True."""
        limit = min(limit, self.left())
        command = [str(word) for word in command]
        self.log.write(f"\n$ {' '.join(command)}   # at most {limit:.0f} s\n")
        process = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
                                   preexec_fn=die_with_parent)
        expired = threading.Event()

        def end(number):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)  # a group of its own, see start_new_session

        (timer := threading.Timer(limit, lambda: (expired.set(), end(signal.SIGKILL)))).start()
        lines, enough, logged = [], False, 0
        try:
            for line in process.stdout:
                lines.append(line)
                logged += len(line)
                if logged < LOGGED:
                    self.log.write(line)
                if watch and not enough and watch(line):
                    enough = True
                    end(signal.SIGKILL)
            process.wait()
        finally:
            timer.cancel()
            end(signal.SIGKILL)  # children that it may have left
        self.log.flush()
        return (0 if enough else None if expired.is_set() else process.returncode), "".join(lines)

    def step(self, name, work, limit):
        """`work(limit)` returns its findings: a dictionary with a "text"."""
        began = time.monotonic()
        entry = {"step": name, "result": "passed"}
        try:
            if self.left() < 5:
                raise Left("no time was left: give --minutes more, or fewer --nets")
            entry |= work(min(limit, self.left()))
        except Left as why:
            entry |= {"result": "skipped", "text": str(why)}
        except Wrong as why:
            entry |= {"result": "failed", "text": str(why)}
        except Exception as why:  # a fault of this script: the other steps are still useful
            entry |= {"result": "failed", "text": f"{type(why).__name__}: {why}"}
        entry["seconds"] = round(time.monotonic() - began, 1)
        self.report["steps"].append(entry)
        self.report["seconds"] = round(time.monotonic() - self.began, 1)
        (self.options.out / "gpu-check.json").write_text(json.dumps(self.report, indent=1) + "\n")
        print(f"{entry['result']:8} {entry['seconds']:6.1f} s  {name}: {entry['text']}", flush=True)
        return entry

    @staticmethod
    def demand(code, output, limit):
        if code is None:
            raise Wrong(f"not done after {limit:.0f} s; its last words: {tail(output)}")
        if code:
            raise Wrong(f"ended with {code}: {tail(output)}")

    def share(self):
        """The factor for the limits, which are for 9 minutes and both halves."""
        return self.options.minutes / 9 * (2 if self.options.only else 1)
