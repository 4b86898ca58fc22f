"""Every recorded log yields the events that its sidecar expects, and invents none."""

import errno
import itertools
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from fabricmon.config import Logs
from fabricmon.parse.nccl import RuleTable
from fabricmon.parse.nccl_log import NEW_LOG, read_log
from fabricmon.stories.document import log_event_document
from fabricmon.stories.story import Story

DATA = Path(__file__).parent.parent / "data" / "nccl"
CASES = sorted(DATA.glob("*.json"))
TABLE = RuleTable.of()
CONTEXT = {
    *("env_setting", "library_version", "init_start_complete", "comm_shape"),
    *("channel_via_net", "net_selected"),
}
PROVEN = {"confirmed", "maintainer_hint"}

each_case = pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
Json = dict[str, Any]


def printed(path: Path) -> list[Json]:
    """Return the events of a case as the command prints them."""
    story = Story(Logs(), tells=True)
    data = path.with_suffix(".log").read_bytes()
    events = read_log(data, NEW_LOG, path.name, TABLE, final=True).events
    early = [one for event in events for one in story.add(event)]
    documents = map(log_event_document, (*early, *story.finish()))
    return [
        {name: getattr(document, name) for name in document.__struct_fields__}
        for document in documents
    ]


def answers(want: Json, event: Json, *, cause: bool) -> bool:
    """Whether an event is the expected one, in all that counts."""
    return (
        event["kind"] == want["kind"]
        and (event["severity"] == "info") == (want["severity"] == "info")
        and (want["device"] is None or want["device"] == event["device"])
        and (want["port"] is None or want["port"] == event["port"])
        and (want["peer"] is None or same_peer(want["peer"], event["peer"]))
        and (want["status"] is None or same_status(want, event))
        and (not cause or want["cause"] is None or want["cause"] == event["cause"])
    )


def same_peer(want: str, got: object) -> bool:
    """Compare addresses: port, zone and mapping to IPv6 aside."""

    def plain(text: str) -> str:
        bare = re.sub(r"<\d+>$", "", text.lower()).partition("%")[0]
        return bare.removeprefix("::ffff:")

    return isinstance(got, str) and plain(want) == plain(got)


def same_status(want: Json, event: Json) -> bool:
    """Compare numbers and texts; an errno may be its text; several facts may be fields."""
    status, got = want["status"], event["status"]
    if want["kind"] == "unclassified_warn" or str(status).lower() == str(got).lower():
        return True
    if isinstance(status, int):
        texts = {os.strerror(abs(status)).lower(), errno.errorcode.get(abs(status))}
        return str(got).lower() in texts
    said = (got, event["fields"], event["library"], event["library_version"])
    return words(status) <= words(said)


def words(value: object) -> set[str]:
    """Return letters and digits of a value, in words."""
    return set(re.findall(r"[a-z0-9]+", json.dumps(value).lower()))


def test_there_are_cases() -> None:
    """The corpus is there: an empty one would prove nothing."""
    assert len(CASES) >= 44


@each_case
def test_every_expected_event_is_found(path: Path) -> None:
    """Each by an event of its own: one cannot answer two."""
    case = json.loads(path.read_text(encoding="utf-8"))
    events = printed(path)
    proven = case["cause_confidence"] in PROVEN
    fits = [
        [n for n, event in enumerate(events) if answers(want, event, cause=proven)]
        for want in case["expected"]
    ]
    assert all(fits), list(zip(case["expected"], fits, strict=True))
    assert any(len({*pick}) == len(pick) for pick in itertools.product(*fits))


@each_case
def test_nothing_is_invented(path: Path) -> None:
    """Whatever is no context is expected, or allowed by the sidecar."""
    case = json.loads(path.read_text(encoding="utf-8"))
    known = {want["kind"] for want in case["expected"]} | {*case.get("allowed", ())}
    loud = {event["kind"] for event in printed(path) if event["severity"] != "info"}
    assert loud - CONTEXT <= known
