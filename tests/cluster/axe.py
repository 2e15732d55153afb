# tests/cluster/axe.py - finds barriers for people with disabilities on a page, with axe-core.
"""    axe.require()                 # skips the test where axe-core cannot be had
    assert axe.violations(browser) == []

axe-core is no part of this repository: npm installs it into the build folder, which git ignores, when a test asks for it
first. Source: Deque's axe-core, WCAG 2.2 levels A and AA and its best practices.
"""
import functools
import json
import shutil
import subprocess
import unittest

import cluster

VERSION = "4.14.1"
FOLDER = cluster.ROOT / "build/axe"


@functools.cache
def _source():
    script = FOLDER / "node_modules/axe-core/axe.min.js"
    package = script.with_name("package.json")
    if not script.exists() or json.loads(package.read_text())["version"] != VERSION:
        if shutil.which("npm") is None:
            raise unittest.SkipTest("the page is not searched for barriers: there is no npm (Debian: apt-get install npm)")
        FOLDER.mkdir(parents=True, exist_ok=True)
        try:
            done = subprocess.run(["npm", "install", "--prefix", FOLDER, "--no-save", "--no-audit", "--no-fund", "--ignore-scripts",
                                   f"axe-core@{VERSION}"], capture_output=True, text=True, timeout=cluster.DEADLINE_S)
        except subprocess.TimeoutExpired:
            raise unittest.SkipTest("the page is not searched for barriers: npm did not answer") from None
        if done.returncode != 0 or not script.exists():
            said = next((line for line in done.stderr.splitlines() if "error" in line.lower()), "no reason")
            raise unittest.SkipTest(f"the page is not searched for barriers: npm cannot install axe-core: {said}")
    return script.read_text()


def require():
    _source()


def violations(b):
    """Of the page as it is shown now: one text per element that breaks a rule."""
    if not b.value("window.axe !== undefined"):
        b.value(_source() + "; 0")
    found = b.value("axe.run(document, { resultTypes: ['violations'] }).then(r => r.violations.flatMap(v => v.nodes.map(n => "
                    "`${v.id}: ${n.target.join(' ')}: ${n.html.slice(0, 120)}: ${n.failureSummary.replaceAll('\\n', ' ')}`)))")
    return found
