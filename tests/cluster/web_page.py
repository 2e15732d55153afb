# tests/cluster/web_page.py - what a node or poseidon-graph serves, read as a browser reads it.
import json
import urllib.request

PAGE = r"page at (http://\S+?)/"  # the line that says where; [1] has no / behind it


def text_of(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
        return answer.read().decode()


class Events:
    """(kind, data) of a page's stream, as they come."""

    def __init__(self, page, query=""):
        self.answer = urllib.request.urlopen(page + "/events" + query, timeout=30)

    def __iter__(self):
        kind = ""
        for line in self.answer:
            text = line.decode().rstrip("\n")
            if text.startswith("event: "):
                kind = text[7:]
            elif text.startswith("data: "):
                yield kind, json.loads(text[6:])
