"""Topics of MQTT: ``fabricmon/v1/<cluster>/<node>/...``, written and read back. Pure."""

from __future__ import annotations

import re
from urllib.parse import unquote

from fabricmon.value import Value

STEM = "fabricmon/v1"
"""Name and version of the layout; another version is another tree."""

NO_CLUSTER = "default"
"""Level of a cluster without a name: an empty level would be hard to subscribe to."""

STATUS, SUMMARY, FINDING, PORT = "status", "summary", "finding", "port"

# What separates or matches levels, what escapes, and what the standard forbids or
# advises against (MQTT 3.1.1, 1.5.3 and 4.7).
_UNSAFE = re.compile(r"[/+#%\x00-\x1f\x7f-\x9f\udc80-\udcff]")
_DEEPEST = 2  # levels after those of the node, of port/DEVICE/PORT, less one
_PLACE = 2  # levels of cluster and node


def level(name: str) -> str:
    """Return a name as one level, percent-encoded where it would not be one."""
    return _UNSAFE.sub(_encode, name)


def _encode(found: re.Match[str]) -> str:
    raw = found[0].encode("utf-8", "surrogateescape")
    return "".join(f"%{byte:02X}" for byte in raw)


def root(prefix: str, cluster: str, node: str) -> str:
    """Return what every topic of a node begins with, the slash included."""
    levels = [*filter(None, (prefix.strip("/"), STEM)), level(cluster or NO_CLUSTER)]
    return "/".join((*levels, level(node))) + "/"


def port_topic(device: str, port: int) -> str:
    """Return a port's topic below the root of its node."""
    return f"{PORT}/{level(device)}/{port}"


def filter_of(prefix: str, cluster: str | None, node: str | None) -> str:
    """Return what to subscribe to for one cluster or node, or for all (None)."""
    levels = [*filter(None, (prefix.strip("/"), STEM))]
    levels += ["+" if name is None else level(name) for name in (cluster, node)]
    return "/".join((*levels, "#"))


class Place(Value, frozen=True):
    """What a topic is about: ``what`` is a word such as ``status`` or ``port``."""

    cluster: str
    node: str
    what: str
    device: str | None = None
    port: str | None = None


def parse(topic: str, prefix: str = "") -> Place | None:
    """Read a topic back; None for one that is none of these."""
    stem = "/".join(filter(None, (prefix.strip("/"), STEM))) + "/"
    if not topic.startswith(stem):
        return None
    levels = [unquote(each) for each in topic[len(stem) :].split("/")]
    if len(levels) == _PLACE + 1 and levels[-1] in {STATUS, SUMMARY, FINDING}:
        return Place(*levels)
    if len(levels) == _PLACE + 1 + _DEEPEST and levels[_PLACE] == PORT:
        return Place(*levels)
    return None
