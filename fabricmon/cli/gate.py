"""``fabricmon gate run|check|journal|release``: few nodes out, one at a time, with care.

``run`` serves until SIGTERM. ``check`` says whether the configuration is right.
``journal`` prints what came in, was decided and was done. ``release`` gives a node back.
"""

from __future__ import annotations

import argparse
import asyncio
import getpass
import os
import signal
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from fabricmon.errors import ConfigError, HostError
from fabricmon.finding_document import rfc3339
from fabricmon.gate.journal import FILE, Entry, Journal, read_entries
from fabricmon.gate.report import NODE
from fabricmon.gate.settings_load import (
    DEFAULT_FILE,
    LoadedGate,
    check_gate_files,
    load_gate,
)
from fabricmon.runtime.logging import make_logger, printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--config", type=Path, metavar="FILE", help=f"default: {DEFAULT_FILE}"
    )
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    what.add_parser("run", parents=[shared], help="serve until SIGTERM")
    what.add_parser("check", parents=[shared], help="is the configuration right?")
    journal = what.add_parser("journal", parents=[shared], help="print the journal")
    journal.add_argument("--format", choices=("text", "json"), default="text")
    journal.add_argument("--last", type=int, metavar="N", help="the last N lines only")
    journal.add_argument("--node", metavar="NODE", help="lines about this node only")
    release = what.add_parser("release", parents=[shared], help="give a node back")
    release.add_argument("node", metavar="NODE")


def run(options: argparse.Namespace) -> int:
    """Do what is asked for; raises `ConfigError`, `HostError`."""
    loaded = load_gate(options.config)
    if options.what == "run":
        return _serve(loaded, options.config)
    if options.what == "check":
        return _check(loaded)
    if options.what == "journal":
        return _journal(loaded, options)
    return _release(loaded, options.node)


def _check(loaded: LoadedGate) -> int:
    check_gate_files(loaded)
    for warning in loaded.warnings:
        print(f"note: {warning}")
    how = "acts" if loaded.config.act else "dry run: nothing is called"
    print(f"configuration is right: {loaded.file}; {how}")
    return 0


def _journal(loaded: LoadedGate, options: argparse.Namespace) -> int:
    _require_journal(loaded, "nothing came in")
    for entry in read_entries(loaded.config.journal.folder, options.last):
        if options.node is not None and entry.node != options.node:
            continue
        print(_as_json(entry) if options.format == "json" else _as_text(entry))
    return 0


def _as_json(entry: Entry) -> str:
    content = msgspec.to_builtins(entry) | {"time": rfc3339(entry.time)}
    line = {"schema": "fabricmon.gate-journal/1"} | content
    return msgspec.json.encode(line).decode()


def _as_text(entry: Entry) -> str:
    moment = datetime.fromtimestamp(entry.time, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    words = (entry.node, entry.kind, entry.verdict, entry.reason, entry.detail)
    rest = " ".join(printable(each) for each in words if each)
    return f"{moment} {entry.what:8} {rest}".rstrip()


def _release(loaded: LoadedGate, node: str) -> int:
    if NODE.fullmatch(node) is None:
        raise ConfigError("no name of a node", key="release NODE")
    _require_journal(loaded, "no node is out")
    journal = Journal(loaded.config.journal.folder)
    try:
        journal.ask_release(node, _who(), time.time())
    finally:
        journal.close()
    print(f"{node}: given back; the gate takes note of it within seconds")
    return 0


def _require_journal(loaded: LoadedGate, told: str) -> None:
    """Raise `HostError` where the gate never ran, and say what that means."""
    folder = loaded.config.journal.folder
    if not Path(folder, FILE).is_file():
        raise HostError(f"there is no journal yet: {told}", path=folder)


def _who() -> str:
    with suppress(OSError, KeyError):
        return os.environ.get("SUDO_USER") or getpass.getuser()
    return str(os.getuid())


def _serve(loaded: LoadedGate, file: Path | None) -> int:
    from fabricmon.gate.daemon import GateService, GateSettings  # noqa: PLC0415
    from fabricmon.sinks.mqtt_threads import Abandonable  # noqa: PLC0415

    with suppress(ValueError):  # not the main thread: signals are not ours
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    check_gate_files(loaded)
    log = make_logger(loaded.config.log)
    for warning in loaded.warnings:
        log.warning("configuration_doubtful", why=warning)

    def reload() -> LoadedGate:
        fresh = load_gate(file)
        check_gate_files(fresh)
        return fresh

    async def serve() -> None:
        await GateService(GateSettings(loaded, os.environ, log, reload)).run()

    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(Abandonable(1))
        runner.run(serve())
    return 0
