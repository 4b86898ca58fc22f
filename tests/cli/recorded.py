"""Recorded nodes and texts with their sidecars, and what `check` says of them.

The sidecars in tests/data/fabric say what each input holds and what follows from it.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from fabricmon.cli import main
from tests.manifest import lay_out
from tests.parse.cases import FABRIC, sidecars

Json = dict[str, Any]

FIELDS = (
    *("state", "phys_state", "link_layer", "rate_gbps", "width", "speed"),
    *("lid", "sm_lid", "guid", "node_guid", "fw", "hca_type", "netdev"),
)
FOLDERS = ("counters", "hw_counters")
SETTINGS = {"lifespan", "clear_counters"}
ORDER = ("healthy", "unknown", "degraded", "down")
NO_LID = 65535


@dataclass(frozen=True)
class Case:
    """One sidecar."""

    name: str
    data: Json

    @property
    def expect(self) -> Json:
        """What the input holds."""
        return dict(self.data["expect"])

    @property
    def ports(self) -> Json:
        """The verdict of each port."""
        return dict(self.data["verdict"]["ports"])

    @property
    def config(self) -> Json:
        """The configuration that the verdict depends on."""
        given = self.data.get("given", {})
        return {key: value for key, value in given.items() if key != "note"}

    def input(self, key: str) -> Path:
        """Return the file of an input."""
        return FABRIC / str(self.data["inputs"][key])

    def accepted(self, place: str) -> set[str]:
        """Return the verdicts of a port that are right.

        Lifetime counters of one sample prove nothing that is going on: healthy is
        right there too, unless the node's verdict rests on this port alone.
        """
        verdict, ports = self.data["verdict"], self.ports
        found = {ports[place]["verdict"]}
        also = set(verdict.get("also_acceptable", []))
        others = [port["verdict"] for name, port in ports.items() if name != place]
        rests = verdict["basis"] == "lifetime" or "(lifetime)" in ports[place]["why"]
        free = "healthy" in also or worst(others) == verdict["node"]
        if "degraded" in found and rests and free:
            found.add("healthy")
        for sentence in self.expect.get("ambiguous", []):
            subject = re.split(r"[,\s]+", sentence.partition(":")[0])
            if place.partition("/")[0] in subject:
                found |= also
        return found

    def accepted_of_node(self) -> set[str]:
        """Return the verdicts of the node that are right."""
        verdict = self.data["verdict"]
        return {verdict["node"], *verdict.get("also_acceptable", [])}

    def may_be(self, place: str, field: str, value: object) -> bool:
        """Tell whether the sidecar lists this among several right values."""
        word = "null" if value is None else str(value)
        for sentence in self.expect.get("ambiguous", []):
            subject, _, text = sentence.partition(":")
            if subject.split() == [place, field]:
                return re.search(rf"(?<![\w.-]){re.escape(word)}\b", text) is not None
        return False


@dataclass(frozen=True)
class Outcome:
    """A case, the object that `check` printed, and its exit status."""

    case: Case
    content: Json
    status: int

    def port(self, place: str) -> Json | None:
        """Return the object of a port."""
        return next((p for p in self.content["ports"] if name_of(p) == place), None)


def name_of(port: Json) -> str:
    """Name a port as the sidecars do."""
    return f"{port['device']}/{port['port']}"


def worst(verdicts: Sequence[str]) -> str:
    """Return the worst of some verdicts."""
    return max(verdicts, key=ORDER.index, default="healthy")


def load(kind: str, *, pairs: bool = False) -> list[Case]:
    """Return the cases of a kind: those of one sample, or those of two."""
    found = (Case(name, data) for name, data in sidecars(kind))
    return [case for case in found if ("t1" in case.data["inputs"]) is pairs]


SINGLE, TEXTS, PAIRS = load("sysfs"), load("ibstat"), load("sysfs", pairs=True)


def call(*words: str) -> tuple[Json, int]:
    """Return what `check` prints in JSON as any reader takes it, and its status."""
    raw = io.BytesIO()
    with patch.object(sys, "stdout", io.TextIOWrapper(raw, "utf-8")):
        status = main(["check", *words, "--format", "json"])
        text = raw.getvalue().decode("utf-8")
    return json.loads(text, parse_constant=pytest.fail), status


def check_root(case: Case, manifest: Path, folder: Path) -> Outcome:
    """Lay out a recorded node and look at it."""
    lay_out(manifest, folder / "root")
    given = folder / "given.yaml"
    given.write_text(json.dumps(case.config))
    words = ("--root", str(folder / "root"), "--config", str(given))
    return Outcome(case, *call(*words))


def check_text(case: Case) -> Outcome:
    """Look at the recorded output of ibstat."""
    words = ["--ibstat", str(case.input("stdout"))]
    if "stderr" in case.data["inputs"]:
        words += ["--ibstat-stderr", str(case.input("stderr"))]
    if "exit_code" in case.data:
        words += ["--ibstat-exit", str(case.data["exit_code"])]
    return Outcome(case, *call(*words))


def assert_fields(outcome: Outcome) -> None:
    """State, rate, LIDs, GUIDs, firmware and type are as recorded; absent is null."""
    for port in outcome.case.expect.get("ports", []):
        place = name_of(port)
        found = outcome.port(place)
        assert found is not None, place
        for field in FIELDS:
            if field in port:
                value = None if port[field] in {"", NO_LID} else port[field]
                same = found[field] == value and type(found[field]) is type(value)
                right = same or outcome.case.may_be(place, field, found[field])
                assert right or is_close(value, found[field]), (place, field)


def is_close(expected: object, found: object) -> bool:
    """Tell whether two numbers are equal: a rate may be written with a fraction."""
    numbers = isinstance(expected, (int, float)) and isinstance(found, (int, float))
    return numbers and not isinstance(expected, bool) and expected == found


def assert_no_port_is_made_up(outcome: Outcome) -> None:
    """Only devices that could not be read may have a port of their own."""
    case = outcome.case
    known = {name_of(port) for port in case.expect.get("ports", [])} | set(case.ports)
    unread = {place.partition("/")[0] for place in unseen(case)}
    unread |= set(case.expect.get("missing_devices", []))
    for port in outcome.content["ports"]:
        assert name_of(port) in known or port["device"] in unread


def unseen(case: Case) -> set[str]:
    """Return ports of which the input shows nothing but an error."""
    if "ports" not in case.expect:
        return set()
    seen = {name_of(port) for port in case.expect["ports"]}
    return {place for place in case.ports if "/" in place and place not in seen}


def assert_counters(outcome: Outcome, expected: Json) -> None:
    """Compare every counter: exact, in its folder, none left out or made up."""
    for place, folders in expected.items():
        port = outcome.port(place)
        assert port is not None, place
        for folder in FOLDERS:
            wanted = folders.get(folder, {})
            wanted = {key: v for key, v in wanted.items() if key not in SETTINGS}
            found = {k: v for k, v in port[folder].items() if v is not None}
            assert found == wanted, (place, folder)
