"""How summaries are worded: their length, and times for people."""

from __future__ import annotations

SUMMARY_LENGTH = 120
"""Longest summary that sinks accept, in characters."""

_MINUTE, _HOUR = 60.0, 3600.0


def span(seconds: float) -> str:
    """Write a time for a human: ``45 s``, ``12 min``, ``2.1 h``."""
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:.1f} h"


def one_line(text: str) -> str:
    """Cut a summary to the length that sinks accept.

    A name in it may come from a log: what a terminal would obey, also to turn the
    direction of text, is shown as a question mark.
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() else "?" for c in text)
    short = text[: SUMMARY_LENGTH - 1].rstrip() + "…"
    return text if len(text) <= SUMMARY_LENGTH else short
