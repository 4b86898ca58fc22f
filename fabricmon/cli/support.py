"""``fabricmon support OUT.tar.gz``: one bundle for somebody who was not there.

It holds the configuration without secrets, the last minutes that the agent kept and what
this node shows for a minute as one trace, findings, the end of the log, versions and the
unit. `fabricmon replay` plays its trace.
"""

from __future__ import annotations

import argparse
import os
import pwd
import secrets
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import msgspec

from fabricmon import __version__
from fabricmon.cli import FAILED, USAGE_ERROR, folder, number_up_to
from fabricmon.cli.check import look
from fabricmon.cli.record import record_node
from fabricmon.config import Config
from fabricmon.config_load import Loaded, load
from fabricmon.driving import live_host
from fabricmon.errors import FabricmonError
from fabricmon.host.record import RecordingHost
from fabricmon.registry import SOURCES
from fabricmon.support.anonymise import Anonymiser
from fabricmon.support.bundle import MOST_TRACE_BYTES, TRACE, Bundle, Manifest
from fabricmon.support.history import (
    LastMinutes,
    job_paths,
    plan_paths,
    take_history,
)
from fabricmon.support.joining import JoinedTraces, Source
from fabricmon.support.parts import Parts
from fabricmon.support.pseudonyms import Pseudonyms
from fabricmon.support.secrets import without_secrets
from fabricmon.support.trace import JOB_SOURCES, LOG_SOURCES, names_of, rewrite

LONGEST_SECONDS = 3600.0
FIRST_PERSON = 1000
"""User ids from here on are people's; below are services'."""

_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class _Wish:
    """What is to be in the bundle, and what not."""

    seconds: float
    with_logs: bool
    anonymiser: Anonymiser | None
    root: str | None


