from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fabricmon.config import Config, Devices, Expectation, Profile
from fabricmon.inventory import Changes, Inventory
from fabricmon.model import (
    Accelerators,
    BootInfo,
    DeviceList,
    Hca,
    HcaPort,
    LinkStatus,
    PortId,
    PortInfo,
    PortPlace,
    Role,
    Topology,
)
from fabricmon.parse.words import LinkLayer, PortState, Rate
from tests.fake_host import FakeHost
from tests.manifest import SYSFS
from tests.sources.polls import Sweep, every, only

NDR = Rate(400.0, 4, "NDR")
HDR = Rate(200.0, 4, "HDR")


def hca(
    number: int,
    name: str | None = None,
    board: str = "NDR",
    layer: LinkLayer = LinkLayer.INFINIBAND,
    **known: object,
) -> Hca:
    """Return the identity of a card; the number decides about GUID and address."""
    name = name or f"mlx5_{number}"
    address = f"0000:{number + 0x10:02x}:00.0"
    made = Hca(
        name=name,
        node_guid=f"0x{number + 0xAA00:016x}",
        sys_image_guid=None,
        hca_type="MT4129",
        board_id=board,
        firmware="28.41.1000",
        node_type="1: CA",
        pci_address=address,
        driver="mlx5_core",
        numa_node=0,
        is_vf=False,
        pf_address=None,
        ports=(HcaPort(PortId(name, 1), layer, None, ()),),
        plans=(),
        pci_path=f"/sys/devices/pci0000:{number:02x}/{address}",
    )
    return replace(made, **known)  # type: ignore[arg-type]


class Node:
    """An inventory and the cards that are in the node."""

    def __init__(self, *cards: Hca, config: Config | None = None) -> None:
        self.config = config or Config()
        self.inventory = Inventory(self.config)
        self.now = 100.0
        self.cards: list[Hca] = list(cards)
        self.poll()

    def poll(self, times: int = 1) -> Changes:
        """List the devices, then read the identity of each."""
        for _ in range(times):
            self.now += 5
            names = tuple(sorted(card.name for card in self.cards))
            changes = self.inventory.update(DeviceList(self.now, names))
        for card in self.cards:
            self.inventory.update(card)
        return changes

    def rate(
        self, number: int, rate: Rate, state: PortState = PortState.ACTIVE
    ) -> None:
        """Let a port be seen at a rate."""
        port = self.cards[number].ports[0].id
        self.inventory.update(LinkStatus(port, self.now, state, rate=rate))

    def restart(self) -> None:
        """Let a new inventory take over from the saved state, and poll."""
        saved = self.inventory.save()
        self.inventory = Inventory(self.config)
        self.inventory.restore(saved)
        self.poll()

    @property
    def missing(self) -> dict[str, int]:
        """Names of missing devices and the listings that lacked them."""
        found = self.inventory.missing(self.now)
        return {device.name: device.polls for device in found}

    @property
    def infos(self) -> dict[str, PortInfo]:
        """The ports of the node by name."""
        return {str(info.id): info for info in self.inventory.ports()}

    @property
    def rails(self) -> list[int | str | None]:
        """The rails of the ports in the order of the list."""
        return [info.rail for info in self.inventory.ports()]


def rails_of(*numbers: int) -> list[Hca]:
    """Return equal cards."""
    return [hca(number) for number in numbers]


