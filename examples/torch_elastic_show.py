# examples/torch_elastic_show.py - three workers of examples/torch_elastic.py; the first one is killed, and a new one joins the other two.
"""tools/launch/local 1 /usr/bin/python3 examples/torch_elastic_show.py [FOLDER]

Each worker is a process of this machine, started with the same command. What each says is shown after its name."""
import os
import pathlib
import re
import subprocess
import sys
import threading

SCRIPT = pathlib.Path(__file__).resolve().parent / "torch_elastic.py"
lines = threading.Condition()
started = []


class Worker:
    """A process, and what it has said."""

    def __init__(self, name, **environment):
        self.name, self.said = name, []
        command = [sys.executable, str(SCRIPT), *sys.argv[1:]]
        print(f"-- {name} is started: " + " ".join(f"POSEIDON_{key}={value}" for key, value in environment.items()), *command[1:], flush=True)
        self.process = subprocess.Popen(command, env={**os.environ, **{f"POSEIDON_{key}": value for key, value in environment.items()}},
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        started.append(self)

    def read(self):
        for line in self.process.stdout:
            print(f"{self.name} | {line}", end="", flush=True)
            with lines:
                self.said.append(line)
                lines.notify_all()
        with lines:
            self.said.append(None)
            lines.notify_all()

    def wait_for(self, pattern):
        """The match in the first line that has one."""
        with lines:
            while True:
                for line in self.said:
                    if line is None:
                        sys.exit(f"{self.name} has ended without a line like {pattern}")
                    found = re.search(pattern, line)
                    if found:
                        return found
                lines.wait()

    def end(self):
        code = self.process.wait()
        self.reader.join()
        return code


def show():
    """The largest exit code of those that were not killed."""
    first = Worker("first", LISTEN="127.0.0.1:0", NODES="3")
    address = first.wait_for(r"others join with join=(\S+)")[1]
    others = [Worker(name, JOIN=address) for name in ("second", "third")]
    first.wait_for("step 200: .* 3 workers")

    print("-- the first one is killed", flush=True)
    first.process.kill()
    address = others[0].wait_for(r"this worker listens on (\S+)")[1]
    others[0].wait_for("2 workers go on")

    others.append(Worker("new", JOIN=address))
    codes = [worker.end() for worker in others]
    print("-- all have ended, with exit codes " + ", ".join(map(str, codes)), flush=True)
    return max(map(abs, codes))


try:
    sys.exit(show())
finally:
    for worker in started:
        worker.process.kill()
