"""Small pieces of PromQL as text."""

from __future__ import annotations

from textwrap import dedent, indent

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def duration(seconds: float) -> str:
    """Write a duration: ``90s``, ``5m``, ``1d``; milliseconds where it is not whole."""
    if seconds != int(seconds):
        return f"{round(seconds * 1000)}ms"
    whole = int(seconds)
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if whole and whole % size == 0:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def tidy(text: str) -> str:
    """Return an expression of several lines without its margin."""
    lines = dedent(text).strip("\n").splitlines()
    return "\n".join(line.rstrip() for line in lines if line.strip())


def within(text: str, spaces: int = 2) -> str:
    """Return an expression moved to the right, to stand inside another."""
    return indent(text, " " * spaces)


def join_lines(*parts: str) -> str:
    """Put parts of an expression below each other, leaving out empty ones."""
    return "\n".join(part for part in parts if part.strip())
