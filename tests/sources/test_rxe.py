"""Soft-RoCE devices of a real kernel, before and after faults."""

import pytest

from fabricmon.model import Hca, LinkStatus, Reading
from fabricmon.parse.words import PhysState, PortState
from tests.fake_host import FakeHost
from tests.manifest import RXE
from tests.sources.polls import Sweep, every


def read_counters(manifest: str, device: str) -> dict[str, int | None]:
    """Return every counter of a device by file."""
    records = Sweep(FakeHost(RXE / f"{manifest}.manifest")).records()
    return {
        spec.file: value
        for reading in every(Reading, records)
        if reading.port.device == device
        for spec, value in zip(reading.specs, reading.values, strict=True)
    }


def test_no_port_counters() -> None:
    """Rxe answers for its hardware counters alone, all fifteen of them."""
    counters = read_counters("before", "rxe0")
    assert len(counters) == 15
    assert set(counters.values()) == {0}


@pytest.mark.parametrize(
    ("fault", "device", "file", "value"),
    [
        ("after-clean-traffic", "rxe0", "rcvd_pkts", 9477),
        ("after-request-loss", "rxe0", "rcvd_seq_err", 261),
        ("after-request-loss", "rxe1", "out_of_seq_request", 272),
        ("after-ack-loss", "rxe1", "duplicate_request", 1156),
        ("after-retry-exceeded", "rxe0", "retry_exceeded_err", 1),
        ("link-down", "rxe0", "link_downed", 1),
    ],
)
def test_faults_show(fault: str, device: str, file: str, value: int) -> None:
    """What a fault moved has the value that was seen."""
    assert read_counters(fault, device)[file] == value


def test_link_down() -> None:
    """The end that was switched off is disabled, the other one waits."""
    records = Sweep(FakeHost(RXE / "link-down.manifest")).records()
    found = [
        (status.port.device, status.state, status.phys_state)
        for status in every(LinkStatus, records)
        if status.complete
    ]
    assert found == [
        ("rxe0", PortState.DOWN, PhysState.DISABLED),
        ("rxe1", PortState.DOWN, PhysState.POLLING),
    ]


def test_identity() -> None:
    """Both are told apart by GUID and sit on no bus."""
    records = Sweep(FakeHost(RXE / "before.manifest")).records()
    found = [(hca.name, hca.node_guid) for hca in every(Hca, records)]
    assert found == [
        ("rxe0", "0x000000fffe000001"),
        ("rxe1", "0x000000fffe000002"),
    ]
