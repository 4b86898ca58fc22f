import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.parse.pci_path import (
    host_bridge,
    pci_address,
    pci_functions,
    pci_order,
    up_to_function,
)

DEEP = "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:18:00.0"


@pytest.mark.parametrize(
    ("address", "order"),
    [
        ("0000:1a:00.0", (0, 0x1A, 0, 0)),
        ("10000:e1:1f.7", (0x10000, 0xE1, 0x1F, 7)),
        ("pci0000:18", None),
        ("mlx5_core.sf.4", None),
        ("", None),
        (None, None),
    ],
)
def test_order(address: str | None, order: tuple[int, ...] | None) -> None:
    """Domain, bus, device and function are hexadecimal numbers."""
    assert pci_order(address) == order


def test_functions_on_the_way() -> None:
    """Root port, both ends of a switch, the function."""
    names = ("0000:15:01.0", "0000:16:00.0", "0000:17:02.0", "0000:18:00.0")
    assert pci_functions(DEEP) == names
    assert pci_address(DEEP) == "0000:18:00.0"
    assert host_bridge(DEEP) == "pci0000:15"


def test_auxiliary_device() -> None:
    """What lies below the function is cut."""
    below = f"{DEEP}/mlx5_core.sf.4"
    assert (pci_address(below), up_to_function(below)) == ("0000:18:00.0", DEEP)


def test_platform_device() -> None:
    """A device that is not on PCI has no address."""
    path = "/sys/devices/platform/HISI00D1:00"
    assert (pci_address(path), host_bridge(path), up_to_function(path)) == (
        None,
        None,
        None,
    )


@given(st.text(max_size=60))
def test_any_text_is_survived(text: str) -> None:
    """No path makes the readers fail."""
    for reader in (pci_order, pci_address, pci_functions, host_bridge, up_to_function):
        reader(text)