class TestPresence:
    def test_appearing_and_disappearing(self) -> None:
        """A listing tells which devices came and which went."""
        node = Node(hca(0), hca(1))
        node.cards = [hca(1), hca(2)]
        assert node.poll() == Changes(("mlx5_2",), ("mlx5_0",))
        assert node.poll() == Changes()

    def test_ports_of_what_is_there(self) -> None:
        """Values of a lost device must not be shown: its ports are gone at once."""
        node = Node(hca(0), hca(1))
        node.cards = [hca(1)]
        node.poll()
        assert list(node.infos) == ["mlx5_1/1"]
        assert [each.name for each in node.inventory.hcas()] == ["mlx5_1"]

    def test_identity_that_comes_too_late_is_dropped(self) -> None:
        """A device that went away while it was read does not come back by that."""
        node = Node(hca(0))
        assert node.inventory.update(hca(1)) == Changes()
        assert list(node.infos) == ["mlx5_0/1"]

    def test_lone_identity(self) -> None:
        """Without any listing an identity counts: a single look has no history."""
        inventory = Inventory(Config())
        inventory.update(hca(0))
        assert [info.id for info in inventory.ports()] == [PortId("mlx5_0", 1)]

    def test_device_without_ports_yet(self) -> None:
        """A driver that is not ready is the same card once it is."""
        node = Node(hca(0, ports=()))
        assert node.infos == {}
        node.cards = [hca(0)]
        node.poll()
        assert list(node.infos) == ["mlx5_0/1"]
        node.cards = []
        node.poll()
        assert node.missing == {"mlx5_0": 1}


class TestMissing:
    def test_polls_are_counted(self) -> None:
        """A device that is gone is missing since the first listing without it."""
        node = Node(hca(0), hca(1))
        node.cards = [hca(0)]
        node.poll(3)
        (gone,) = node.inventory.missing(node.now)
        assert (gone.name, gone.polls, gone.expected) == ("mlx5_1", 3, False)
        assert gone.since == node.now - 10
        assert [str(info.id) for info in gone.ports] == ["mlx5_1/1"]

    def test_coming_back_ends_it(self) -> None:
        """A driver reload is over when the device is listed again."""
        node = Node(hca(0), hca(1))
        cards, node.cards = node.cards, []
        node.poll(2)
        node.cards = cards
        node.poll()
        assert node.missing == {}
        node.cards = [hca(0)]
        node.poll()
        assert node.missing == {"mlx5_1": 1}

    def test_rename_is_not_missing(self) -> None:
        """The same GUID and address under a new name is the same card."""
        node = Node(hca(0), hca(1))
        node.cards = [hca(0), hca(1, "ibp17s0")]
        node.poll()
        assert node.missing == {}
        assert list(node.infos) == ["ibp17s0/1", "mlx5_0/1"]

    def test_swapped_names(self) -> None:
        """Two cards that exchange names are both there."""
        node = Node(*rails_of(0, 1))
        node.cards = [hca(0, "mlx5_1"), hca(1, "mlx5_0")]
        node.poll(2)
        assert node.missing == {}
        assert {name: info.pci_address for name, info in node.infos.items()} == {
            "mlx5_0/1": "0000:11:00.0",
            "mlx5_1/1": "0000:10:00.0",
        }

    def test_name_taken_over_by_another_card(self) -> None:
        """A lost card whose name went to its neighbour is named by its address."""
        node = Node(*rails_of(0, 1))
        node.cards = [hca(1, "mlx5_0")]
        node.poll(2)
        node.poll()
        assert list(node.missing) == ["0000:10:00.0"]
        assert node.infos["mlx5_0/1"].pci_address == "0000:11:00.0"

    def test_moved_card(self) -> None:
        """Bus numbers shift when a bridge dies: the GUID tells that it is the same."""
        node = Node(*rails_of(0, 1))
        node.cards = [hca(0), hca(1, pci_address="0000:44:00.0")]
        node.poll(2)
        assert node.missing == {}

    def test_replaced_card(self) -> None:
        """Another card at the same address has taken the place of the old one."""
        node = Node(*rails_of(0, 1))
        node.cards = [hca(0), hca(1, node_guid="0x00000000000000ff")]
        node.poll(2)
        assert node.missing == {}

    def test_cards_without_guid_go_by_address(self) -> None:
        """EFA devices have a GUID of zeros: two of them are two."""
        zeros = f"0x{0:016x}"
        cards = [hca(n, f"rdmap{n}", node_guid=zeros) for n in range(2)]
        node = Node(*cards)
        node.cards = cards[:1]
        node.poll()
        assert node.missing == {"rdmap1": 1}

    def test_hot_plugged_extra_is_fine(self) -> None:
        """More than before is no fault."""
        node = Node(hca(0))
        node.cards.append(hca(1))
        node.poll(4)
        assert node.missing == {}

    def test_virtual_functions_come_and_go(self) -> None:
        """A pod that ends takes its virtual function with it."""
        virtual = hca(9, is_vf=True, pf_address="0000:10:00.0")
        node = Node(hca(0), virtual)
        node.cards = [hca(0)]
        node.poll(4)
        assert node.missing == {}

    def test_no_class_at_all(self) -> None:
        """Unloaded drivers make every device missing."""
        node = Node(*rails_of(0, 1))
        for _ in range(2):
            node.inventory.update(DeviceList(node.now, (), "ENOENT"))
        assert node.missing == {"mlx5_0": 2, "mlx5_1": 2}

    def test_unreadable_class_tells_nothing(self) -> None:
        """Not being able to look is not a loss."""
        node = Node(*rails_of(0, 1))
        assert node.inventory.update(DeviceList(node.now, (), "EACCES")) == Changes()
        assert node.missing == {}
        assert len(node.infos) == 2


