# tests/cluster/preloaded.py - starts Python programs from a process that has imported PyTorch already.
"""A worker of a test trains for hundredths of a second, and PyTorch takes more than a second of processor time to import. So one process
imports it, and forks for each program, which then runs as `python3 program.py WORD ...` does: in a session of its own, with its own
environment, folder and pipes. The variables that PyTorch's libraries read as they are loaded are the same for all programs:
THREADS. The process and its programs end with the test.

To take PyTorch apart again costs more than half a second of processor time, twenty times what a small training costs. So a program that has come to its end
ends at once, after its threads, the functions that it has registered with atexit, and its output. POSEIDON_TEST_WHOLE_ENDS=1
in its environment lets Python take everything apart as it does for a user.

    loader = Preloaded("/usr/bin/python3", ["torch"])
    print(loader.lacks())                                      # None, or why a module cannot be imported
    process = loader.start(["program.py", "word"], cwd, env)   # as a subprocess.Popen: pid, stdout, stderr, poll(), wait()
    subprocess.run([loader.python, "program.py", "word"])      # for whoever starts programs himself, as a launcher does

`python` stands in for Python: it has the process fork, gives the program its standard output and error, passes signals on, and ends as
the program does. A program whose stand-in is killed is killed.
"""
import array
import atexit
import contextlib
import ctypes
import gc
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types

THREADS = {"OPENBLAS_NUM_THREADS": "1"}
WHOLE_ENDS = "POSEIDON_TEST_WHOLE_ENDS"


STAND_IN = """#!{python} -SE
import array, json, os, signal, socket, sys
words = [w for w in sys.argv[1:] if w != "-B"]
if words[0].startswith("-"):
    os.execv("{python}", ["{python}", *sys.argv[1:]])
passed_on = signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1
signal.pthread_sigmask(signal.SIG_BLOCK, passed_on)
here = socket.socket(socket.AF_UNIX)
here.connect("{socket}")
order = json.dumps({{"words": words, "cwd": os.getcwd(), "env": dict(os.environ)}}).encode() + b"\\n"
here.sendmsg([order[:1]], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [1, 2]))])
here.sendall(order[1:])
lines = here.makefile("r")
pid = json.loads(lines.readline())["began"]
for number in passed_on:
    signal.signal(number, lambda number, _: os.kill(pid, number))
signal.pthread_sigmask(signal.SIG_UNBLOCK, passed_on)
code = json.loads(lines.readline())["code"]
if code < 0:
    signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
    os.kill(os.getpid(), -code)
os._exit(code)
"""


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
    def __init__(self, python, modules, preexec):
        here, there = socket.socketpair()
        self._folder = tempfile.TemporaryDirectory(prefix="poseidon-test-python-", ignore_cleanup_errors=True)  # programs that die may still write
        self.python = pathlib.Path(self._folder.name, "python3")
        self.python.write_text(STAND_IN.format(python=python, socket=f"{self._folder.name}/socket"))
        self.python.chmod(0o700)
        with there, socket.socket(socket.AF_UNIX) as guests:
            guests.bind(f"{self._folder.name}/socket")
            guests.listen(64)
            passed = [there.fileno(), guests.fileno()]
            self._process = subprocess.Popen([python, "-B", __file__, *map(str, passed), self._folder.name, *modules], env={**os.environ, **THREADS},
                                             stdin=subprocess.DEVNULL, pass_fds=passed, preexec_fn=preexec)
        self._socket = here
        self._lines = here.makefile("r")
        self._codes, self._pids, self._loaded = {}, [], []
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
        self._folder.cleanup()

    def lacks(self):
        """Returns once the modules are imported, or cannot be: then why."""
        with self._changed:
            self._changed.wait_for(lambda: self._loaded or self._process.poll() is not None)
            return self._loaded[0] if self._loaded else f"it ended with exit code {self._process.poll()}"

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
        with contextlib.suppress(ConnectionResetError):  # it has ended before it read all that it was told
            for line in self._lines:
                self._hear(json.loads(line))
        self._process.wait()
        with self._changed:
            self._changed.notify_all()

    def _hear(self, said):
        with self._changed:
            if "lacks" in said:
                self._loaded.append(said["lacks"])
            elif "began" in said:
                self._pids.append(said["began"])
            else:
                self._codes[said["ended"]] = said["code"]
            self._changed.notify_all()


