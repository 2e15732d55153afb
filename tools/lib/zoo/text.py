# tools/lib/zoo/text.py - messages in the text format of Protocol Buffers, laid out as a person would write them.
"""A message is a dict; its values are numbers, bools, strings, Words, messages, or lists of these (repeated fields)."""

WIDTH = 100  # columns, as in our C++


class Word(str):
    """A value of an enum, which the format writes without quotes."""


def scalar(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and not isinstance(value, Word):
        return f'"{value}"'
    return str(value)


def fields(message):
    """(name, value) in order; a list is one pair per element."""
    for name, value in message.items():
        for one in value if isinstance(value, list) else [value]:
            yield name, one


def one_line(name, value):
    if not isinstance(value, dict):
        return f"{name}: {scalar(value)}"
    return " ".join([name, "{", *(one_line(*field) for field in fields(value)), "}"])


def lines(name, value, indent=0):
    """The field as lines without their ends: a message is one line if that is short enough."""
    line = " " * indent + one_line(name, value)
    if not isinstance(value, dict) or (len(line) <= WIDTH and indent > 0):
        return [line]
    inner = [line for field in fields(value) for line in lines(*field, indent + 2)]
    return [" " * indent + name + " {", *inner, " " * indent + "}"]