class TestExpectedDevices:
    def test_never_seen(self) -> None:
        """A device that configuration names is missed from the first listing on."""
        node = Node(hca(0), config=Config(expected_devices=("mlx5_0", "mlx5_7")))
        node.poll(2)
        (gone,) = node.inventory.missing(node.now)
        assert (gone.name, gone.polls, gone.expected) == ("mlx5_7", 3, True)
        assert gone.never_seen

    def test_seen_at_last(self) -> None:
        """It stops once it is there."""
        node = Node(hca(0), config=Config(expected_devices=("mlx5_1",)))
        node.cards.append(hca(1))
        node.poll()
        assert node.missing == {}

    def test_known_and_gone(self) -> None:
        """A device that was there is missed once, and as expected."""
        node = Node(*rails_of(0, 1), config=Config(expected_devices=("mlx5_1",)))
        node.cards = [hca(0)]
        node.poll()
        (gone,) = node.inventory.missing(node.now)
        assert (gone.name, gone.expected) == ("mlx5_1", True)
        assert not gone.never_seen

    def test_renamed_is_there(self) -> None:
        """An expected device keeps its claim under another name."""
        node = Node(hca(0), config=Config(expected_devices=("mlx5_0",)))
        node.cards = [hca(0, "ibp3s0")]
        node.poll(2)
        assert node.missing == {}

    def test_excluded_is_not_expected(self) -> None:
        """What must not be looked at cannot be missed."""
        config = Config(
            expected_devices=("mlx5_0",), devices=Devices(exclude=("mlx5_0",))
        )
        assert Node(config=config).missing == {}


