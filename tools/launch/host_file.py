# tools/launch/host_file.py - which machines a run is to use: the files that tools/launch/ssh and Petuum read.
from __future__ import annotations  # Python 3.9 has no int | None

import argparse
import contextlib
import dataclasses
import ipaddress
import re


class WrongUse(Exception):
    """What is wrong, one line or several; exit code 2."""


class Unclear(argparse.ArgumentTypeError):
    """One word that is not understood, and why."""


@dataclasses.dataclass
class Host:
    destination: str  # for ssh: [user@]address
    address: str
    port: int | None
    slots: int = 1

    @property
    def local(self):
        with contextlib.suppress(ValueError):
            return ipaddress.ip_address(self.address).is_loopback
        return self.address == "localhost"


def port_of(text):
    if not re.fullmatch(r"\d{1,5}", text) or int(text) > 65535:
        raise Unclear(f'"{text}" is no port: a number from 0 to 65535 is needed')
    return int(text)


def address_of(text):
    """A name or an address as ssh takes it: one that begins with a dash would be an option."""
    with contextlib.suppress(ValueError):
        return str(ipaddress.ip_address(text))
    if not re.fullmatch(r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?", text):
        raise Unclear(f'"{text}" is neither a name nor an address')
    if re.fullmatch(r"[\d.]+", text):
        raise Unclear(f'"{text}" is no address: four numbers from 0 to 255 are needed')
    return text


def petuum_host(words):
    """`id ip port`."""
    address = address_of(words[1])
    return Host(address, address, port_of(words[2]))


def plain_host(words):
    """`[user@]host[:port] [slots=N]`."""
    user, at, rest = words[0].rpartition("@")
    if at and not re.fullmatch(r"\w[\w.-]*", user):
        raise Unclear(f'"{user}" is no name of a user')
    parts = re.fullmatch(r"(?:\[([^]]*)\]|([^:]*)):([^:]*)|\[([^]]*)\]", rest)
    host = next(p for p in (parts[1], parts[2], parts[4]) if p is not None) if parts else rest
    address = address_of(host)
    port = port_of(parts[3]) if parts and parts[3] is not None else None
    slots = 1
    for word in words[1:]:
        found = re.fullmatch(r"slots=([1-9]\d{0,3})", word)
        if not found:
            raise Unclear(f'"{word}" is not understood: a line is `host[:port] [slots=N]`, or `id ip port`')
        slots = int(found[1])
    return Host(user + at + address, address, port, slots)


def read_hosts(path):
    """Throws WrongUse with a line for each bad one."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise WrongUse(f"{path}: cannot be read: {getattr(e, 'strerror', None) or e}") from None
    hosts, numbered, plain, errors = [], {}, 0, []
    for number, line in enumerate(lines, 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        try:
            if len(words) == 3 and words[0].isdecimal():
                if int(words[0]) in numbered:
                    raise Unclear(f"id {words[0]} is there twice, first in line {numbered[int(words[0])][0]}")
                if plain:
                    raise Unclear("`id ip port` after lines of the other form: write all lines in one form")
                numbered[int(words[0])] = (number, petuum_host(words))
            else:
                if numbered:
                    raise Unclear("another form after lines `id ip port`: write all lines in one form")
                plain += 1
                hosts.append(plain_host(words))
        except Unclear as e:
            errors.append(f"{path}:{number}: {e}")
    hosts = hosts or [numbered[k][1] for k in sorted(numbered)]
    if errors:
        raise WrongUse("\n".join(errors))
    if not hosts:
        raise WrongUse(f"{path}: names no host. Write one a line: `host[:port] [slots=N]`")
    return hosts
