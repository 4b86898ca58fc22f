"""What of a node goes into a bundle beside the recording."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec
import yaml

from fabricmon import __version__
from fabricmon.config_load import Loaded
from fabricmon.host.live_command import Commands
from fabricmon.host.protocol import ReadError
from fabricmon.parse.text import decode
from fabricmon.support.anonymise import Anonymiser
from fabricmon.support.bundle import MOST_PART_BYTES, Content
from fabricmon.support.secrets import (
    line_without_secrets,
    text_without_secrets,
    without_secrets,
)

UNIT = "fabricmon.service"
LOG_LINES = 2000
JOURNAL_SECONDS = 10.0

_UNIT_FOLDERS = ("etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system")
_LIBRARIES = (
    "aiomqtt",
    "msgspec",
    "prometheus-client",
    "psutil",
    "pyyaml",
    "structlog",
)
_MODULES = (
    *("mlx5_core", "mlx5_ib", "mlx4_ib", "ib_core", "ib_uverbs", "hfi1", "irdma"),
    *("bnxt_re", "efa", "mana_ib", "ionic_rdma", "hns_roce_hw_v2", "erdma", "rdma_rxe"),
)
_MODULE_FILES = ("version", "srcversion")
_COMMANDS = {
    "journal": (
        *("journalctl", f"--unit={UNIT}", f"--lines={LOG_LINES}", "--no-pager"),
        *("--output=short-iso-precise", "--no-hostname", "--quiet"),
    )
}

Make = Callable[[], Content]


@dataclass(frozen=True, slots=True)
class NamedPart:
    """A part by its name in the manifest, its file, and what makes it."""

    name: str
    file: str
    make: Make


class Parts:
    """Makes the parts of one bundle; all go through the same anonymiser, if any."""

    def __init__(
        self,
        loaded: Loaded,
        document: dict[str, Any],
        anonymiser: Anonymiser | None,
        *,
        root: str | None = None,
    ) -> None:
        """``document`` is what ``check`` prints; ``root`` is where the node lies."""
        self._loaded = loaded
        self._document = document
        self._anonymiser = anonymiser
        self._root = Path(root or "/")

    def all(self) -> Iterator[NamedPart]:
        """Go through the parts in the order of the manifest."""
        yield NamedPart("configuration", "config.yaml", self._configuration)
        yield NamedPart("check", "check.json", self._check)
        yield NamedPart("findings", "findings.jsonl", self._findings)
        yield NamedPart("errors", "errors.json", self._errors)
        yield NamedPart("log", "log.txt", self._log)
        yield NamedPart("versions", "versions.json", self._versions)
        yield NamedPart("unit", "unit.txt", self._unit)

    def _configuration(self) -> Content:
        config = without_secrets(msgspec.to_builtins(self._loaded.config))
        origins = {each.key: str(each) for each in self._loaded.origins}
        tree = {"config": config, "origins": origins, "hash": self._loaded.hash}
        return Content(yaml.safe_dump(self._told(tree), sort_keys=False).encode())

    def _check(self) -> Content:
        sampled = self._document.get("source") != "agent"
        note = "no agent answered: one sample" if sampled else None
        return Content(_dump(self._told(self._document)), note)

    def _findings(self) -> Content:
        findings = self._told(self._document.get("findings", []))
        return Content(b"".join(_dump(each, indent=None) for each in findings))

    def _errors(self) -> Content:
        return Content(_dump(self._told(self._document.get("errors", []))))

    def _log(self) -> Content:
        if self._root != Path("/"):
            raise FileNotFoundError(2, "a copy of a node has no journal")
        found = Commands(_COMMANDS).run("journal", JOURNAL_SECONDS)
        if isinstance(found, ReadError):
            raise OSError(f"journalctl cannot be run ({found.errno})")
        text = decode(found.stdout)
        if not text.strip():
            why = decode(found.stderr).strip() or "the journal has no line of the unit"
            raise OSError(f"{why}: run as root, or with the group systemd-journal")
        lines = [self._line(line) for line in text.splitlines()]
        return Content("\n".join([*lines, ""]).encode("utf-8", "replace"))

    def _line(self, line: str) -> str:
        """Return a line of the log: what the agent writes is JSON after a time."""
        head, brace, rest = line.partition("{")
        if brace and self._anonymiser is not None:
            try:
                tree = msgspec.json.decode(brace + rest)
                told = self._told(line_without_secrets(tree))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return self._text(text_without_secrets(line))
            return (
                self._text(text_without_secrets(head))
                + msgspec.json.encode(told).decode()
            )
        return self._text(text_without_secrets(line))

    def _versions(self) -> Content:
        system = platform.uname()
        found: dict[str, Any] = {
            "fabricmon": __version__,
            "python": sys.version,
            "libraries": {name: _version(name) for name in _LIBRARIES},
            "kernel": {
                "release": system.release,
                "version": system.version,
                "machine": system.machine,
            },
            "system": self._system(),
            "drivers": dict(self._drivers()),
            "firmware": self._firmware(),
        }
        return Content(_dump(self._told(found)))

    def _system(self) -> str | None:
        text = self._read("etc/os-release") or ""
        names = [x for x in text.splitlines() if x.startswith("PRETTY_NAME=")]
        return names[0].partition("=")[2].strip('"') if names else None

    def _drivers(self) -> Iterator[tuple[str, dict[str, str]]]:
        for module in _MODULES:
            folder = self._root / "sys/module" / module
            if folder.is_dir():
                told = (
                    (f, self._read(f"sys/module/{module}/{f}")) for f in _MODULE_FILES
                )
                yield module, {f: text.strip() for f, text in told if text}

    def _firmware(self) -> dict[str, Any]:
        ports = self._document.get("ports", [])
        return {port["device"]: {"fw": port["fw"], "hca_type": port["hca_type"]}
                for port in ports}  # fmt: skip

    def _unit(self) -> Content:
        texts = []
        for folder in _UNIT_FOLDERS:
            place = self._root / folder
            drop_ins = sorted((place / f"{UNIT}.d").glob("*.conf"))
            for path in (place / UNIT, *drop_ins):
                text = self._read(str(path.relative_to(self._root)))
                if text is not None:
                    name = f"/{path.relative_to(self._root)}"
                    texts.append(f"# {name}\n{text_without_secrets(text)}\n")
        if not texts:
            raise FileNotFoundError(f"{UNIT} is not installed here")
        return Content(self._text("\n".join(texts)).encode("utf-8", "replace"))

    def _read(self, path: str) -> str | None:
        try:
            descriptor = os.open(self._root / path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            return decode(file.read(MOST_PART_BYTES))

    def _told(self, tree: Any) -> Any:
        return tree if self._anonymiser is None else self._anonymiser.value(tree)

    def _text(self, text: str) -> str:
        return text if self._anonymiser is None else self._anonymiser.text(text)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _dump(tree: Any, indent: int | None = 1) -> bytes:
    text = msgspec.json.encode(_mended(tree))
    return (msgspec.json.format(text, indent=indent) if indent else text) + b"\n"


def _mended(tree: Any) -> Any:
    """Return the same with text that any reader of JSON takes: no half surrogates."""
    if isinstance(tree, str):
        return tree.encode("utf-8", "replace").decode()
    if isinstance(tree, dict):
        return {_mended(key): _mended(each) for key, each in tree.items()}
    if isinstance(tree, list | tuple):
        return [_mended(each) for each in tree]
    return tree