class TestRoles:
    def test_rails(self) -> None:
        """Equal cards are compute; the order of PCI makes the rails."""
        node = Node(*rails_of(*range(8)), hca(20, "mlx5_bond_0", "BF3"))
        assert node.rails == [*range(8), None]
        assert node.infos["mlx5_3/1"].role is Role.COMPUTE

    def test_dead_rail_keeps_its_number(self) -> None:
        """The rails above a lost card do not move down."""
        node = Node(*rails_of(0, 1, 2, 3))
        node.cards.pop(1)
        node.poll()
        assert node.rails == [0, 2, 3]
        assert node.inventory.missing(node.now)[0].ports[0].rail == 1

    def test_repaired_rail_takes_its_place(self) -> None:
        """A card that joins later is numbered by its address, not by its arrival."""
        node = Node(*rails_of(0, 2, 3))
        assert node.rails == [0, 1, 2]
        node.cards.append(hca(1))
        node.poll()
        assert [(str(i.id), i.rail) for i in node.inventory.ports()] == [
            (f"mlx5_{n}/1", n) for n in range(4)
        ]

    def test_replaced_card_of_another_board_stays_a_rail(self) -> None:
        """The vendor's replacement has another part number and the same place."""
        node = Node(*rails_of(*range(4)))
        node.cards[1] = hca(1, board="OEM", node_guid="0x00000000000000ff")
        node.poll()
        assert node.rails == [0, 1, 2, 3]

    def test_no_role_is_not_inherited(self) -> None:
        """A card that replaces one without a role may still make a set."""
        node = Node(hca(0), hca(1, board="OEM"))
        node.cards[1] = hca(1, node_guid="0x00000000000000ff")
        node.poll()
        assert node.rails == [0, 1]

    def test_virtual_function_has_its_owners_role_and_no_rail(self) -> None:
        """It carries compute traffic, but it is no rail of its own."""
        virtual = hca(9, is_vf=True, pf_address="0000:11:00.0")
        node = Node(*rails_of(0, 1), virtual)
        info = node.infos["mlx5_9/1"]
        assert (info.role, info.rail, info.pf) == (Role.COMPUTE, None, "mlx5_1")
        assert node.rails[:2] == [0, 1]

    def test_gpus_decide(self) -> None:
        """Among equal cards those beside GPUs are compute."""
        node = Node(*rails_of(*range(6)))
        assert node.rails == [*range(6)]
        gpus = tuple(
            f"/sys/devices/pci0000:{n:02x}/0000:{n:02x}:05.0" for n in range(4)
        )
        node.inventory.update(Accelerators(node.now, gpus))
        assert node.infos["mlx5_5/1"].role is Role.STORAGE

    def test_lost_gpu_takes_no_rail_away(self) -> None:
        """A GPU that fell off the bus does not change what its neighbour is for."""
        node = Node(*rails_of(*range(6)))
        gpus = tuple(
            f"/sys/devices/pci0000:{n:02x}/0000:{n:02x}:05.0" for n in range(4)
        )
        node.inventory.update(Accelerators(node.now, gpus))
        node.inventory.update(Accelerators(node.now, gpus[1:]))
        assert node.rails == [0, 1, 2, 3, None, None]

    def test_no_set_is_said(self) -> None:
        """A node on which nothing is equal says that it does not know."""
        note = Node(hca(0)).inventory.role_note
        assert note is not None
        assert "expect" in note
        assert Node(*rails_of(0, 1)).inventory.role_note is None
        assert Node().inventory.role_note is None


class TestRates:
    def test_storage_splits_off_by_rate(self) -> None:
        """Without GPUs two equal ports of another rate are not compute."""
        node = Node(*rails_of(*range(6)))
        for number in range(6):
            node.rate(number, NDR if number < 4 else HDR)
        assert node.rails == [0, 1, 2, 3, None, None]

    def test_slow_rail_stays_a_rail(self) -> None:
        """One slow port, or one that is not up, is judged, not regrouped."""
        node = Node(*rails_of(*range(4)))
        node.rate(0, HDR)
        for number in (1, 2):
            node.rate(number, NDR)
        assert node.rails == [0, 1, 2, 3]

    def test_best_rate_ever_counts(self) -> None:
        """Two rails that slow down later do not become storage."""
        node = Node(*rails_of(*range(4)))
        for number in range(4):
            node.rate(number, NDR)
        for number in (0, 1):
            node.rate(number, HDR)
        assert node.rails == [0, 1, 2, 3]

    @pytest.mark.parametrize("state", [PortState.DOWN, PortState.INIT, None])
    def test_rate_of_a_port_that_is_not_up_is_none(self, state: PortState) -> None:
        """A port that is down shows a default rate."""
        node = Node(*rails_of(*range(4)))
        for number in range(4):
            node.rate(number, Rate(10.0, 4, "SDR"), state)
        assert node.infos["mlx5_0/1"].expected_rate_gbps is None

    def test_incomplete_status_is_no_news(self) -> None:
        """A sample of the state alone repeats the rate of earlier."""
        node = Node(*rails_of(*range(4)))
        for card in node.cards:
            status = LinkStatus(card.ports[0].id, node.now, PortState.ACTIVE, rate=NDR)
            node.inventory.update(replace(status, complete=False))
        assert node.infos["mlx5_0/1"].expected_rate_gbps is None


