# tests/cluster/web_page.py - what a node or poseidon-graph serves, read as a browser reads it.
import json
import urllib.request

import cluster

PAGE = r"page at (http://\S+?)/"  # the line that says where; [1] has no / behind it


def text_of(url, **headers):
    cluster.pause()
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=cluster.DEADLINE_S) as answer:
        return answer.read().decode()


class Events:
    """(kind, data) of a page's stream, as they come. What was sent before the run ended can be read after it."""

    def __init__(self, page, query=""):
        cluster.pause()
        self.answer = urllib.request.urlopen(page + "/events" + query, timeout=cluster.DEADLINE_S)

    def __iter__(self):
        kind = ""
        for line in self.answer:
            text = line.decode().rstrip("\n")
            if text.startswith("event: "):
                kind = text[7:]
            elif text.startswith("data: "):
                yield kind, json.loads(text[6:])
