"""Roles and rails from boards, layers, GPUs and rates."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.model import PortId, Role
from fabricmon.parse.words import LinkLayer
from fabricmon.roles import Assignment, Candidate, Closeness, assign, closeness

IB, ETH = LinkLayer.INFINIBAND, LinkLayer.ETHERNET
MANAGEMENT_GBPS = 25.0


def candidate(
    number: int,
    board: str = "NDR",
    layer: LinkLayer = IB,
    gbps: float | None = 400.0,
    bus: int | None = None,
) -> Candidate:
    """Return a port; HCAs sit below host bridges of their own."""
    place = f"{number if bus is None else bus:02x}"
    address = f"0000:{place}:00.0"
    path = f"/sys/devices/pci0000:{place}/0000:{place}:01.0/{address}"
    return Candidate(
        PortId(f"mlx5_{number}", 1), board, layer, address, path, best_gbps=gbps
    )


def gpu_beside(port: Candidate) -> str:
    """Return a GPU that shares a PCIe switch with a port."""
    assert port.pci_path is not None
    return port.pci_path.rpartition("/")[0] + "/0000:f0:00.0"


def roles(ports: Sequence[Candidate], gpus: Sequence[str] = ()) -> list[Role]:
    """Return the roles in the order of the ports."""
    return [each.role for each in assign(ports, gpus, MANAGEMENT_GBPS)]


def rails(ports: Sequence[Candidate], gpus: Sequence[str] = ()) -> list[int | None]:
    """Return the rails in the order of the ports."""
    return [each.rail for each in assign(ports, gpus, MANAGEMENT_GBPS)]


COMPUTE, STORAGE, MANAGEMENT, UNKNOWN = (
    Role.COMPUTE,
    Role.STORAGE,
    Role.MANAGEMENT,
    Role.UNKNOWN,
)


class TestCompute:
    def test_largest_set_of_equal_ports(self) -> None:
        """Eight of one board are the rails, two of another are not."""
        ports = [candidate(n) for n in range(8)]
        ports += [candidate(8 + n, "BF3", ETH, 200.0) for n in range(2)]
        assert roles(ports) == [COMPUTE] * 8 + [STORAGE] * 2
        assert rails(ports) == [*range(8), None, None]

    def test_link_layers_are_told_apart(self) -> None:
        """One board can run both; a rail is of one layer."""
        ports = [candidate(0), candidate(1), candidate(2), candidate(3, layer=ETH)]
        assert roles(ports) == [COMPUTE] * 3 + [MANAGEMENT]

    def test_rails_follow_pci_as_numbers(self) -> None:
        """The order is that of domain, bus, device and function, not of text."""
        ports = [candidate(0, bus=0xA0), candidate(1, bus=0x0B), candidate(2, bus=0x9)]
        assert rails(ports) == [2, 1, 0]

    def test_domains_come_before_buses(self) -> None:
        """A Grace node has a domain for each HCA."""
        ports = [
            replace(candidate(0), pci_address="0010:03:00.0"),
            replace(candidate(1), pci_address="0002:03:00.0"),
            replace(candidate(2), pci_address="0000:03:00.0"),
        ]
        assert rails(ports) == [2, 1, 0]

    def test_software_devices_go_by_name(self) -> None:
        """Rxe devices have no address, and make rails all the same."""
        ports = [
            Candidate(PortId(f"rxe{n}", 1), "rxe", ETH, None, None) for n in (1, 0)
        ]
        assert rails(ports) == [1, 0]

    def test_fewer_than_two_equal_ports_are_unknown(self) -> None:
        """With one port of each board there is no set."""
        assert roles([candidate(0), candidate(1, "BF3")]) == [UNKNOWN] * 2
        assert roles([candidate(0)]) == [UNKNOWN]
        assert roles([]) == []

    def test_equal_sets_prefer_infiniband(self) -> None:
        """Of two sets of one size the InfiniBand one computes."""
        ports = [
            candidate(0, "X", ETH),
            candidate(1, "X", ETH),
            candidate(2),
            candidate(3),
        ]
        assert roles(ports) == [STORAGE, STORAGE, COMPUTE, COMPUTE]


class TestGpus:
    def test_closeness_splits_equal_boards(self) -> None:
        """Four beside GPUs are compute, two of the same board far away are not."""
        ports = [candidate(n) for n in range(6)]
        gpus = [gpu_beside(port) for port in ports[:4]]
        assert roles(ports, gpus) == [COMPUTE] * 4 + [STORAGE] * 2

    def test_closest_of_equal_sets(self) -> None:
        """Of two sets of one size the one beside the GPUs computes."""
        ports = [candidate(n) for n in range(4)]
        gpus = [gpu_beside(port) for port in ports[2:]]
        assert roles(ports, gpus) == [STORAGE, STORAGE, COMPUTE, COMPUTE]

    def test_rates_do_not_split_beside_gpus(self) -> None:
        """Two slow rails are faults to be found, not another role."""
        ports = [candidate(n, gbps=200.0 if n < 2 else 400.0) for n in range(8)]
        gpus = [gpu_beside(port) for port in ports]
        assert roles(ports, gpus) == [COMPUTE] * 8

    @pytest.mark.parametrize(
        ("gpu", "near"),
        [
            ("/sys/devices/pci0000:05/0000:05:01.0/0000:06:00.0", Closeness.SWITCH),
            (
                "/sys/devices/pci0000:05/0000:05:03.0/0000:06:00.0",
                Closeness.HOST_BRIDGE,
            ),
            ("/sys/devices/pci0000:07/0000:07:01.0/0000:08:00.0", Closeness.FAR),
        ],
    )
    def test_closeness(self, gpu: str, near: Closeness) -> None:
        """A shared bridge is closer than a shared processor."""
        assert closeness(candidate(5).pci_path, [gpu]) is near

    def test_nearest_gpu_counts(self) -> None:
        """One near GPU is enough, in whatever order they are listed."""
        far = "/sys/devices/pci0000:07/0000:07:01.0/0000:08:00.0"
        near = gpu_beside(candidate(5))
        path = candidate(5).pci_path
        assert closeness(path, [far, near]) is Closeness.SWITCH
        assert closeness(path, [near, far]) is Closeness.SWITCH
        assert closeness(None, [near]) is Closeness.FAR


class TestRates:
    def test_two_ports_of_another_rate_split(self) -> None:
        """Without GPUs, two equal ports of another rate are storage."""
        ports = [candidate(n) for n in range(4)]
        ports += [candidate(4 + n, gbps=100.0) for n in range(2)]
        assert roles(ports) == [COMPUTE] * 4 + [STORAGE] * 2

    @pytest.mark.parametrize("gbps", [200.0, None])
    def test_one_odd_port_stays_a_rail(self, gbps: float | None) -> None:
        """A slow rail, or one that was dead at boot, is still a rail."""
        ports = [candidate(n, gbps=gbps if n == 3 else 400.0) for n in range(8)]
        assert rails(ports) == [*range(8)]

    def test_odd_port_joins_the_larger_part(self) -> None:
        """Where a set splits, a port of a third rate goes with the compute part."""
        ports = [candidate(n) for n in range(4)]
        ports += [candidate(4, gbps=100.0), candidate(5, gbps=100.0)]
        ports += [candidate(6, gbps=10.0), candidate(7, gbps=None)]
        assert roles(ports)[-2:] == [COMPUTE, COMPUTE]


class TestOthers:
    def base(self) -> list[Candidate]:
        """Return two rails, beside which others have a role."""
        return [candidate(0), candidate(1)]

    @pytest.mark.parametrize(
        ("others", "role"),
        [
            ([candidate(8, "OTHER", IB, 100.0)], STORAGE),
            ([candidate(8, "BF3", ETH, 200.0)], MANAGEMENT),
            (
                [candidate(8, "LOM", ETH, 25.0), candidate(9, "LOM", ETH, 25.0)],
                MANAGEMENT,
            ),
            ([candidate(8, "CX", ETH, 100.0)] * 2, STORAGE),
            ([candidate(8, "CX", ETH, None)] * 2, STORAGE),
        ],
    )
    def test_storage_or_management(self, others: list[Candidate], role: Role) -> None:
        """Slow or lone Ethernet manages the node; the rest is storage."""
        ports = [*self.base(), candidate(2), *others]
        assert roles(ports)[3:] == [role] * len(others)


class TestForced:
    def test_forced_role_wins(self) -> None:
        """A role known from elsewhere takes the port out of the compute set."""
        ports = [candidate(n) for n in range(4)]
        ports[1] = replace(ports[1], forced=STORAGE)
        assert assign(ports, (), MANAGEMENT_GBPS) == (
            Assignment(COMPUTE, 0),
            Assignment(STORAGE),
            Assignment(COMPUTE, 1),
            Assignment(COMPUTE, 2),
        )

    def test_forced_port_joins_the_rails(self) -> None:
        """A replaced card of another board keeps its place among the rails."""
        ports = [candidate(n, "OEM" if n == 1 else "NDR") for n in range(4)]
        ports[1] = replace(ports[1], forced=COMPUTE)
        assert rails(ports) == [0, 1, 2, 3]

    def test_forced_alone(self) -> None:
        """A node of one port may be told what it is for."""
        assert rails([replace(candidate(0), forced=COMPUTE)]) == [0]


@given(st.permutations(range(8)))
def test_order_of_discovery_does_not_matter(order: list[int]) -> None:
    """Devices are found in any order; their rails are the same."""
    ports = [candidate(n) for n in order]
    assert rails(ports) == order
