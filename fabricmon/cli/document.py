"""The object that ``check`` and ``parse`` print, made from a report and verdicts."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fabricmon.detect.sample import Judgement, judge_node, judge_port
from fabricmon.model import Verdict
from fabricmon.parse.report import (
    OpenPort,
    PortReport,
    Report,
    ToolFailure,
)
from fabricmon.parse.words import PortState
from fabricmon.port_document import counters_object, port_object, table

SCHEMA = "fabricmon.check/1"
EXIT_STATUS = {
    Verdict.HEALTHY: 0,
    Verdict.DEGRADED: 1,
    Verdict.DOWN: 2,
    Verdict.UNKNOWN: 3,
}
"""Status that tells the verdict to a script; a usage error is 64."""

Judge = Callable[[PortReport], Judgement]
Json = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """The printed object and the verdict that the exit status tells."""

    content: Json
    verdict: Verdict

    @property
    def exit_status(self) -> int:
        """Exit status of a command that printed this document."""
        return EXIT_STATUS[self.verdict]


def check_document(
    report: Report,
    *,
    node: str | None = None,
    findings: Iterable[Json] = (),
    judge: Judge | None = None,
) -> Document:
    """Make the document of a report.

    ``judge`` replaces the judgement of single ports for callers that know more than
    the report says. ``findings`` are finding objects, already made.
    """

    def usual(port: PortReport) -> Judgement:
        return judge_port(port, tells_state=report.tells_state)

    judgements = tuple(map(judge or usual, report.ports))
    whole = judge_node(report, judgements)
    pairs = zip(report.ports, judgements, strict=True)
    content = {
        "schema": SCHEMA,
        "node": node,
        "verdict": whole.verdict.word,
        "ports": [port_object(port, judgement) for port, judgement in pairs],
        "findings": list(findings),
        "errors": [failure_object(failure) for failure in report.errors],
        **dict(_sections(report)),
    }
    if whole.reasons:
        content["reasons"] = list(whole.reasons)
    return Document(content, whole.verdict)


def failure_object(failure: ToolFailure) -> Json:
    """Return one entry of ``errors``: it names the file, or the tool where none."""
    where = {"file": failure.file} if failure.file else {"tool": failure.tool}
    return {
        "device": failure.device,
        "port": failure.port,
        **where,
        "errno": failure.errno,
        "message": failure.message,
    }


def dump(document: Document) -> bytes:
    """Return JSON that any reader takes: UTF-8, no NaN, no half surrogates."""
    text = json.dumps(document.content, ensure_ascii=False, allow_nan=False, indent=2)
    return text.encode("utf-8", "replace") + b"\n"


def render(document: Document, root: str = "") -> str:
    """Return the document as lines for a human, the worst news first.

    ``root`` is the folder below which the files lie that could not be read.
    """
    content = document.content
    out = [f"verdict: {content['verdict']}"]
    out += [f"  {reason}" for reason in content.get("reasons", ())]
    ports = sorted(
        (port for port in content["ports"] if port["port"] != 0),
        key=lambda port: Verdict[port["verdict"].upper()],
        reverse=True,
    )
    out += [line for port in ports for line in _port_lines(port)]
    out += [f"not read: {_complaint(error, root)}" for error in content["errors"]]
    return "\n".join(out) + "\n"


def _complaint(error: Json, root: str) -> str:
    """Say what was not read: device, file or tool, the reason and its errno."""
    file = error.get("file")
    path = f"{root}{file}" if file and file.startswith("/") else file
    where = ": ".join(filter(None, (error["device"], path))) or error.get("tool")
    return f"{where}: {why_not_read(error)}"


def why_not_read(error: Json) -> str:
    """Return the message of an entry of ``errors``, with its errno."""
    message, number = error["message"], error.get("errno")
    return f"{message} ({number})" if number and number not in message else message


def _port_lines(port: Json) -> Iterator[str]:
    state = "/".join(filter(None, (port["state"], port["phys_state"])))
    known = port["rate_gbps"] is not None and port["state"] == PortState.ACTIVE
    rate = f"{port['rate_gbps']:g} Gb/s" if known else ""  # else it is a default
    name = f"{port['device']}/{port['port']}"
    parts = (f"{name:20}", f"{port['verdict']:9}", state, rate, port["link_layer"])
    yield "  ".join(part for part in parts if part).rstrip()
    for reason in port["reasons"]:
        yield f"    {reason}"


def _sections(report: Report) -> Iterator[tuple[str, Any]]:
    """Yield what only some tools tell."""
    by_place = {
        f"{port.device}/{port.port}": counters_object(port.counters + port.hw_counters)
        for port in report.ports
        if not report.tells_state
    }
    by_place |= {
        group.key: counters_object(group.counters) for group in report.groups or ()
    }
    if by_place:
        yield "counters", by_place
    if report.bit_errors is not None:
        yield "counters", table(report.bit_errors)
    if report.all_ports is not None:
        sums = {
            group.key: counters_object(group.counters) for group in report.all_ports
        }
        yield "all_ports", sums
    for name in ("summary", "link", "module"):
        section = getattr(report, name)
        if section is not None:
            yield name, table(section)
    if report.links is not None:
        yield "links", [table(link) for link in report.links]
    if report.unconnected is not None:
        yield "unconnected", [_open_port(port) for port in report.unconnected]
    if report.fw is not None:
        yield "fw", report.fw


def _open_port(port: OpenPort) -> Json:
    return {**table(port.port), "speed": port.speed}
