"""``fabricmon explain KIND``: what a finding means and which keys decide it."""

from __future__ import annotations

import argparse
import json
import textwrap

from fabricmon.config_manual import keys
from fabricmon.kinds import BY_SLUG, KINDS, Kind

WIDTH = 78


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "kind",
        nargs="?",
        choices=sorted(BY_SLUG),
        metavar="KIND",
        help="such as port_down; without one every kind is listed",
    )


def run(options: argparse.Namespace) -> int:
    """Print one kind, or a line for each."""
    if options.kind is None:
        for kind in KINDS:
            print(f"{kind.slug:20} {kind.meaning}")
        return 0
    print("\n".join(_explain(BY_SLUG[options.kind])))
    return 0


def _explain(kind: Kind) -> list[str]:
    life = (
        f"an event; it resolves {kind.hold_seconds:g} s after it was last seen"
        if kind.event
        else f"resolves once it was gone for {kind.clear_seconds:g} s"
    )
    if kind.holds:
        life = f"holds {kind.holds}; {life}"
    return [
        f"{kind.slug}: {kind.title}",
        "",
        *textwrap.wrap(kind.meaning, WIDTH),
        "",
        f"about     one {kind.about.value}",
        f"severity  {kind.usual}",
        *textwrap.wrap(f"life      {life}", WIDTH, subsequent_indent=" " * 10),
        f"runbook   {kind.runbook}",
        f"mode      kinds.{kind.slug}: off, shadow or on",
        *_decided_by(kind),
    ]


def _decided_by(kind: Kind) -> list[str]:
    """List the keys that decide this kind, with their defaults and reasons."""
    known = {key.path: key for key in keys()}
    lines = ["", "Decided by:"] if kind.keys else []
    for path in kind.keys:
        key = known[path]
        lines.append(f"  {path} = {json.dumps(key.default)}")
        lines += textwrap.wrap(
            key.text, WIDTH, initial_indent="      ", subsequent_indent="      "
        )
    return lines
