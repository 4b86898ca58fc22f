"""The source that lists the node's own addresses."""

from fabricmon.config import Config
from fabricmon.host.protocol import InterfaceAddress, ReadError
from fabricmon.model import Target
from fabricmon.sources import addresses
from tests.fake_host import FakeHost


def polled(*found: InterfaceAddress) -> tuple[str, ...]:
    """Return the addresses that a node with these interfaces is known by."""
    host = FakeHost()
    host.interfaces = found
    (record,) = addresses.poll(host, Target(), Config())
    return record.addresses


def test_interfaces_of_the_node() -> None:
    """Each address once, in the form in which peers are named."""
    bond = InterfaceAddress("bond0", "10.1.0.7")
    assert polled(bond, bond, InterfaceAddress("eth1", "FD00:0::7")) == (
        "10.1.0.7",
        "fd00::7",
    )


def test_what_every_node_has() -> None:
    """Loopback, link-local, and the networks of containers and services."""
    assert (
        polled(
            InterfaceAddress("lo", "10.9.9.9"),
            InterfaceAddress("docker0", "172.17.0.1"),
            InterfaceAddress("kube-ipvs0", "10.96.0.1"),
            InterfaceAddress("eth0", "fe80::1"),
            InterfaceAddress("eth0", "169.254.1.1"),
        )
        == ()
    )


def test_too_many() -> None:
    """A node that routes for containers has thousands."""
    many = (InterfaceAddress("eth0", f"10.0.{n // 256}.{n % 256}") for n in range(999))
    assert len(polled(*many)) == addresses.MOST_ADDRESSES


def test_network_of_another() -> None:
    """What cannot be listed is not known, and no trouble."""
    host = FakeHost()
    host.interfaces = ReadError("ENODEV")
    assert addresses.poll(host, Target(), Config()) == ()
