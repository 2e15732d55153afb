# tests/cluster/programs.py - starts Python programs that join a cluster by themselves, with libposeidon.so.
import contextlib
import functools
import os
import sys

import cluster
import preloaded

PYTHON = os.environ.get("POSEIDON_PYTHON", "/usr/bin/python3")  # the system's, which has Debian's PyTorch
LIBRARY = cluster.BIN.parent / "lib/libposeidon.so"
PACKAGE = cluster.ROOT / "apps/python"
# Of a script that has imported poseidon.torch as poseidon: says whether a call is refused, and how.
REFUSED = """
def refused(call):
    try:
        call()
    except poseidon.PoseidonError as e:
        print("refused:", e, flush=True)
    else:
        print("not refused", flush=True)
"""


def need(*modules):
    """Ends this test as skipped where that Python lacks one of the modules."""
    skip_without(modules, preload(modules).lacks())


def skip_without(modules, why):
    if why is not None:
        print(f"skipped: {PYTHON} cannot import {', '.join(modules)}: {why}")
        sys.exit(cluster.SKIPPED)


def run_where(module):
    """For a test whose own process needs the module: goes on under that Python, or ends this test as skipped. To be called first."""
    if os.environ.get("POSEIDON_TEST_HAS") == module:
        return skip_without([module], preloaded.import_all([module]))
    os.environ.update(POSEIDON_TEST_HAS=module, PYTHONPATH=str(PACKAGE), OMP_NUM_THREADS="1")
    os.execv(PYTHON, [PYTHON, "-B", os.path.abspath(sys.argv[0]), *sys.argv[1:]])


class Programs(cluster.Cluster):
    """A cluster of programs. Its script is a text, the same for all workers; what differs is in the environment."""

    def __init__(self, whole_ends=False, **options):
        """`whole_ends`: see preloaded.py."""
        super().__init__(**options)
        if whole_ends:
            self.env[preloaded.WHOLE_ENDS] = "1"
        self._reserved = contextlib.ExitStack()

    def __exit__(self, *how):
        self._reserved.close()
        return super().__exit__(*how)

    def workers(self, script, number, *words, each=None, env=()):
        """Starts them all. `each(worker)`: more variables of a worker's environment, by its place in the order of starting;
        `env`: those of all."""
        file = self.folder / f"program{len(list(self.folder.glob('program*')))}.py"
        file.write_text(script)
        address = self._reserved.enter_context(cluster.reserved_address())
        started = []
        for place in range(number):
            variables = {"POSEIDON_LIBRARY": LIBRARY, "PYTHONPATH": PACKAGE, "OPENBLAS_NUM_THREADS": 1, **dict(env)}
            if number > 1 and place == 0:
                variables.update(POSEIDON_LISTEN=address, POSEIDON_NODES=number)
            elif number > 1:
                variables.update(POSEIDON_JOIN=address)
            if each is not None:
                variables.update(each(place))
            words_of_worker = [str(file), *[str(w) for w in words]]
            command = ["env"] + [f"{name}={value}" for name, value in variables.items()] + [PYTHON, "-B", *words_of_worker]
            process = None
            if "import torch" in script:
                process = preload(("torch",)).start(words_of_worker, self.cwd, {**self.env, **{name: str(v) for name, v in variables.items()}})
            started.append(cluster.Node(f"worker{place}", command, self.cwd, self.env, process))
            self.nodes.append(started[-1])
        return started


def python():
    """The path of a Python for whoever starts programs himself, as a launcher does: one that has PyTorch in it already."""
    return preload(("torch",)).python


@functools.cache
def preload(modules):
    return preloaded.Preloaded(PYTHON, modules, cluster.die_with_parent)


def same_digest(test, workers):
    """All have ended well, with the same line of a digest, which this returns."""
    digests = set()
    for worker in workers:
        test.assertEqual(worker.wait(), 0, worker)
        digests.add(worker.wait_for("^digest (.*)")[1])
    test.assertEqual(len(digests), 1, "\n".join(map(str, workers)))
    return digests.pop()


def each_is_refused(test, head, scripts):
    """`scripts`: by name, that of an only worker, and what "refused: " is followed by."""
    for name, (script, text) in scripts.items():
        with test.subTest(name), Programs() as c:
            (worker,) = c.workers(head + script, 1)
            worker.wait()
            test.assertRegex(worker.output, "refused: .*" + text, worker)
            test.assertNotIn("not refused", worker.output, worker)


def each_is_fine(test, head, scripts):
    """`scripts`: by name, that of an only worker, which prints "fine"."""
    for name, script in scripts.items():
        with test.subTest(name), Programs() as c:
            (worker,) = c.workers(head + script, 1)
            test.assertEqual(worker.wait(), 0, worker)
            test.assertIn("fine", worker.output, worker)
