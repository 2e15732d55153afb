# tests/cluster/browser.py - Chromium without a window, driven over its debugging protocol with nothing but Python.
"""    with Browser(width=1440, height=900) as b:
        b.open("http://127.0.0.1:7680/")
        b.wait_for("poseidon.store.ticks > 3", "ticks come")
        assert b.value("document.title") == "..."
        b.picture("page.png")
        assert b.complaints() == []

Skips the test, with the package's name, where there is no Chromium. Source: chromedevtools.github.io, RFC 6455.
"""
import base64
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest
import urllib.request

import cluster

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


class Browser:
    def __init__(self, width=1440, height=900, dark=False, calm=False):
        program = next((p for p in map(shutil.which, PROGRAMS) if p), None)
        if program is None:
            raise unittest.SkipTest("the page is not looked at: there is no Chromium (Debian: apt-get install chromium)")
        self.folder = tempfile.mkdtemp(prefix="poseidon-browser-")
        # No sandbox: tests run as root in containers, and look at nothing but our own page.
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0",
             f"--window-size={width},{height}", "--hide-scrollbars", f"--user-data-dir={self.folder}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=cluster.die_with_parent)
        try:
            port_file = pathlib.Path(self.folder, "DevToolsActivePort")
            cluster.wait_until(lambda: port_file.exists() and port_file.read_text().count("\n") >= 1, "Chromium listens")
            port = port_file.read_text().splitlines()[0]
            def pages():
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=cluster.DEADLINE_S) as answer:
                    return [t["webSocketDebuggerUrl"] for t in json.load(answer) if t["type"] == "page"]
            cluster.wait_until(pages, "Chromium has a page")
            self._connect(pages()[0])
        except BaseException:
            self.close()
            raise
        self._number = 0
        self._said = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.look(dark, calm)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if hasattr(self, "socket"):
            self.socket.close()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- websocket: text frames, ours masked

    def _connect(self, url):
        host, path = url.removeprefix("ws://").split("/", 1)
        name, port = host.split(":")
        self.socket = socket.create_connection((name, int(port)), timeout=cluster.DEADLINE_S)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        self._buffer = b""
        head = self._until(b"\r\n\r\n")
        assert b" 101 " in head.split(b"\r\n")[0], head

    def _until(self, mark):
        while mark not in self._buffer:
            self._more()
        head, self._buffer = self._buffer.split(mark, 1)
        return head

    def _more(self):
        data = self.socket.recv(1 << 20)
        if not data:
            raise AssertionError("Chromium closed the connection")
        self._buffer += data

    def _bytes(self, n):
        while len(self._buffer) < n:
            self._more()
        out, self._buffer = self._buffer[:n], self._buffer[n:]
        return out

    def _send(self, text):
        data = text.encode()
        size = len(data)
        head = b"\x81" + (bytes([0x80 | size]) if size < 126 else
                          b"\xfe" + struct.pack(">H", size) if size < 65536 else b"\xff" + struct.pack(">Q", size))
        self.socket.sendall(head + b"\0\0\0\0" + data)  # a mask of zeros leaves the bytes as they are

    def _receive(self):
        message = b""
        while True:
            first, second = self._bytes(2)
            size = second & 0x7f
            if size == 126:
                size = struct.unpack(">H", self._bytes(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self._bytes(8))[0]
            data = self._bytes(size)
            if first & 0x0f in (0, 1):
                message += data
                if first & 0x80:
                    return json.loads(message)

    def call(self, method, **parameters):
        """One command; events that come meanwhile are kept."""
        self._number += 1
        self._send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            m = self._receive()
            if m.get("id") == self._number:
                if "error" in m:
                    raise AssertionError(f"{method}: {m['error']}")
                return m["result"]
            self._said.append(m)

    # -- what tests use

    def look(self, dark=False, calm=False):
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if calm else "no-preference"}])

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete' && window.poseidon !== undefined", f"{url} is loaded")

    def value(self, expression):
        """What a JavaScript expression, or the promise that it returns, evaluates to."""
        r = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise AssertionError(f"{expression}: {r['exceptionDetails'].get('exception', {}).get('description', r)}")
        return r["result"].get("value")

    def wait_for(self, expression, what, seconds=cluster.PATIENCE_S, shown="document.title"):
        """`shown`: what a failure quotes."""
        cluster.pause()
        deadline = time.monotonic() + seconds * cluster.SLACK
        while not self.value(f"Boolean({expression})"):
            if time.monotonic() > deadline:
                raise AssertionError(f"after {seconds} s still not: {what}; shown: {self.value(shown)}; {self.complaints()}")
            time.sleep(0.03)

    def wait_until_drawn(self):
        """Past the next frame: what is drawn in it was asked for before this call."""
        self.wait_for("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(true))))", "drawn")

    def click(self, selector):
        """With a mouse, in the middle of the element. What moves away meanwhile, as when a line above it gets longer, is aimed at again."""
        selector = json.dumps(selector)
        self.value("(window.aimed ?? document.addEventListener('click', e => { window.hit ||= e.target.closest(window.aimed) !== null; }, true),"
                   f" window.hit = false, window.aimed = {selector})")

        def hit():
            x, y, in_sight = self.value(f"""(() => {{ const aimed = document.querySelector({selector}), r = aimed.getBoundingClientRect();
                const x = r.x + r.width / 2, y = r.y + r.height / 2; return [x, y, aimed.contains(document.elementFromPoint(x, y))]; }})()""")
            for kind in ("mouseMoved", "mousePressed", "mouseReleased") if in_sight else ():
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="none" if kind == "mouseMoved" else "left", clickCount=1)
            return self.value("window.hit")
        cluster.wait_until(hit, f"{selector} is clicked")
    def press(self, key, text=None):
        codes = {"Enter": 13, "Escape": 27, "ArrowRight": 39, "ArrowLeft": 37, "ArrowDown": 40, "ArrowUp": 38, "Tab": 9}
        more = {"text": text} if text else {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=codes.get(key, 0), **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=codes.get(key, 0))

    def type(self, text):
        self.call("Input.insertText", text=text)

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def complaints(self):
        """Exceptions, errors, and requests that the content policy forbade."""
        self.value("0")
        out = []
        for m in self._said:
            if m.get("method") == "Runtime.exceptionThrown":
                d = m["params"]["exceptionDetails"]
                out.append(d.get("exception", {}).get("description", d["text"]))
            elif m.get("method") == "Log.entryAdded" and m["params"]["entry"]["level"] == "error":
                out.append(f"{m['params']['entry']['text']} {m['params']['entry'].get('url', '')}")
            elif m.get("method") == "Runtime.consoleAPICalled" and m["params"]["type"] == "error":
                out.append(str([a.get("value") for a in m["params"]["args"]]))
        return out