class TestExpectedRate:
    def test_most_rails_set_the_rate(self) -> None:
        """Three at one rate make a fourth expected there."""
        node = Node(*rails_of(*range(4)))
        for number in range(3):
            node.rate(number, NDR)
        node.rate(3, HDR)
        info = node.infos["mlx5_3/1"]
        assert (info.expected_rate_gbps, info.expected_width) == (400.0, 4)

    def test_no_majority_expects_nothing(self) -> None:
        """Two against two could be either; two ports alone say nothing."""
        node = Node(*rails_of(*range(4)))
        for number in range(4):
            node.rate(number, NDR if number < 2 else HDR)
        assert node.infos["mlx5_0/1"].expected_rate_gbps is None
        pair = Node(*rails_of(0, 1))
        pair.rate(0, NDR)
        pair.rate(1, NDR)
        assert pair.infos["mlx5_0/1"].expected_rate_gbps is None

    def test_other_roles_are_not_compared(self) -> None:
        """100G storage beside 400G compute is not slow."""
        node = Node(*rails_of(*range(4)), hca(20, "storage0", "CX6"))
        for number in range(4):
            node.rate(number, NDR)
        assert node.infos["storage0/1"].expected_rate_gbps is None

    def test_configured_rate_wins(self) -> None:
        """What configuration says is not voted on, and has no width."""
        node = Node(*rails_of(*range(4)), config=Config(expected_rate_gbps=800.0))
        for number in range(4):
            node.rate(number, NDR)
        info = node.infos["mlx5_0/1"]
        assert (info.expected_rate_gbps, info.expected_width) == (800.0, None)

    def test_configured_rate_is_for_compute(self) -> None:
        """It holds for compute ports and where no role is known."""
        config = Config(expected_rate_gbps=400.0)
        node = Node(*rails_of(0, 1), hca(20, "mlx5_bond_0", "BF3"), config=config)
        assert node.infos["mlx5_bond_0/1"].expected_rate_gbps is None
        assert Node(hca(0), config=config).infos["mlx5_0/1"].expected_rate_gbps == 400


class TestConfigured:
    def test_expectations_win(self) -> None:
        """Role, rail, rate and being up are taken from the configuration."""
        expect = (
            Expectation(ports=("mlx5_0/1",), role="storage", up=False),
            Expectation(ports=("0000:11:*",), rail="A", rate_gbps=200.0),
        )
        node = Node(*rails_of(0, 1, 2), config=Config(expect=expect))
        first, second, third = node.inventory.ports()
        assert (first.role, first.rail, first.expected_up) == (
            Role.STORAGE,
            None,
            False,
        )
        assert (second.rail, second.expected_rate_gbps) == ("A", 200.0)
        assert (third.role, third.rail) == (Role.COMPUTE, 1)

    def test_profile_by_product(self) -> None:
        """The hardware profile of the machine counts once its product is known."""
        ports = (Expectation(ports=("*",), rate_gbps=400.0),)
        profile = Profile(product="DGX*", ports=ports, devices=8)
        node = Node(*rails_of(0, 1), config=Config(profiles=(profile,)))
        assert node.inventory.compute_shortfall == 0
        node.inventory.update(BootInfo(node.now, "boot-1", 10.0, "DGXH100"))
        assert node.infos["mlx5_0/1"].expected_rate_gbps == 400.0
        assert node.inventory.compute_shortfall == 6

    def test_topology(self) -> None:
        """Leaf and rail labels come from the topology."""
        node = Node(*rails_of(0, 1))
        place = PortPlace("mlx5_1/1", leaf="leaf-7", rail="r1")
        node.inventory.set_topology(Topology("rack-1", (place,)))
        info = node.infos["mlx5_1/1"]
        assert (info.leaf, info.rail) == ("leaf-7", "r1")

    def test_ignored_virtual_functions_have_no_ports(self) -> None:
        """A virtual function that is ignored is known by name alone."""
        virtual = hca(9, is_vf=True, pf_address="0000:10:00.0", ports=())
        assert "mlx5_9/1" not in Node(hca(0), virtual).infos


