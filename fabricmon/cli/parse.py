"""``fabricmon parse``: read the text of a fabric tool and say what it means."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fabricmon.cli import USAGE_ERROR
from fabricmon.cli.document import check_document, dump, render
from fabricmon.parse.text import decode
from fabricmon.parse.tools import TOOLS, tool_named


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    kinds = ", ".join(tool.kind for tool in TOOLS)
    parser.add_argument("kind", metavar="KIND", help=f"which tool printed it: {kinds}")
    parser.add_argument(
        "file", metavar="FILE", help="what it printed; - for standard input"
    )
    parser.add_argument(
        "--stderr", metavar="FILE", help="what it printed on standard error"
    )
    parser.add_argument("--exit", metavar="N", type=int, help="exit status of the tool")
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="(text)"
    )


def run(options: argparse.Namespace) -> int:
    """Print what the text says; the exit status tells the verdict.

    0 healthy, 1 degraded, 2 down, 3 unknown, 64 for a usage error.
    """
    tool = tool_named(options.kind)
    if tool is None:
        kinds = ", ".join(row.kind for row in TOOLS)
        return _refuse(f"unknown KIND {options.kind!r}; known are {kinds}")
    try:
        stdout = _read(options.file)
        stderr = _read(options.stderr) if options.stderr is not None else ""
    except OSError as error:
        return _refuse(f"cannot read {error.filename}: {error.strerror}")
    document = check_document(tool.parse(stdout, stderr, options.exit))
    if options.format == "json":
        sys.stdout.buffer.write(dump(document))
    else:
        sys.stdout.buffer.write(render(document).encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
    return document.exit_status


def _read(name: str) -> str:
    """Return a file's text; bytes that are not UTF-8 do not matter to any tool."""
    raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    return decode(raw)


def _refuse(message: str) -> int:
    print(f"fabricmon parse: {message}", file=sys.stderr)
    return USAGE_ERROR
