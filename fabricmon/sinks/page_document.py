"""The status page as one document without outside resources, and its headers."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib.resources import files
from urllib.parse import quote

from fabricmon import __version__
from fabricmon.model import Snapshot, Verdict
from fabricmon.sinks.http_message import Header
from fabricmon.sinks.page_findings import findings
from fabricmon.sinks.page_parts import blind_spots, footer, header, notices, sources
from fabricmon.sinks.page_ports import ports
from fabricmon.sinks.page_words import text

_COLOURS = {
    Verdict.HEALTHY: "#1f9d63",
    Verdict.UNKNOWN: "#808a97",
    Verdict.DEGRADED: "#e08a1e",
    Verdict.DOWN: "#d92d3a",
}


@lru_cache(maxsize=2)
def _asset(name: str) -> str:
    return files("fabricmon.sinks").joinpath(name).read_text("utf-8")


def document(snapshot: Snapshot, silent_seconds: float = 0) -> str:
    """Return the whole page; its script fetches `fragment` again and again.

    ``silent_seconds`` is how long the agent's loop has not turned, 0 if it does.
    """
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{_title(snapshot)}</title>"
        f'<link rel="icon" id="icon" href="{_icon(snapshot.verdict)}">'
        f"<style>{_asset('page.css')}</style>"
        '<noscript><meta http-equiv="refresh" content="5"></noscript></head><body>'
        '<p id="late" class="notice bad" role="alert" hidden></p>'
        f"<main>{fragment(snapshot, silent_seconds)}</main>"
        f"<script>{_asset('page.js')}</script></body></html>"
    )


def fragment(snapshot: Snapshot, silent_seconds: float = 0) -> str:
    """Return what changes from moment to moment, as one element."""
    return (
        f'<div id="node" data-title="{_title(snapshot)}" data-revision="{_revision()}" '
        f'data-icon="{_icon(snapshot.verdict)}">'
        f"{header(snapshot)}{notices(snapshot, silent_seconds)}{findings(snapshot)}"
        f"{ports(snapshot)}{sources(snapshot)}{blind_spots(snapshot)}"
        f"{footer(snapshot)}</div>"
    )


@lru_cache(maxsize=1)
def security_headers() -> tuple[Header, ...]:
    """Return headers that let the page's own style and script run, and nothing else."""
    policy = (
        "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; "
        f"style-src {_hash('page.css')}; script-src {_hash('page.js')}"
    )
    return (Header("Content-Security-Policy", policy),)


def _title(snapshot: Snapshot) -> str:
    return text(f"{snapshot.verdict.word} - {snapshot.node}")


@lru_cache(maxsize=len(Verdict))
def _icon(verdict: Verdict) -> str:
    """Return a dot in the colour of the verdict, for the browser's tab."""
    image = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">'
        f'<circle cx="8" cy="8" r="7" fill="{_COLOURS[verdict]}"/></svg>'
    )
    return f"data:image/svg+xml,{quote(image)}"


@lru_cache(maxsize=1)
def _revision() -> str:
    """Return what changes with the program: an open page of an older one reloads."""
    parts = (__version__, _asset("page.css"), _asset("page.js"))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _hash(name: str) -> str:
    digest = hashlib.sha256(_asset(name).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
