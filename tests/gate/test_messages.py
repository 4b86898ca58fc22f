"""Messages of agents as findings, and what may not be one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.errors import ParseError
from fabricmon.gate.messages import Presence, Standing, read_message
from fabricmon.gate.report import Report
from tests.gate.gates import finding


def read(payload: bytes, what: str = "finding") -> Any:
    """Read a payload of the node n1."""
    return read_message("c1", "n1", what, payload)


def test_a_finding() -> None:
    """It is taken as it is, by its node's topic and its own id."""
    told = finding(rail=3, leaf="l1")
    report = read(msgspec.json.encode(told))

    assert isinstance(report, Report)
    assert report.finding == told
    assert (report.id, report.node) == ("mqtt:n1:0123456789abcdef", "n1")
    assert (report.source, report.origin, report.noticed) == ("mqtt", "node", True)


def test_a_node_speaks_for_itself_only() -> None:
    """A finding about another node than the topic's is refused."""
    with pytest.raises(ParseError, match="n1 speaks of n2"):
        read(msgspec.json.encode(finding("n2")))


@pytest.mark.parametrize(
    "changes",
    [{"id": None}, {"evidence": ()}, {"schema": "fabricmon.finding/2"}],
    ids=str,
)
def test_no_evidence_no_finding(changes: dict[str, Any]) -> None:
    """Without identity, evidence and a known form it cannot be acted on."""
    told = msgspec.structs.replace(finding(), **changes)

    with pytest.raises(ParseError):
        read(msgspec.json.encode(told))


def test_summary_and_status() -> None:
    """What a node has open, and whether its agent is there."""
    summary = b'{"time": "T", "open": {"port_down": {"critical": 1}}, "ports": {}}'

    assert read(summary, "summary") == Standing(
        "c1", "n1", "T", frozenset({"port_down"})
    )
    assert read(b'{"state": "offline"}', "status") == Presence("c1", "n1", False)
    assert read(b"", "status") is None
    assert read(b"{}", "port") is None


@given(st.binary(max_size=200), st.sampled_from(["finding", "summary", "status"]))
def test_any_octets(payload: bytes, what: str) -> None:
    """Nothing that anybody may publish does more than be refused."""
    try:
        read(payload, what)
    except ParseError as error:
        assert str(error).isprintable()  # noqa: PT017 - either is right


def test_huge() -> None:
    """A payload beyond all measure is not even looked at."""
    with pytest.raises(ParseError, match="too many"):
        read(b" " * (1 << 20))