class TestLayout:
    def test_stands_still(self) -> None:
        """Polls that find nothing new leave layout and tuple as they are."""
        node = Node(*rails_of(0, 1))
        node.rate(0, NDR)
        layout, ports = node.inventory.layout, node.inventory.ports()
        node.poll(3)
        node.rate(0, NDR)
        node.inventory.update(BootInfo(node.now, "boot-1", 10.0, "X"))
        assert node.inventory.layout == layout
        assert node.inventory.ports() is ports

    def test_changes_with_an_identity(self) -> None:
        """New firmware is another identity."""
        node = Node(*rails_of(0, 1))
        layout = node.inventory.layout
        node.cards[0] = replace(node.cards[0], firmware="28.42.1000")
        node.poll()
        assert node.inventory.layout == layout + 1
        assert node.infos["mlx5_0/1"].firmware == "28.42.1000"


class TestReload:
    @pytest.mark.parametrize(
        ("before", "after", "reloaded"),
        [
            ("ifindex 4", "ifindex 9", True),
            ("ifindex 4", "ifindex 4", False),
            (None, "ifindex 4", False),
            ("ifindex 4", None, False),
        ],
    )
    def test_driver_instance(
        self,
        before: str | None,
        after: str | None,
        reloaded: bool,  # noqa: FBT001
    ) -> None:
        """Two known instances that differ are a reload; one unknown is not."""
        node = Node(hca(0, driver_instance=before))
        changes = node.inventory.update(hca(0, driver_instance=after))
        assert changes.reloaded is reloaded


class TestRestart:
    def test_device_lost_while_stopped(self) -> None:
        """A card that did not come back with the node is missed, with its ports."""
        node = Node(*rails_of(*range(8)))
        node.cards.pop(3)
        node.restart()
        assert node.missing == {"mlx5_3": 1}
        assert node.rails == [0, 1, 2, 4, 5, 6, 7]

    def test_slow_rails_stay_rails(self) -> None:
        """The best rate ever seen survives, so two slow rails are faults."""
        node = Node(*rails_of(*range(4)))
        for number in range(4):
            node.rate(number, NDR)
        node.restart()
        for number in range(4):
            node.rate(number, NDR if number < 2 else HDR)
        assert node.rails == [0, 1, 2, 3]

    def test_lost_gpu_stays_known(self) -> None:
        """A GPU that is gone after a reboot still marks its neighbour as compute."""
        node = Node(*rails_of(*range(6)))
        gpus = tuple(
            f"/sys/devices/pci0000:{n:02x}/0000:{n:02x}:05.0" for n in range(4)
        )
        node.inventory.update(Accelerators(node.now, gpus))
        node.restart()
        node.inventory.update(Accelerators(node.now, gpus[:2]))
        assert node.rails == [0, 1, 2, 3, None, None]

    def test_replaced_while_stopped(self) -> None:
        """A card of another board in the slot of a rail is that rail."""
        node = Node(*rails_of(*range(4)))
        node.cards[1] = hca(1, board="OEM", node_guid="0x00000000000000ff")
        node.restart()
        assert node.rails == [0, 1, 2, 3]
        node.restart()
        assert node.rails == [0, 1, 2, 3]

    def test_renamed_while_stopped(self) -> None:
        """Another kernel may name the cards anew: none is missing."""
        node = Node(*rails_of(0, 1))
        node.cards = [hca(n, f"ibp{n}s0") for n in range(2)]
        node.restart()
        node.poll()
        assert node.missing == {}

    def test_name_that_is_no_text(self) -> None:
        """A device of a broken name is not kept; the others are."""
        node = Node(hca(0), hca(1, "mlx\udcff"))
        node.poll()
        kept = node.inventory.save()
        assert b"mlx5_0" in kept
        assert b"mlx5_1" not in kept
        Inventory(Config()).restore(kept)

    def test_excluded_devices_are_forgotten(self) -> None:
        """A card that was taken out for good is named in `devices.exclude`."""
        node = Node(*rails_of(0, 1))
        node.cards = [hca(0)]
        node.config = Config(devices=Devices(exclude=("mlx5_1",)))
        node.restart()
        assert node.missing == {}

    @pytest.mark.parametrize(
        "saved", [b"", b"{}", b"\xff", b'{"version":2,"devices":[]}', b"[[["]
    )
    def test_unreadable_state_is_refused(self, saved: bytes) -> None:
        """State of another version, or damaged, is a ValueError and changes nothing."""
        node = Node(*rails_of(0, 1))
        with pytest.raises(ValueError, match="saved inventory"):
            node.inventory.restore(saved)
        assert len(node.infos) == 2


