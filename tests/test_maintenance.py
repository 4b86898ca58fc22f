"""Whose work a maintenance window covers."""

from __future__ import annotations

import pytest

from fabricmon.maintenance import under_maintenance
from fabricmon.model import MaintenanceWindow, Subject

PORT = Subject(device="mlx5_0", port=1)
DEVICE = Subject(device="mlx5_0")
NODE = Subject()


@pytest.mark.parametrize("subject", [PORT, DEVICE, NODE])
def test_a_window_without_ports_is_about_the_node(subject: Subject) -> None:
    """Everything on the node is worked on."""
    assert under_maintenance(subject, [MaintenanceWindow(10)], 5)


@pytest.mark.parametrize("subject", [PORT, DEVICE, NODE])
def test_a_window_ends(subject: Subject) -> None:
    """At its end it holds no longer."""
    assert not under_maintenance(subject, [MaintenanceWindow(10)], 10)


def test_a_window_with_ports_is_about_these() -> None:
    """It covers the port and its device, not other ports and not the node."""
    windows = [MaintenanceWindow(10, ("mlx5_0/1",))]
    assert under_maintenance(PORT, windows, 5)
    assert under_maintenance(DEVICE, windows, 5)
    assert not under_maintenance(Subject(device="mlx5_0", port=2), windows, 5)
    assert not under_maintenance(Subject(device="mlx5_01", port=1), windows, 5)
    assert not under_maintenance(NODE, windows, 5)
