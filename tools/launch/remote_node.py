# tools/launch/remote_node.py - one poseidon-node on some machine, seen through the ssh that runs it.
import contextlib
import shlex
import signal
import subprocess
import threading

# Runs on each machine: ssh hands on no signals, so they come as lines on standard input, whose end means that this
# side has gone. $1 folder, $2 grace in seconds, then the program; the first line of input is the token, which the
# node reads from a descriptor, so that it is in no file and no list of processes.
REMOTE = r"""
cd "$1" || exit 126
grace=$2; shift 2
IFS= read -r token || exit 2
exec 3<&0
"$@" --token-file /dev/fd/4 4<<TOKEN 3<&- < /dev/null &
$token
TOKEN
node=$!
{ while read -r name <&3; do kill -s "$name" $node; done
  kill -s TERM $node
  while [ "$grace" -gt 0 ] && kill -0 $node; do sleep 1; grace=$((grace - 1)); done
  kill -s KILL $node; } > /dev/null 2>&1 &
wait $node; code=$?
kill $! 2> /dev/null
exit $code
"""


class Node:
    """One poseidon-node, seen through the ssh that runs it."""

    what = "poseidon-node"

    def __init__(self, name, host, words, each, options):
        self.name, self.host, self.words = name, host, words
        self.each = each  # the options that every node gets
        self.options = options
        self.process = None
        self.code = None
        self.open_streams = 0
        self.last_error = ""
        self.was_killed = False
        self.has_left = False  # the others go on without it
        self.address = None  # where other nodes reach it
        self.member = False  # it has joined the others, or they have joined it
        self.deaths = 0  # since it was a member
        self.restarts = 0

    def command(self):
        remote = shlex.join(["sh", "-c", REMOTE, "poseidon", self.options.directory, str(self.options.grace), *self.words])
        if self.host.local:
            return ["sh", "-c", "exec " + remote]
        return [*shlex.split(self.options.ssh), self.host.destination, "exec " + remote]

    def shown(self):
        """What a person would type."""
        line = shlex.join(["cd", self.options.directory]) + " && " + shlex.join([*self.words, "--token-file", "TOKEN"])
        return line if self.host.local else shlex.join([*shlex.split(self.options.ssh), self.host.destination, line])

    def come_back(self, addresses, token, events):
        """Starts it again, as one that joins the run of those who listen there."""
        self.restarts += 1
        self.join(",".join(addresses))
        self.code, self.last_error, self.has_left, self.address = None, "", False, None
        self.start(token, events)

    def join(self, addresses):
        self.words = [self.words[0], "--join", addresses, *self.each]

    def start(self, token, events):
        self.process = subprocess.Popen(self.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, start_new_session=True)  # a Ctrl-C is ours alone
        self.open_streams = 2
        for stream, is_error in ((self.process.stdout, False), (self.process.stderr, True)):
            threading.Thread(target=self._read, args=(stream, is_error, events), daemon=True).start()
        self.say(token)

    def _read(self, stream, is_error, events):
        for line in stream:
            events.put((self, is_error, line.decode(errors="replace").rstrip("\r\n")))
        events.put((self, is_error, None))

    def say(self, line):
        with contextlib.suppress(OSError):  # it has ended
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()

    @property
    def runs(self):
        return self.process is not None and self.code is None

    @property
    def trains(self):
        return self.runs and self.member

    def kill(self):
        self.was_killed = True
        self.say("KILL")

    def why(self):
        """How it ended, for people."""
        if self.code == 255 and not self.host.local:
            how = "ssh could not reach it, or lost it"
        elif self.code in (126, 127):
            how = f"{self.words[0]} cannot be run in {self.options.directory} (--program, --directory)"
        elif self.code > 128:
            how = f"poseidon-node was ended by {signal_name(self.code - 128)}"
        else:
            how = f"poseidon-node ended with code {self.code}"
        return how + (f": {self.last_error}" if self.last_error else "")


def signal_name(number):
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
