"""Saved reports of RAS: what they say is bad, and what they do not prove."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fabricmon.parse.log_event import LogEvent, LogSeverity
from fabricmon.parse.ras import MOST_EVENTS, parse_ras_json, ras_events

DATA = Path(__file__).parent.parent / "data" / "nccl"
TEXT = """NCCL version 2.28.9 compiled with CUDA 12.9
CUDA runtime version 12090, driver version 13000

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      4          8            1         32       32

Communicators... (2.05s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         4       7-8        32        32   RUNNING  INCOMPLETE

Errors
======

DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 3487984 on node 172.16.64.213 managing GPU 5

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 21

Warnings
========

#0-0 (cf264af53edbe986) MISMATCH
  Communicator ranks have different collective operation counts
  26 ranks have launched up to operation 6650
  5 ranks have launched up to operation 6649
"""


def rank(number: int, operations: int, **status: Any) -> dict[str, Any]:
    """Return a rank as a report in JSON has it."""
    flags = {
        "init_state": 0,
        "async_error": 0,
        "finalize_called": False,
        "destroy_flag": False,
        "abort_flag": False,
    }
    return {
        "rank": number,
        "host": f"10.0.0.{number}",
        "pid": 1000 + number,
        "cuda_dev": 0,
        "nvml_dev": 0,
        "status": flags | status,
        "collective_counts": {"Broadcast": 1, "AllReduce": operations},
    }


def missing(number: int, *, dead: bool) -> dict[str, Any]:
    """Return a missing rank as a report in JSON has it."""
    return {
        "rank": number,
        "host": f"10.0.0.{number}",
        "pid": 1000 + number,
        "cuda_dev": 0,
        "nvml_dev": 0,
        "status": {"unresponsive": True, "considered_dead": dead},
    }


def report(*ranks: dict[str, Any], gone: tuple[dict[str, Any], ...] = ()) -> str:
    """Return a report in JSON with one communicator."""
    communicator = {
        "hash": "0x4e0104c2022fa2f9",
        "size": len(ranks) + len(gone),
        "ranks": ranks,
        "missing_ranks": gone,
    }
    document = {
        "nccl_version": "2.28.9",
        "communicators": [communicator],
        "ras": {"collection_time_sec": 0.0, "timeouts_count": 2},
    }
    return json.dumps(document, indent=2)


def said(text: str) -> list[LogEvent]:
    """Return what a report says but for its version."""
    events = ras_events(text, "ras.txt")
    return [event for event in events if event.kind != "library_version"]


def test_a_text_report_says_who_is_gone_and_who_is_behind() -> None:
    """The table, the errors and the warnings."""
    kinds = [event.kind for event in said(TEXT)]
    assert kinds == [
        "ras_incomplete",
        "ras_dead",
        "ras_process",
        "ras_incomplete",
        "ras_incomplete",
        "ras_mismatch",
        "ras_mismatch",
        "ras_mismatch",
    ]
    process = said(TEXT)[2]
    assert (process.peer, process.field("process")) == ("172.16.64.213", 3487984)


def test_a_text_report_has_lines_and_the_librarys_version() -> None:
    """Somebody will want to look."""
    first = said(TEXT)[0]
    line = TEXT.split("\n")[first.line_number - 1]
    assert line.endswith("INCOMPLETE")
    assert TEXT.encode()[first.offset :].startswith(line.encode())
    assert first.status == "RUNNING/INCOMPLETE"
    assert first.library_version == "2.28.9"


def test_a_recorded_report_without_errors_is_only_information() -> None:
    """It saw nothing, and the data was stuck."""
    log = (DATA / "38-ras-ok-while-watchdog-times-out.log").read_text(encoding="utf-8")
    (summary,) = said(log)
    assert (summary.kind, summary.status) == ("ras_summary", "RUNNING/OK")
    assert summary.severity is LogSeverity.INFO


def test_a_report_in_json_without_errors_is_only_information() -> None:
    """The same as in text."""
    (summary,) = said(report(rank(0, 4), rank(1, 4)))
    assert (summary.kind, summary.status) == ("ras_summary", "RUNNING/OK")
    assert summary.comm == "0x4e0104c2022fa2f9"
    assert summary.library_version == "2.28.9"


def test_a_rank_that_has_launched_less_is_named() -> None:
    """With the operation, and how far it is behind."""
    (event,) = said(report(rank(0, 4), rank(1, 3), rank(2, 4)))
    assert (event.kind, event.rank, event.peer) == ("ras_mismatch", 1, "10.0.0.1")
    assert event.status == "3/4"
    assert event.field("collective") == "AllReduce"


def test_a_missing_rank_is_incomplete_until_it_is_declared_dead() -> None:
    """RAS waits 60 s before it says so."""
    gone = (missing(1, dead=False), missing(2, dead=True))
    slow, dead = said(report(rank(0, 4), gone=gone))
    assert (slow.kind, slow.severity) == ("ras_incomplete", LogSeverity.WARNING)
    assert (dead.kind, dead.severity) == ("ras_dead", LogSeverity.CRITICAL)
    assert (dead.peer, dead.field("process")) == ("10.0.0.2", 1002)


def test_a_report_without_a_comma_is_read() -> None:
    """The library leaves one out where a rank is missing."""
    whole = report(rank(0, 4), gone=(missing(1, dead=False),))
    broken = whole.replace(
        '"nvml_dev": 0,\n          "status": {\n            "unresponsive"',
        '"nvml_dev": 0\n          "status": {\n            "unresponsive"',
    )
    assert broken != whole
    assert said(broken) == said(whole)


def test_a_communicator_in_error_says_its_result() -> None:
    """6 is the network or a peer that ended."""
    (event,) = said(report(rank(0, 4, async_error=6)))
    assert (event.kind, event.rank) == ("async_error", 0)
    assert event.field("result_name") == "ncclRemoteError"


def test_states_are_named_as_in_text() -> None:
    """The flags say what the table says in a word."""
    ranks = rank(0, 4, abort_flag=True), rank(1, 4, init_state=7)
    (summary,) = said(report(*ranks, rank(2, 4, destroy_flag=True)))
    assert summary.status == "ABORT,FINALIZE,INIT/OK"


def test_late_answers_are_counted() -> None:
    """As the report counts them."""
    parsed = parse_ras_json(report(rank(0, 4)))
    assert parsed is not None
    assert parsed.timeouts == 2


def test_what_was_watched_is_read_in_both_formats() -> None:
    """One line, or one object, for each event."""
    text = "[2026-05-01 10:00:00] PEER_DEAD: Process 7 on node gpu-5 managing GPU 0\n"
    objects = '{\n "event": "PEER_DEAD",\n "pid": 7,\n "node": "gpu-5"\n}\n{"event":"PEER_NEW"}'
    (line,) = said(text)
    dead, new = said(objects)
    assert (
        (line.kind, line.peer) == (dead.kind, dead.peer) == ("ras_peer_dead", "gpu-5")
    )
    assert line.field("process") == dead.field("process") == 7
    assert new.kind == "ras_peer_state"


def test_another_document_is_no_report() -> None:
    """Nothing is found in it, and nothing is wrong with it."""
    assert said('{"communicators": 5}') == []
    assert said("iter 83592: loss 1.5455\n") == []
    assert said('{"nccl_version": ') == []
    assert said("") == []


def test_a_report_on_very_many_is_bounded() -> None:
    """An event for each of the first thousand that are missing."""
    gone = tuple(missing(number, dead=True) for number in range(MOST_EVENTS + 100))
    assert len(said(report(gone=gone))) == MOST_EVENTS


JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    *("communicators", "ranks", "missing_ranks", "status", "hash"),
                    *("collective_counts", "rank", "host", "pid", "event", "ras"),
                ]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@given(JSON, st.text(max_size=10))
def test_no_document_makes_it_fail(value: object, behind: str) -> None:
    """Whatever it holds, and whatever follows it."""
    for text in (json.dumps(value) + behind, json.dumps({"communicators": [value]})):
        for event in ras_events(text, "ras.json"):
            json.dumps([(each.name, each.value) for each in event.fields])