# -- the process that forks ------------------------------------------------------------------------------------

def import_all(modules):
    """None, or why one of them cannot be imported."""
    try:
        for module in modules:
            __import__(module)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return None


def tell(to, **said):
    with contextlib.suppress(BrokenPipeError):
        to.sendall(json.dumps(said).encode() + b"\n")


def take_order(orders):
    """An order and its two pipes; None where the other side has ended."""
    try:
        first, control, _, _ = orders.recvmsg(1, socket.CMSG_SPACE(2 * array.array("i").itemsize))
    except ConnectionResetError:  # a stand-in was killed before it had read what it was told
        return None
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


class Server:
    """Forks for the test, which is one connection, and for each stand-in, which is another one."""

    def __init__(self, test, guests):
        self._test, self._guests = test, guests
        self._asked = {}  # a program that runs -> the connection that asked for it
        self._bell, self._ring = os.pipe2(os.O_NONBLOCK)
        signal.set_wakeup_fd(self._ring)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._open = [test, guests, self._bell]

    def serve(self):
        """Returns in each program that it forks."""
        while True:
            for ready in select.select(self._open, [], [])[0]:
                if ready is self._bell:
                    os.read(self._bell, 4096)
                    self._tell_of_ends()
                elif ready is self._guests:
                    self._open.append(self._guests.accept()[0])
                elif self._is_forked(ready):
                    return

    def _tell_of_ends(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            tell(self._asked.pop(pid), ended=pid, code=os.waitstatus_to_exitcode(status))

    def _is_forked(self, connection):
        """Takes an order. Whether this is the program."""
        taken = take_order(connection)
        if taken is None:
            if connection is self._test:
                os._exit(0)
            self._open.remove(connection)
            for pid in [pid for pid, asker in self._asked.items() if asker is connection]:
                os.killpg(pid, signal.SIGKILL)
            return False
        parent = os.getpid()
        is_session, has_session = os.pipe()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for inherited in self._open:
                if inherited is not self._bell:
                    inherited.close()
            for end in self._bell, self._ring, is_session:
                os.close(end)
            become(*taken, parent)
            os.close(has_session)
            return True
        for end in *taken[1], has_session:
            os.close(end)
        os.read(is_session, 1)  # until the program has a session, which the test may end
        os.close(is_session)
        self._asked[pid] = connection
        tell(connection, began=pid)
        return False


def run(code, program):
    """The exit code of a program, in the words of sys.exit()."""
    try:
        exec(code, program.__dict__)
    except SystemExit as e:
        return e.code
    except Exception as e:
        sys.last_type, sys.last_value, sys.last_traceback = type(e), e, e.__traceback__.tb_next
        sys.excepthook(sys.last_type, sys.last_value, sys.last_traceback)
        return 1
    return None


def end(code):
    """What Python does first as a program ends, and nothing of what it does then."""
    threading._shutdown()
    atexit._run_exitfuncs()
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit((code or 0) & 0xff)


if __name__ == "__main__":
    test, guests = (socket.socket(fileno=int(number)) for number in sys.argv[1:3])
    compiled = sys.argv[3]
    lacks = import_all(sys.argv[4:])
    tell(test, lacks=lacks)
    if lacks is not None:
        sys.exit(1)
    gc.collect()
    gc.freeze()  # else the collector of each program writes to all objects, and the kernel copies their pages
    sys.pycache_prefix, sys.dont_write_bytecode = compiled, False  # the first program compiles what it imports, for all
    Server(test, guests).serve()
    program = types.ModuleType("__main__")
    program.__file__ = sys.argv[0]
    sys.modules["__main__"] = program
    with open(sys.argv[0]) as text:
        source = text.read()
    code = run(compile(source, sys.argv[0], "exec"), program)
    if os.environ.get(WHOLE_ENDS):
        sys.exit(code)
    end(code)
