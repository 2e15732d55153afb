# tests/cluster/preloaded.py - starts Python programs from a process that has imported PyTorch already.
"""A worker of a test trains for hundredths of a second, and PyTorch takes more than a second of processor time to import. So one process
imports it, and forks for each program, which then runs as `python3 program.py WORD ...` does: in a session of its own, with its own
environment, folder and pipes. The variables that PyTorch's libraries read as they are loaded are the same for all programs:
THREADS. The process and its programs end with the test.

    loader = Preloaded("/usr/bin/python3", "torch")
    process = loader.start(["program.py", "word"], cwd, env)   # as a subprocess.Popen: pid, stdout, stderr, poll(), wait()
"""
import array
import atexit
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import types

THREADS = {"OPENBLAS_NUM_THREADS": "1"}


class Forked:
    """A program, in the words of subprocess.Popen."""

    def __init__(self, loader, pid, stdout, stderr):
        self._loader, self.pid, self.stdout, self.stderr = loader, pid, stdout, stderr

    def poll(self):
        return self._loader.code_of(self.pid)

    def wait(self, timeout=None):
        code = self._loader.wait_for(self.pid, timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"the program with pid {self.pid}", timeout)
        return code


class Preloaded:
    def __init__(self, python, module, preexec):
        here, there = socket.socketpair()
        with there:
            self._process = subprocess.Popen([python, "-B", __file__, str(there.fileno()), module], env={**os.environ, **THREADS},
                                             stdin=subprocess.DEVNULL, pass_fds=[there.fileno()], preexec_fn=preexec)
        self._socket = here
        self._lines = here.makefile("r")
        self._codes, self._pids = {}, []
        self._changed = threading.Condition()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        atexit.register(self.end)

    def end(self):
        """Also ends the programs."""
        if self._socket.fileno() < 0:
            return
        self._socket.shutdown(socket.SHUT_RDWR)
        self._process.wait()
        self._listener.join()
        self._lines.close()
        self._socket.close()

    def start(self, words, cwd, env):
        pipes = [os.pipe() for _ in range(2)]
        order = json.dumps({"words": words, "cwd": str(cwd), "env": env}).encode() + b"\n"
        with self._changed:
            known = len(self._pids)
            self._socket.sendmsg([order[:1]], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [w for _, w in pipes]))])
            self._socket.sendall(order[1:])
            for _, w in pipes:
                os.close(w)
            self._changed.wait_for(lambda: len(self._pids) > known or self._process.poll() is not None)
            if len(self._pids) == known:
                raise AssertionError(f"{self._process.args}: ended with exit code {self._process.poll()} instead of starting {words}")
            pid = self._pids[known]
        return Forked(self, pid, *(os.fdopen(r, "rb") for r, _ in pipes))

    def code_of(self, pid):
        with self._changed:
            return self._codes.get(pid)

    def wait_for(self, pid, timeout):
        with self._changed:
            self._changed.wait_for(lambda: pid in self._codes, timeout)
            return self._codes.get(pid)

    def _listen(self):
        for line in self._lines:
            said = json.loads(line)
            with self._changed:
                if "began" in said:
                    self._pids.append(said["began"])
                else:
                    self._codes[said["ended"]] = said["code"]
                self._changed.notify_all()
        self._process.wait()
        with self._changed:
            self._changed.notify_all()


# -- the process that forks ------------------------------------------------------------------------------------

def tell(to, **said):
    to.sendall(json.dumps(said).encode() + b"\n")


def tell_of_ends(to):
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        tell(to, ended=pid, code=os.waitstatus_to_exitcode(status))


def take_order(orders):
    """An order and its two pipes; None where the test has ended."""
    first, control, _, _ = orders.recvmsg(1, socket.CMSG_SPACE(2 * array.array("i").itemsize))
    if not first:
        return None
    pipes = array.array("i")
    pipes.frombytes(control[0][2])
    text = first
    while not text.endswith(b"\n"):
        text += orders.recv(1 << 16)
    return json.loads(text), list(pipes)


def become(order, pipes, parent):
    """In the forked process."""
    os.setsid()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)
    for place, pipe in enumerate(pipes, 1):
        os.dup2(pipe, place)
        os.close(pipe)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    sys.argv = order["words"]
    paths = os.environ.get("PYTHONPATH", "")
    sys.path[:1] = [os.path.dirname(os.path.abspath(sys.argv[0])), *filter(None, paths.split(":"))]


def serve(orders):
    """Returns in each program that it forks."""
    bell, ring = os.pipe2(os.O_NONBLOCK)
    signal.set_wakeup_fd(ring)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    parent = os.getpid()
    while True:
        ready, _, _ = select.select([orders, bell], [], [])
        if bell in ready:
            os.read(bell, 4096)
            tell_of_ends(orders)
        if orders not in ready:
            continue
        taken = take_order(orders)
        if taken is None:
            os._exit(0)
        is_session, has_session = os.pipe()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            orders.close()
            for end in bell, ring, is_session:
                os.close(end)
            become(*taken, parent)
            os.close(has_session)
            return
        for end in *taken[1], has_session:
            os.close(end)
        os.read(is_session, 1)  # until the program has a session, which the test may end
        os.close(is_session)
        tell(orders, began=pid)


if __name__ == "__main__":
    __import__(sys.argv[2])
    serve(socket.socket(fileno=int(sys.argv[1])))
    program = types.ModuleType("__main__")
    program.__file__ = sys.argv[0]
    sys.modules["__main__"] = program
    with open(sys.argv[0]) as text:
        source = text.read()
    exec(compile(source, sys.argv[0], "exec"), program.__dict__)
