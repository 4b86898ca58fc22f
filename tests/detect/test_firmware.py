"""Firmware of equal devices."""

from __future__ import annotations

from dataclasses import replace

from fabricmon.detect.firmware import FirmwareDrift
from fabricmon.model import Severity
from tests.detect.machines import Machine, cards, hca_of

OLD, NEW = "28.39.2048", "28.41.1000"


def give(made: Machine, firmware: str, *rails: int) -> None:
    """Let devices run this firmware."""
    made.hcas = tuple(
        replace(hca, firmware=firmware) if rail in rails else hca
        for rail, hca in enumerate(made.hcas)
    )


def test_one_that_differs() -> None:
    """F29: told by name, with what the others run, once it has settled."""
    made = Machine(FirmwareDrift)
    give(made, OLD, 6)
    made.run(280)
    assert made.opened == []
    made.run(30)
    finding = made.open_of("config_drift").finding
    assert finding.severity is Severity.WARNING
    (item,) = finding.evidence
    assert (item.signal, item.value, item.threshold) == ("fw_ver", OLD, NEW)
    assert finding.summary.startswith("mlx5_6: firmware 28.39.2048")


def test_update_that_goes_from_device_to_device() -> None:
    """N29: within the settling time a node may be half new."""
    made = Machine(FirmwareDrift)
    for rail in range(8):
        give(made, OLD, rail)
        made.run(30)
    made.run(600)
    assert made.opened == []


def test_a_whole_node_is_the_fleets_matter() -> None:
    """All alike are no drift within the node."""
    made = Machine(FirmwareDrift)
    give(made, OLD, *range(8))
    made.run(900)
    assert made.opened == []


def test_other_models_have_other_firmware() -> None:
    """Storage cards are not compared with compute cards."""
    made = Machine(FirmwareDrift, infos=(*cards(4), *cards(6, board_id="MT_X")[4:]))
    give(made, OLD, 4, 5)
    made.run(900)
    assert made.opened == []


def test_virtual_and_silent_devices() -> None:
    """What says nothing, or zeros, does not differ."""
    infos = cards(4)
    made = Machine(FirmwareDrift, infos=infos)
    give(made, "0.0.0", 1)
    give(made, "", 2)
    virtual = replace(hca_of(infos[3], OLD), is_vf=True)
    made.hcas = (*made.hcas[:3], virtual)
    made.run(900)
    assert made.opened == []


def test_alike_again() -> None:
    """It ends when the last one is updated."""
    made = Machine(FirmwareDrift)
    give(made, OLD, 6)
    made.run(400)
    give(made, NEW, 6)
    made.run(60)
    assert made.kinds == []
