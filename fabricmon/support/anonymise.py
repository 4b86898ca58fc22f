"""Replaces names and addresses in documents and in text, everywhere alike. Pure.

In a document the key says what a value is; in text only names that are known can be
found, and what has the shape of an address. So the names are gathered first, from every
document, and then replaced in all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from fabricmon.support.pseudonyms import Pseudonyms

KINDS = {
    "node": "host",
    "host": "host",
    "hostname": "host",
    "peer": "host",
    "leaf": "leaf",
    "rack": "rack",
    "nvlink_domain": "rack",
    "cable": "cable",
    "cluster": "cluster",
    "topic_prefix": "cluster",
    "job": "job",
    "comm": "comm",
    "user": "user",
    "username": "user",
    "serial": "serial",
    "client_id": "host",
}
"""What the value of a key is a name of."""

_GUIDS = frozenset({"guid", "node_guid", "sys_image_guid", "port_guid"})
_NAMED_KEYS = frozenset({"peers", "nodes"})  # maps keyed by names
_PLAIN = frozenset(
    {"action", "board_id", "errno", "fw", "fw_ver", "hca_type", "kind", "part", "role",
     "runbook", "schema", "severity", "state", "unit", "vendor", "verdict", "version"}
)  # fmt: skip
"""Keys and files whose values are words or versions, never names."""

_FIELD = re.compile(r"[a-z][a-z0-9_]{0,63}")
_RESERVED = frozenset(
    {"bus", "class", "counters", "dev", "device", "devices", "fabricmon", "hw_counters",
     "infiniband", "kernel", "localhost", "module", "net", "node", "none", "pci", "port",
     "ports", "proc", "rate", "root", "run", "state", "sys", "system", "true", "false"}
)  # fmt: skip
"""Words of paths and formats: in prose nobody can tell a name like these from them."""

_SHORTEST = 3
_SHORTEST_NUMBER = 4
_DOMAIN = r"(?:\.[A-Za-z0-9-]{1,63}){0,8}"
_HEX = "[0-9A-Fa-f]"
_SHAPES = rf"""
  (?P<before>/(?:home|users|Users)/)(?P<owner>[^/\s"',;:]{{1,64}})
| (?P<word>(?<![A-Za-z0-9])(?:job|uid)_)(?P<number>\d{{1,20}})
| (?P<key>(?<![A-Za-z0-9_])(?:job|job_?id|peer|leaf|user|owner)["']?\s{{0,2}}[=:]\s{{0,2}}
    ["']?)(?P<value>[^\s"',;}}\]]{{1,256}})
| (?P<uuid>(?<!{_HEX}){_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}(?!{_HEX}))
| (?P<bytes>(?<![0-9A-Fa-f:])(?:{_HEX}{{2}}:){{5,31}}{_HEX}{{2}}(?![0-9A-Fa-f:]))
| (?P<guid>(?<![0-9A-Fa-f:])(?:{_HEX}{{4}}:){{3}}{_HEX}{{4}}(?![0-9A-Fa-f:]))
| (?P<v6>(?<![\w:.])(?:{_HEX}{{0,4}}:){{2,7}}[0-9A-Fa-f.]{{0,15}}(?![\w:]))
| (?P<v4>(?<![\w.])(?:\d{{1,3}}\.){{3}}\d{{1,3}}(?![\w]|\.\d))
| (?P<zero_x>(?<![0-9A-Za-z])0[xX])(?P<after>{_HEX}{{32}}|{_HEX}{{16}})(?![0-9A-Za-z])
| (?P<digits>(?<![0-9A-Za-z])(?:{_HEX}{{32}}|{_HEX}{{16}})(?![0-9A-Za-z]))
"""
_OWN_USERS = frozenset({"fabricmon", "root", "%i"})
_WORD_KINDS = {"job": "job", "uid": "user"}
_KEY_KINDS = {"peer": "host", "leaf": "leaf", "user": "user", "owner": "user"}


class Anonymiser:
    """Replaces what it is told of, and what looks like an address."""

    def __init__(self, pseudonyms: Pseudonyms) -> None:
        """Know no name yet."""
        self._codes = pseudonyms
        self._kinds: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    def learn(self, kind: str, names: Iterable[str]) -> None:
        """Take names of one kind; the first kind of a name stays."""
        for name in names:
            short = name.partition(".")[0] if kind == "host" else name
            for each in (name, short):
                if each and not _is_address(each):
                    self._kinds.setdefault(each.lower(), kind)
        self._pattern = None

    def learn_from(self, tree: Any) -> None:
        """Take the names that a document's keys say are names."""
        for kind, name in _names(tree, ""):
            self.learn(kind, (name,))

    def value(self, tree: Any, key: str = "") -> Any:
        """Return a document with every name and address replaced."""
        if isinstance(tree, dict):
            named = key in _NAMED_KEYS
            return {
                self._key(name, named=named): self._named("host", each)
                if named and isinstance(each, str)
                else self.value(each, str(name))
                for name, each in tree.items()
            }
        if isinstance(tree, list | tuple):
            return [
                self.value(each, "" if isinstance(each, dict) else key) for each in tree
            ]
        if isinstance(tree, str):
            return self._string(tree, key)
        if key == "job" and isinstance(tree, int) and not isinstance(tree, bool):
            return self._codes.name("job", str(tree))
        return tree

    def text(self, text: str) -> str:
        """Return prose, a path or a file's content with names and addresses replaced."""
        if self._pattern is None:
            self._pattern = self._compiled()
        return self._pattern.sub(self._replacement, text)

    def _key(self, name: Any, *, named: bool) -> Any:
        if not isinstance(name, str) or (_FIELD.fullmatch(name) and not named):
            return name
        return self._named("host", name) if named else self.text(name)

    def _string(self, text: str, key: str) -> str:
        place = key.rpartition("/")[2]
        if place in _PLAIN or not text:
            return text
        if key in KINDS:
            return self._named(KINDS[key], text)
        if place in _GUIDS and re.fullmatch(rf"{_HEX}{{16}}\s?", text):
            return self._codes.guid(text.strip()) + text[16:]
        if text.strip().isdecimal() and "/" in key:
            return text  # a counter's file, not a job's number
        return self.text(text)

    def _named(self, kind: str, name: str) -> str:
        """Return the code of what is a name as a whole, or an address."""
        coded = self.text(name)
        if _is_address(name) or (coded != name and name.lower() not in self._kinds):
            return coded
        kind = self._kinds.get(name.lower(), kind)
        return self._codes.name(kind, _first(kind, name))

    def _compiled(self) -> re.Pattern[str]:
        found = sorted(filter(_is_telling, self._kinds), key=len, reverse=True)
        if not found:
            return re.compile(_SHAPES, re.VERBOSE | re.IGNORECASE)
        names = "|".join(re.escape(name) for name in found)
        known = rf"(?P<known>(?<![A-Za-z0-9])(?:{names})(?![A-Za-z0-9]))"
        tail = rf"(?P<domain>{_DOMAIN})"
        # A name may hold blanks, which a verbose pattern needs escaped: they are.
        return re.compile(f"{known}{tail}|{_SHAPES}", re.VERBOSE | re.IGNORECASE)

    def _replacement(self, found: re.Match[str]) -> str:
        groups = found.groupdict()
        text = found[0]
        if groups.get("known") is not None:
            name = groups["known"].lower()
            kind = self._kinds[name]
            tail = "" if kind == "host" else groups["domain"]
            return self._codes.name(kind, _first(kind, name)) + tail
        if (owner := groups["owner"]) is not None:
            return groups["before"] + self._name("user", owner)
        if (number := groups["number"]) is not None:
            kind = _WORD_KINDS[groups["word"][:-1].lower()]
            return groups["word"] + self._codes.name(kind, number)
        if (value := groups["value"]) is not None:
            return groups["key"] + self._assigned(groups["key"].lower(), value)
        return self._shape(groups, text)

    def _assigned(self, key: str, value: str) -> str:
        word = re.match(r"[a-z]+", key)
        kind = _KEY_KINDS.get(word[0], "job") if word else "job"
        return self._named(kind, value) if value.lower() not in _OWN_USERS else value

    def _name(self, kind: str, name: str) -> str:
        return name if name.lower() in _OWN_USERS else self._codes.name(kind, name)

    def _shape(self, groups: dict[str, str | None], text: str) -> str:
        """Return the code of what has the shape of an address, text that has none."""
        coded = text
        if groups["uuid"]:
            coded = self._codes.uuid(text)
        elif groups["bytes"]:
            coded = self._codes.bytes_of(text)
        elif groups["guid"]:
            whole = self._codes.guid(text.replace(":", ""))
            coded = ":".join(whole[at : at + 4] for at in range(0, 16, 4))
        elif groups["after"] is not None:
            coded = f"{groups['zero_x']}{self._codes.digits(groups['after'])}"
        elif groups["digits"]:
            is_count = text.isdecimal() and len(text) == 16  # noqa: PLR2004 - of a GUID
            coded = text if is_count else self._codes.digits(text)
        else:
            with suppress(ValueError):  # a time, a version
                coded = self._codes.address(text)
        return coded


def _names(tree: Any, key: str) -> Iterator[tuple[str, str]]:
    """Go through a document's names with their kinds."""
    if isinstance(tree, dict):
        for name, each in tree.items():
            if key in _NAMED_KEYS and isinstance(name, str):
                yield "host", name
                if isinstance(each, str):
                    yield "host", each
            yield from _names(each, str(name))
    elif isinstance(tree, list | tuple):
        for each in tree:
            yield from _names(each, "" if isinstance(each, dict) else key)
    elif key in KINDS and tree and isinstance(tree, str | int) and tree is not True:
        yield KINDS[key], str(tree)


def _first(kind: str, name: str) -> str:
    """Return what a name is known by: a host by the first part of it."""
    return name.partition(".")[0] if kind == "host" else name


def _is_telling(name: str) -> bool:
    """Tell whether a name can be found in prose without taking everything for it."""
    shortest = _SHORTEST_NUMBER if name.isdecimal() else _SHORTEST
    return len(name) >= shortest and name not in _RESERVED


def _is_address(text: str) -> bool:
    return re.fullmatch(r"[0-9A-Fa-f:.]{2,45}", text) is not None and (
        text.count(".") == 3 or ":" in text  # noqa: PLR2004 - of an IPv4 address
    )