@dataclass(frozen=True, slots=True)
class _Recordings:
    """What the agent kept, and what was recorded now, if it could be."""

    config: Config
    history: LastMinutes
    raw: Path | None
    trouble: str | None

    @property
    def sources(self) -> list[Source]:
        """All of them, in order of time."""
        own = [Source(self.raw)] if self.raw is not None else []
        return [*self.history.sources, *own]

    def told(self, seconds: Sequence[float]) -> str:
        """Say what the trace is made of; ``seconds`` are those of each recording."""
        count = len(self.history.sources)
        parts = []
        if count:
            kept = sum(seconds[:count])
            until = datetime.fromtimestamp(self.history.until, UTC)
            parts.append(
                f"{kept:.0f} s that the agent kept, in {count} files, until "
                f"{until.isoformat(timespec='seconds')}"
            )
        if self.raw is not None:
            own = sum(seconds[count:])
            parts.append(f"{own:.0f} s, from when the command began")
        return ", then ".join(parts) + (
            f": {self.history.note}" if self.history.note else ""
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("bundle", type=Path, metavar="OUT.tar.gz")
    parser.add_argument("--config", type=Path, metavar="FILE", help="file to read")
    parser.add_argument(
        "--seconds",
        type=number_up_to(LONGEST_SECONDS, zero=True),
        default=60.0,
        metavar="N",
        help="how long to record (default 60); 0: only what the agent kept, see "
        "history.minutes",
    )
    parser.add_argument(
        "--anonymise",
        action="store_true",
        help="codes in the place of nodes, jobs, users, peers, addresses, GUIDs and "
        "serial numbers, the same in every file",
    )
    parser.add_argument(
        "--key-file",
        type=Path,
        metavar="FILE",
        help="key of the codes, 16 bytes or more: the same codes in other bundles",
    )
    parser.add_argument(
        "--with-logs", action="store_true", help="what jobs write to their logs too"
    )
    parser.add_argument(
        "--root", type=folder, metavar="DIR", help="look at a node's files below DIR"
    )
    parser.add_argument(
        "--force", action="store_true", help="write over a bundle that is there"
    )


def run(options: argparse.Namespace) -> int:
    """Gather, and say what could not be had; raises `ConfigError`."""
    if message := _misuse(options):
        print(f"fabricmon support: {message}", file=sys.stderr)
        return USAGE_ERROR
    loaded = load(options.config, os.environ)
    try:
        anonymiser = Anonymiser(_pseudonyms(options)) if options.anonymise else None
        wish = _Wish(options.seconds, options.with_logs, anonymiser, options.root)
        with Bundle(options.bundle, force=options.force) as bundle:
            manifest = _gather(bundle, loaded, wish, options)
    except (OSError, ValueError) as error:
        name = getattr(error, "filename", None) or options.bundle
        why = getattr(error, "strerror", None) or error
        print(f"fabricmon support: {name}: {why}", file=sys.stderr)
        return FAILED
    _tell(options.bundle, manifest)
    return 0


def _misuse(options: argparse.Namespace) -> str | None:
    """Return what is wrong with the arguments together."""
    if options.anonymise and options.with_logs:
        return (
            "give --anonymise or --with-logs: a log may name anything, and nobody can "
            "promise that no name is left in it"
        )
    if options.key_file and not options.anonymise:
        return "--key-file is for --anonymise"
    return None


def _pseudonyms(options: argparse.Namespace) -> Pseudonyms:
    """Return the codes; without a key file nobody can ever make the same again."""
    if options.key_file is None:
        return Pseudonyms(secrets.token_bytes(_KEY_BYTES))
    return Pseudonyms(options.key_file.read_bytes().strip())


def _gather(
    bundle: Bundle, loaded: Loaded, wish: _Wish, options: argparse.Namespace
) -> Manifest:
    node = loaded.config.node or socket.gethostname()
    document = _document(bundle, options)
    with tempfile.TemporaryDirectory(prefix="fabricmon-support-") as name:
        last = take_history(loaded.config, Path(name), MOST_TRACE_BYTES)
        raw = Path(name, "raw.jsonl.gz")
        trouble = _record(loaded, node, wish, raw) if wish.seconds else None
        made = _Recordings(loaded.config, last, raw if raw.exists() else None, trouble)
        if wish.anonymiser is not None:
            _learn(wish.anonymiser, loaded, node, document, made)
        _add_trace(bundle, Path(name, TRACE), wish, made)
    parts = Parts(
        loaded, document, wish.anonymiser, root=wish.root or loaded.config.root
    )
    for part in parts.all():
        bundle.add(part.name, part.file, part.make)
    told = wish.anonymiser.value({"node": node}) if wish.anonymiser else {"node": node}
    manifest = Manifest(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        node=told["node"],
        version=__version__,
        anonymised=wish.anonymiser is not None,
        with_logs=wish.with_logs,
        parts=tuple(_shown(bundle, wish)),
    )
    encoded = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    bundle.finish(encoded + b"\n")
    return manifest


def _document(bundle: Bundle, options: argparse.Namespace) -> dict[str, Any]:
    """Return what `check` prints; nothing but a note where that fails."""
    try:
        return look(config=options.config, root=options.root).content
    except (FabricmonError, OSError) as error:
        bundle.fail("look", str(error))
        return {}


def _record(loaded: Loaded, node: str, wish: _Wish, path: Path) -> str | None:
    """Record the node for a while; return what was wrong with that."""
    left = LOG_SOURCES if not wish.with_logs else frozenset[str]()
    left |= JOB_SOURCES if wish.anonymiser is not None else frozenset[str]()
    sources = tuple(source for source in SOURCES if source.name not in left)
    host = live_host(loaded.config, wish.root, watch_links=True)
    stop, news = Event(), Event()

    def end(*_: object) -> None:
        stop.set()
        news.set()

    before = signal.signal(signal.SIGINT, end)
    try:
        config = without_secrets(msgspec.to_builtins(loaded.config))
        with closing(RecordingHost(host, path, node, config)) as recorder:
            record_node(
                recorder,
                loaded,
                node,
                seconds=wish.seconds,
                stop=stop,
                news=news,
                sources=sources,
            )
    except (FabricmonError, OSError) as error:
        return str(error)
    finally:
        signal.signal(signal.SIGINT, before)
        host.close()
    return recorder.error


def _learn(
    anonymiser: Anonymiser,
    loaded: Loaded,
    node: str,
    document: dict[str, Any],
    made: _Recordings,
) -> None:
    """Let the anonymiser know every name before the first is replaced."""
    anonymiser.learn("host", {node, socket.gethostname()})
    anonymiser.learn("user", _people())
    anonymiser.learn_from(msgspec.to_builtins(loaded.config))
    anonymiser.learn_from(document)
    for source in made.sources:
        names_of(source.path, anonymiser)


def _people() -> Iterator[str]:
    """Go through the names of people that this machine knows by itself."""
    for entry in pwd.getpwall():
        if FIRST_PERSON <= entry.pw_uid < (1 << 16) - 2:
            yield entry.pw_name


def _add_trace(bundle: Bundle, clean: Path, wish: _Wish, made: _Recordings) -> None:
    if not made.sources:
        reasons = filter(None, (made.trouble, made.history.note))
        bundle.fail("trace", "; ".join(reasons))
        return
    try:
        named = made.sources if wish.anonymiser is not None else []
        config = without_secrets(msgspec.to_builtins(made.config))
        joined = JoinedTraces(made.sources, config)
        kept = rewrite(
            joined,
            clean,
            with_logs=wish.with_logs,
            anonymiser=wish.anonymiser,
            most_bytes=MOST_TRACE_BYTES,
            job_paths=job_paths(made.config, named),
            plan_paths=plan_paths(made.config, named),
        )
    except (FabricmonError, OSError, msgspec.ValidationError) as error:
        bundle.fail("trace", made.trouble or str(error))
        return
    note = made.told(joined.recorded)
    if kept.is_cut:
        note += "; cut short: it grew too large"
    if made.trouble:
        note += f"; {made.trouble}"
    bundle.add_file("trace", TRACE, clean, note)


def _shown(bundle: Bundle, wish: _Wish) -> Iterator[Any]:
    """Go through the parts; what notes and errors say is told as all else."""
    for part in bundle.parts:
        if wish.anonymiser is None:
            yield part
            continue
        note, error = (
            text and wish.anonymiser.text(text) for text in (part.note, part.error)
        )
        yield msgspec.structs.replace(part, note=note, error=error)


def _tell(path: Path, manifest: Manifest) -> None:
    size = path.stat().st_size
    print(f"{path}: {size / 1024:.0f} KiB, for replay: fabricmon replay {path}")
    for part in manifest.parts:
        if part.error is not None:
            print(f"  without {part.name}: {part.error}")