def rows(manifest: str, config: Config | None = None) -> Sequence[tuple[object, ...]]:
    """Return name, role and rail of every port of a recorded tree."""
    inventory = Inventory(config or Config())
    records = Sweep(FakeHost(SYSFS / manifest)).records()
    for devices in every(DeviceList, records):
        inventory.update(devices)
    for identity in every(Hca, records):
        inventory.update(identity)
    for status in every(LinkStatus, records):
        inventory.update(status)
    return [(str(info.id), info.role, info.rail) for info in inventory.ports()]


class TestRecordedNodes:
    def test_dgx(self) -> None:
        """Eight HCAs with holes in their numbers are eight rails."""
        found = rows("sysfs-dgx-two-init.manifest")
        assert [rail for _, _, rail in found] == [*range(8)]

    def test_names_are_not_the_order(self) -> None:
        """On GB300 the names sort otherwise than the PCI domains."""
        assert rows("sysfs-gb300-names-xdr.manifest") == [
            ("ibP16p3s0/1", Role.COMPUTE, 2),
            ("ibP18p3s0/1", Role.COMPUTE, 3),
            ("ibP2p3s0/1", Role.COMPUTE, 1),
            ("ibp3s0/1", Role.COMPUTE, 0),
            ("roceP22p1s0f0/1", Role.MANAGEMENT, None),
        ]

    def test_bond_is_no_rail(self) -> None:
        """The bond of a BlueField beside NDR ports is none of them."""
        found = rows("sysfs-h100-ndr-bond.manifest")
        assert found[-1] == ("mlx5_bond_0/1", Role.MANAGEMENT, None)
        assert [rail for _, _, rail in found[:-1]] == [0, 1, 2]

    def test_lost_device_of_a_pair(self) -> None:
        """A device of the first sample that the second lacks is missing."""
        inventory = Inventory(Config())
        for sample in ("t0", "t1"):
            manifest = Path(SYSFS / f"sysfs-device-lost-pair.{sample}.manifest")
            records = Sweep(FakeHost(manifest)).records()
            inventory.update(only(DeviceList, records))
            for identity in every(Hca, records):
                inventory.update(identity)
        assert [each.name for each in inventory.missing(0.0)] == ["rocep1s0f1"]
        assert [str(info.id) for info in inventory.ports()] == ["rocep1s0f0/1"]
        assert inventory.ports()[0].role is Role.COMPUTE
