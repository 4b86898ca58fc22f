"""A tool that fails or hangs, seen from the whole pipeline."""

from __future__ import annotations

import pytest

from fabricmon.host.protocol import CommandOutput, ReadError
from fabricmon.model import Verdict
from tests.fake_host import FakeHost
from tests.manifest import SYSFS
from tests.running import Running

HUNG = CommandOutput(b"", b"", None)
GOOD = CommandOutput(b"CA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n", b"", 0)
PANIC = b"ibpanic: [7] main: stat of IB device 'mlx5_1' failed: Invalid argument"


def runs(node: Running) -> int:
    """Return how often the tool was started since the last call."""
    return node.reader.take().count("ibstat")


@pytest.fixture
def node() -> Running:
    """Return a node on which the tool hangs from the start."""
    host = FakeHost(SYSFS / "sysfs-h100-ndr-bond.manifest")
    host.commands["ibstat"] = HUNG
    return Running(host).settle()


def test_is_told(node: Running) -> None:
    """It is an error of the node, counted by its errno, and the node is unknown."""
    node.run(5)
    snapshot = node.pipeline.snapshot
    (failure,) = snapshot.failures
    (health,) = (each for each in snapshot.health if each.source == "ibstat")
    assert (failure.file, failure.errno) == ("ibstat", "ETIMEDOUT")
    assert (health.ok, health.errors[0].errno, health.errors[0].count) == (
        False,
        "ETIMEDOUT",
        1,
    )
    assert snapshot.verdict is Verdict.UNKNOWN


def test_is_tried_again_soon(node: Running) -> None:
    """One slow run counts a minute, not until the next hour."""
    assert runs(node) == 1
    node.run(58)
    assert runs(node) == 0
    node.host.commands["ibstat"] = GOOD
    node.run(4)
    assert runs(node) == 1
    assert node.pipeline.snapshot.failures == ()
    node.run(120)
    assert runs(node) == 0


def test_is_tried_less_and_less_often(node: Running) -> None:
    """A tool that always hangs costs the firmware few runs an hour, not sixty."""
    runs(node)
    node.run(1800, each=5)
    assert runs(node) == 4  # after 1, 3, 7 and 15 minutes


def test_goes_on_failing() -> None:
    """A tool that never answers is a source that failed once its periods are over."""
    host = FakeHost(SYSFS / "sysfs-h100-ndr-bond.manifest")
    host.commands["ibstat"] = HUNG
    node = Running(host, {"periods": {"ibstat_seconds": 60}}).settle()
    node.run(180, each=5)
    assert "source_failed" not in node.kinds
    node.run(20, each=5)
    assert "source_failed" in node.kinds
    host.commands["ibstat"] = GOOD
    node.run(65, each=5)
    assert "source_failed" not in node.kinds


def test_held_by_the_kernel(node: Running) -> None:
    """That it cannot be started again is another reason, in the same place."""
    node.host.commands["ibstat"] = ReadError("EBUSY")
    node.run(65)
    (failure,) = node.pipeline.snapshot.failures
    assert failure.errno == "EBUSY"


def test_one_device_that_it_cannot_see() -> None:
    """What it says of one device is counted, and hides nothing of the others."""
    host = FakeHost(SYSFS / "sysfs-h100-ndr-bond.manifest")
    host.commands["ibstat"] = CommandOutput(GOOD.stdout, PANIC, 255)
    node = Running(host).settle()
    node.run(5)
    snapshot = node.pipeline.snapshot
    (health,) = (each for each in snapshot.health if each.source == "ibstat")
    assert health.ok
    assert [each.errno for each in health.errors] == ["EINVAL"]
    assert snapshot.failures == ()
