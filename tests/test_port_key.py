"""What a port is remembered by."""

from __future__ import annotations

from dataclasses import replace

from fabricmon.model import PortId
from fabricmon.port_key import port_key
from tests.views import port


def test_a_renamed_card_is_the_same() -> None:
    """The PCI address stays when the name changes (N34)."""
    old = port("mlx5_3", pci_address="0000:5e:00.0")
    new = replace(old, id=PortId("ibp94s0", 1))
    assert port_key(old) == port_key(new) == "0000:5e:00.0/1"


def test_ports_of_one_card_are_two() -> None:
    """A card with two ports has two pasts."""
    one = port("mlx4_0", 1, pci_address="0000:5e:00.0")
    assert port_key(one) != port_key(port("mlx4_0", 2, pci_address="0000:5e:00.0"))


def test_software_devices_go_by_name() -> None:
    """Soft-RoCE has no PCI address."""
    assert port_key(port("rxe0")) == "rxe0/1"
