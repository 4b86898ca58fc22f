"""``fabricmon check``: judge this node once, for people and for schedulers.

Asks the running agent, which remembers flaps that one sample cannot show; without one
it takes a sample itself and says so. Exit status: 0 healthy, 1 degraded, 2 down,
3 unknown or nothing to look at; these are also Nagios' numbers. With ``--exit`` a
scheduler gets what its own protocol wants.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from pathlib import Path

import msgspec

from fabricmon.cli import USAGE_ERROR, exits, folder, number_up_to
from fabricmon.cli.answers import from_ibstat, from_sample, nagios, reason
from fabricmon.cli.document import Document, dump, render
from fabricmon.cli.settings_table import judge, setting, with_settings
from fabricmon.cli.settings_table import render as render_settings
from fabricmon.config_load import Loaded, load
from fabricmon.errors import FabricmonError
from fabricmon.model import Verdict
from fabricmon.parse.ibstat import ibstat_report
from fabricmon.parse.report import Report
from fabricmon.parse.text import decode
from fabricmon.runtime.socket import NAME, ask

AGENT_SECONDS = 2.0
"""How long the agent may take before it counts as absent."""

LONGEST_INTERVAL = 3600.0
"""Seconds between two samples; more is an agent's work."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = (
        "exit status: 0 healthy, 1 degraded, 2 down, 3 unknown or nothing to look at "
        "(also Nagios' numbers); 64 wrong usage, 78 wrong configuration"
    )
    parser.add_argument(
        "--format",
        choices=("text", "json", "nagios", "reason"),
        help="text if none is given; reason: one line of at most 80 characters for a scheduler",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="file to read")
    parser.add_argument(
        "--root", type=folder, metavar="DIR", help="look at a node's files below DIR"
    )
    parser.add_argument(
        "--interval",
        type=number_up_to(LONGEST_INTERVAL),
        metavar="SECONDS",
        help="take two samples",
    )
    parser.add_argument(
        "--sample", action="store_true", help="take a sample, do not ask the agent"
    )
    parser.add_argument(
        "--settings",
        nargs="*",
        action="extend",
        type=setting,
        metavar="NAME=VALUE",
        help="hold settings of NCCL against a sample: these, or those of the node",
    )
    parser.add_argument("--ibstat", metavar="FILE", help="look at this output only")
    parser.add_argument("--ibstat-stderr", metavar="FILE", help="its standard error")
    parser.add_argument("--ibstat-exit", type=int, metavar="N", help="its exit status")
    exits.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Print the judgement and return the status that tells it."""
    if options.exit is not None:
        asked = options.ibstat is None and _wants_agent(options)
        return exits.run(options, lambda: _look(options)[0], asked=asked)
    if message := exits.misuse(options):
        print(f"fabricmon check: {message}", file=sys.stderr)
        return USAGE_ERROR
    try:
        document, loaded = _look(options)
    except _IbstatError as error:
        print(f"fabricmon check: {error}", file=sys.stderr)
        return USAGE_ERROR
    if options.format in {None, "text"}:
        root = (options.root or loaded.config.root).rstrip("/")
        table = document.content.get("settings")
        settings = "" if table is None else f"\n{render_settings(table)}\n"
        said = f"{render(document, root)}{settings}({_origin(options, document, loaded)})\n"
        _write(said)
    else:
        _print(document, options.format)
    return document.exit_status


class _IbstatError(FabricmonError):
    """A file that was named cannot be read."""


def look(config: Path | None = None, root: str | None = None) -> Document:
    """Judge the node as the command does without further arguments.

    Raises `FabricmonError` where there is nothing to judge by.
    """
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    options = parser.parse_args([])
    options.config, options.root = config, root
    return _look(options)[0]


def _look(options: argparse.Namespace) -> tuple[Document, Loaded]:
    """Judge the node; raises `FabricmonError` where there is nothing to judge by."""
    loaded = load(options.config, os.environ)
    node = loaded.config.node or socket.gethostname()
    if options.ibstat is not None:
        try:
            return from_ibstat(_ibstat(options), node), loaded
        except OSError as error:
            message = f"cannot read {error.filename}: {error.strerror}"
            raise _IbstatError(message) from None
    return _from_agent(options, loaded) or _sample(options, loaded, node), loaded


def _ibstat(options: argparse.Namespace) -> Report:
    def text(name: str | None) -> str:
        return "" if name is None else decode(Path(name).read_bytes())

    return ibstat_report(
        text(options.ibstat), text(options.ibstat_stderr), options.ibstat_exit
    )


def _wants_agent(options: argparse.Namespace) -> bool:
    wants_sample = options.sample or options.settings is not None
    return options.root is None and not wants_sample and options.interval is None


def _from_agent(options: argparse.Namespace, loaded: Loaded) -> Document | None:
    """Ask the agent; None if it is not wanted or does not answer."""
    if not _wants_agent(options):
        return None
    answer = ask(_socket(loaded), {"ask": "check"}, AGENT_SECONDS)
    if answer is None:
        return None
    try:
        content = msgspec.json.decode(answer, type=dict[str, object])
        verdict = Verdict[str(content["verdict"]).upper()]
    except (KeyError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return Document(content, verdict)


def _sample(options: argparse.Namespace, loaded: Loaded, node: str) -> Document:
    # Dear to import: a scheduler asks the agent once a minute, and needs none of it.
    from fabricmon.sampling import Sampler  # noqa: PLC0415

    sampler = Sampler(loaded, node, options.root)
    try:
        sampler.look(options.interval)
        document = from_sample(sampler, options.interval)
        if options.settings is None:
            return document
        return with_settings(document, judge(sampler, options.settings))
    finally:
        sampler.close()


def _socket(loaded: Loaded) -> str:
    return f"{loaded.config.run_folder.rstrip('/')}/{NAME}"


def _print(document: Document, form: str) -> None:
    if form == "json":
        _write(dump(document).decode())
    else:
        why = nagios(document) if form == "nagios" else reason(document.content)
        _write(f"{why}\n" if why else "")


def _write(text: str) -> None:
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def _origin(options: argparse.Namespace, document: Document, loaded: Loaded) -> str:
    """Say whose judgement it is, and what it cannot know."""
    if document.content["source"] == "agent":
        return "from the running agent"
    if options.ibstat is not None:
        return "from this output of ibstat alone"
    if options.interval is not None:
        return "from two samples: flaps between them are not seen"
    sampled = options.sample or options.settings is not None
    asked = options.root is None and not sampled
    why = f" because no agent answers at {_socket(loaded)}" if asked else ""
    return f"from one sample{why}: flaps and errors that grow are not seen"
