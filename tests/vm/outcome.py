"""What a machine's scenario left behind, and the table made of it."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

_TOLD = ("kind", "source", "severity", "action")
_RESOLVED = ("kind",)


@dataclass(frozen=True, slots=True)
class Step:
    """Something that was done in the machine, at a Unix time, to some devices."""

    name: str
    what: str
    devices: tuple[str, ...]
    at: float
    notes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """A log line of the agent."""

    at: float
    name: str
    fields: dict[str, Any]

    @property
    def device(self) -> str | None:
        """The device that it is about."""
        return self.fields.get("device")

    @property
    def kind(self) -> str | None:
        """The kind of finding that it is about."""
        return self.fields.get("kind")

    def is_about(self, devices: set[str]) -> bool:
        """Tell whether it is about one of these, or about none where these are none."""
        if self.name == "text":
            return False
        if self.device is None and self.kind is not None:
            return not devices.isdisjoint(self.fields["summary"].split())
        return self.device in devices if devices else self.device is None


@dataclass(frozen=True)
class Sample:
    """What everything showed at one moment."""

    content: dict[str, Any]

    @cached_property
    def check(self) -> dict[str, Any]:
        """What ``fabricmon check --format json`` printed."""
        return _document(self.content["check"])

    @property
    def check_exit(self) -> int:
        """Its exit status."""
        return int(self.content["check"]["exit"])

    @cached_property
    def check_alone(self) -> dict[str, Any]:
        """What ``check --sample`` printed, where it was run."""
        return _document(self.content["sample"])

    @cached_property
    def ports(self) -> dict[str, dict[str, Any]]:
        """The ports of `check`, by device."""
        return {port["device"]: port for port in self.check["ports"]}

    @property
    def healthz(self) -> int:
        """HTTP status of /healthz."""
        return int(self.content["healthz"]["status"])

    @cached_property
    def metrics(self) -> dict[tuple[str, str], dict[frozenset[tuple[str, str]], float]]:
        """Values by metric and device, then by the other labels."""
        found: dict[tuple[str, str], dict[frozenset[tuple[str, str]], float]] = {}
        for family in text_string_to_metric_families(self.content["metrics"]["body"]):
            for sample in family.samples:
                labels = dict(sample.labels)
                key = (sample.name, labels.pop("device", ""))
                rest = frozenset((k, v) for k, v in labels.items() if k != "port")
                found.setdefault(key, {})[rest] = sample.value
        return found

    def value(self, metric: str, device: str = "", **labels: str) -> float | None:
        """Return a value of /metrics; None if it is not exported."""
        values = self.metrics.get((f"fabricmon_{metric}", device), {})
        return values.get(frozenset(labels.items()))

    def open_findings(self) -> set[tuple[str, str]]:
        """Return kind and device, empty for none, of what the metrics show as open."""
        return {
            (dict(labels)["kind"], device)
            for (name, device), values in self.metrics.items()
            if name == "fabricmon_finding_open"
            for labels, value in values.items()
            if value
        }

    def kernel(self, device: str) -> dict[str, str]:
        """Return the kernel's files of a device; an error begins with ``!``."""
        head = f"{device}/"
        return {
            path.removeprefix(head).removeprefix("ports/1/"): text
            for path, text in self.content["sysfs"].items()
            if path.startswith(head)
        }


class Outcome:
    """Everything about one run of a machine."""

    def __init__(self, content: dict[str, Any]) -> None:
        """Take what the guest wrote as ``result.json``."""
        self.steps = tuple(
            Step(
                name=step["name"],
                what=step["what"],
                devices=tuple(step["devices"]),
                at=step["at"],
                notes=step["notes"],
            )
            for step in content["steps"]
        )
        self.events = tuple(sorted(map(_event, content["events"]), key=lambda e: e.at))
        self._samples = content["samples"]

    def step(self, name: str) -> Step:
        """Return a step by its name."""
        return next(step for step in self.steps if step.name == name)

    def sample(self, name: str) -> Sample:
        """Return a sample by its name."""
        return Sample(self._samples[name])

    def after(self, step: str, name: str, kind: str = "", device: str = "") -> float:
        """Return how many seconds after a step the log first said so.

        Infinite if it never did.
        """
        began = self.step(step).at
        times = (
            event.at - began
            for event in self.events
            if event.at >= began
            and event.name == name
            and kind in {"", event.kind}
            and device in {"", event.device}
        )
        return next(times, inf)

    def findings(self, device: str, step: str = "", until: str = "") -> list[str]:
        """Return what opened on a device between two steps, as ``kind severity``."""
        began = self.step(step).at if step else -inf
        ended = self.step(until).at if until else inf
        return [
            f"{event.kind} {event.fields['severity']}"
            for event in self.events
            if event.name == "finding_open"
            and event.device == device
            and began <= event.at < ended
        ]

    def table(self) -> Iterator[str]:
        """Yield the rows of a Markdown table: what was done, found, and how soon."""
        for number, step in enumerate(self.steps):
            took = step.notes.get("took")
            what = step.what if took is None else f"{step.what} after {took:.1f} s"
            cells = [what, ", ".join(step.devices)]
            found = list(self._found(step, self.steps[number + 1 :]))
            if step.notes.keys() >= {"state", "healthz"}:
                found = [("{state}, /healthz {healthz}".format(**step.notes), "")]
            if not found and step.devices:
                found = [("nothing", "")]
            elif not found and not step.what:
                continue
            for told, seconds in found or [("", "")]:
                yield f"| {' | '.join([*cells, told, seconds])} |"
                cells = ["", ""]

    def _found(self, step: Step, later: Iterable[Step]) -> Iterator[tuple[str, str]]:
        """Yield what the agent said of a step, before the next on its devices."""
        devices = set(step.devices)
        ends = (
            other.at for other in later if not devices or devices & {*other.devices}
        )
        ended = min(ends, default=inf)
        for event in self.events:
            if step.at <= event.at < ended and event.is_about(devices):
                yield _tell(event), f"{event.at - step.at:.1f}"


def read(path: Path) -> Outcome:
    """Read what a scenario wrote."""
    return Outcome(json.loads(path.read_text()))


def report(outcomes: dict[str, Outcome]) -> str:
    """Return a document with one table for each machine."""
    lines = ["# What was done in virtual machines, and what the agent found", ""]
    for name, outcome in outcomes.items():
        seconds = outcome.steps[-1].at - outcome.steps[0].at
        lines += [
            f"## {name} ({seconds:.0f} s)",
            "",
            "| done | devices | found | after s |",
            "|---|---|---|---|",
            *outcome.table(),
            "",
        ]
    return "\n".join(lines)


def _document(ran: dict[str, Any]) -> dict[str, Any]:
    assert ran["out"], ran["err"]
    return dict(json.loads(ran["out"]))


def _event(fields: dict[str, Any]) -> Event:
    stamp = fields.get("timestamp")
    at = datetime.fromisoformat(stamp).timestamp() if stamp else fields["seen_at"]
    return Event(at, fields["event"], fields)


def _tell(event: Event) -> str:
    word = event.name.removeprefix("finding_")
    keys = _RESOLVED if word == "resolved" else _TOLD
    told = [str(event.fields[key]) for key in keys if key in event.fields]
    where = [f"on {event.device}"] if event.device else []
    return " ".join([word, *told, *where])
