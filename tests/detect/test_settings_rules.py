"""Settings of NCCL against what a node shows of its fabric."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.config import Settings
from fabricmon.detect.settings_case import Case, Fit, effective, version_of
from fabricmon.detect.settings_rdma import better_class, is_routable, survived_seconds
from fabricmon.detect.settings_rules import ALIKE, RULES
from fabricmon.model import NO_CLASS, Gid, LibrarySetting, PortId
from fabricmon.parse.words import LinkLayer
from tests.detect.settings_ground import (
    LOCAL,
    ROCE,
    STORAGE,
    bridging,
    case,
    checks,
    fits,
    ground,
    host_path,
    wrong,
)
from tests.views import port

GOOD = {
    "NCCL_IB_HCA": "=" + ",".join(f"mlx5_{n}:1" for n in range(8)),
    "NCCL_IB_GID_INDEX": "3",
    "NCCL_IB_TC": "106",
    "NCCL_IB_TIMEOUT": "22",
    "NCCL_IB_RETRY_CNT": "7",
    "NCCL_SOCKET_IFNAME": "=bond0",
    "NCCL_IB_DISABLE": "0",
    "NCCL_NET_GDR_LEVEL": "PIX",
}
ALL_RAILS = "=" + ",".join(f"mlx5_{n}:1" for n in range(8))


class TestWhole:
    def test_a_sound_configuration(self) -> None:
        """Everything that is right is said to be, and nothing else is said."""
        assert {check.fit for check in checks(case(**GOOD))} == {Fit.OK}
        judged = {check.variable for check in checks(case(**GOOD))}
        assert set(GOOD) - {"NCCL_IB_RETRY_CNT"} <= judged

    def test_nothing_set(self) -> None:
        """The library's own choices fit, but for the class of traffic (priority 0)."""
        assert [check.variable for check in wrong(case())] == ["NCCL_IB_TC"]

    def test_a_job_within_one_node(self) -> None:
        """It uses no fabric: its settings are nobody's concern."""
        alone = replace(case(NCCL_IB_DISABLE="1", NCCL_IB_TIMEOUT="1"), nodes=1)
        assert checks(alone) == ()

    def test_each_mismatch_names_a_better_value(self) -> None:
        """The variable, what it is set to, where, what shows, and what would fit."""
        (check,) = wrong(case(**GOOD | {"NCCL_IB_TIMEOUT": "14"}))
        assert (check.variable, check.value) == ("NCCL_IB_TIMEOUT", "14")
        assert (check.origin, check.better) == ("environment", "20")
        assert check.shown.startswith("survives 0.5 s")

    def test_every_row_has_variables(self) -> None:
        """The table says for what each row stands, once."""
        names = [name for rule in RULES for name in rule.variables]
        assert len(names) == len(set(names))
        assert all(rule.must for rule in RULES)

    @given(
        st.dictionaries(
            st.sampled_from(sorted(ALIKE | set(GOOD) | {"NCCL_PXN_DISABLE"})),
            st.text(max_size=12) | st.integers(-(1 << 70), 1 << 70).map(str),
        )
    )
    def test_any_value(self, values: dict[str, str]) -> None:
        """Whatever is set is judged; a mismatch says what would be better."""
        for check in checks(case(**values)):
            assert check.shown
            assert check.better or check.fit is not Fit.MISMATCH


class TestDevices:
    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            ("mlx5_0,mlx5_9", "no such port: mlx5_9"),
            ("mlx5_0:2,mlx5", "no such port: mlx5_0:2"),
            ("=mlx5_0", "7 of 8 ACTIVE rails idle"),
            ("^mlx5_7", "1 of 8 ACTIVE rails idle: mlx5_7/1"),
        ],
    )
    def test_wrong_lists(self, value: str, shown: str) -> None:
        """Names that are none, and rails that stay idle; all rails are the advice."""
        found = wrong(case(**GOOD | {"NCCL_IB_HCA": value}))
        assert any(check.shown.startswith(shown) for check in found)
        assert {check.better for check in found} == {ALL_RAILS}

    @pytest.mark.parametrize("value", ["mlx5", "mlx5_0,mlx5_1,mlx5", "^ens", "^docker"])
    def test_right_lists(self, value: str) -> None:
        """Beginnings and exclusions that come to all rails."""
        assert wrong(case(**GOOD | {"NCCL_IB_HCA": value})) == ()

    def test_a_name_that_another_begins_with(self) -> None:
        """mlx5_1 takes mlx5_10, the storage port, as well: ``=`` is the advice."""
        where = ground((*ROCE, STORAGE))
        names = ",".join(f"mlx5_{n}" for n in range(8))
        (check,) = wrong(case(where, **GOOD | {"NCCL_IB_HCA": names}))
        assert check.shown == "takes mlx5_10/1 (storage) as well"
        assert wrong(case(where, **GOOD)) == ()

    def test_a_port_of_another_kind(self) -> None:
        """NCCL cannot connect InfiniBand with RoCE."""
        other = replace(STORAGE, link_layer=LinkLayer.INFINIBAND)
        found = wrong(case(ground((*ROCE, other)), **GOOD | {"NCCL_IB_HCA": "mlx5"}))
        assert [check.shown for check in found] == ["takes mlx5_10/1 (storage) as well"]

    def test_a_port_without_a_link(self) -> None:
        """One that is named and never was ACTIVE is told at the port."""
        where = ground(down=("mlx5_3",))
        (check,) = wrong(case(where, **GOOD))
        assert check.port == PortId("mlx5_3", 1)
        assert check.shown == "mlx5_3/1 is DOWN"

    def test_an_outage_is_no_configuration(self) -> None:
        """A port that was ACTIVE before has a fault, which others tell."""
        where = ground(down=("mlx5_3",))
        ports = tuple(replace(each, was_active=True) for each in where.ports)
        assert wrong(case(replace(where, ports=ports), **GOOD)) == ()

    def test_ranks_with_devices_of_their_own(self) -> None:
        """Rails that one rank leaves to another of its job are not idle."""
        ranks = [case(**GOOD | {"NCCL_IB_HCA": f"=mlx5_{rank}"}) for rank in range(8)]
        assert wrong(*ranks) == ()
        assert len(wrong(*ranks[1:])) == 7

    @pytest.mark.parametrize("part", [{"processes": 2}, {"in_pod": True}])
    def test_few_processes_may_want_few_rails(self, part: dict[str, Any]) -> None:
        """What a job was given is not known, so nothing is said."""
        narrow = replace(case(**GOOD | {"NCCL_IB_HCA": "=mlx5_0"}), **part)
        assert fits("NCCL_IB_HCA", narrow) == {Fit.UNKNOWN}

    def test_a_pod_may_have_its_own_devices(self) -> None:
        """A name that the node does not know proves nothing there."""
        pod = replace(case(**GOOD | {"NCCL_IB_HCA": "net1"}), in_pod=True)
        assert Fit.MISMATCH not in fits("NCCL_IB_HCA", pod)


class TestNetwork:
    def test_rdma_switched_off(self) -> None:
        """Ports are ACTIVE and not used; all else about RDMA says nothing then."""
        off = case(**GOOD | {"NCCL_IB_DISABLE": "1", "NCCL_IB_TIMEOUT": "1"})
        (check,) = wrong(off)
        assert (check.variable, check.better) == ("NCCL_IB_DISABLE", "0")
        assert check.shown == "8 ACTIVE RDMA ports"

    def test_sockets(self) -> None:
        """The same by name."""
        assert [c.variable for c in wrong(case(**GOOD | {"NCCL_NET": "Socket"}))] == [
            "NCCL_NET"
        ]
        assert wrong(case(**GOOD | {"NCCL_NET": "IB"})) == ()

    def test_without_rdma_ports(self) -> None:
        """Nothing is lost where there is none, or none but EFA with its own plugin."""
        efa = port(link_layer=LinkLayer.ETHERNET, driver="efa")
        for infos in ((), (efa,)):
            assert wrong(case(ground(infos), NCCL_IB_DISABLE="1")) == ()

    @pytest.mark.parametrize("value", ["docker0", "veth", "lo", "=eth", "eno2", "ib"])
    def test_interfaces_that_do_not_serve(self, value: str) -> None:
        """Within the node, absent, or not up: the interface that is no rail is better."""
        (check,) = wrong(case(**GOOD | {"NCCL_SOCKET_IFNAME": value}))
        assert (check.variable, check.better) == ("NCCL_SOCKET_IFNAME", "=bond0")

    @pytest.mark.parametrize(
        "value", ["bond0", "^docker0,lo", "eth", "=eth3", "eno,bo"]
    )
    def test_interfaces_that_serve(self, value: str) -> None:
        """One of those that are chosen leads to other nodes and is up."""
        assert fits("NCCL_SOCKET_IFNAME", case(NCCL_SOCKET_IFNAME=value)) == {Fit.OK}

    def test_interfaces_of_a_pod(self) -> None:
        """A pod has its own, which the node does not see."""
        pod = replace(case(NCCL_SOCKET_IFNAME="docker0"), in_pod=True)
        assert fits("NCCL_SOCKET_IFNAME", pod) == {Fit.UNKNOWN}


class TestAddresses:
    @pytest.mark.parametrize(
        ("index", "right"), [(0, 0), (1, 0), (2, 0), (3, 1), (9, 0)]
    )
    def test_an_index(self, index: int, right: int) -> None:
        """Only the routable address in version 2 will do; a fault of all ports is one."""
        found = wrong(case(**GOOD | {"NCCL_IB_GID_INDEX": str(index)}))
        assert len(found) == (0 if right else 1)
        assert {check.better for check in found} <= {"3"}
        assert {check.port for check in found} <= {None}

    def test_one_port_without_it(self) -> None:
        """An index that is another address on one port is told of that port."""
        where = ground()
        first = where.gids[0]
        moved = replace(
            first, gids=tuple(replace(g, index=g.index + 2) for g in first.gids)
        )
        where = replace(where, gids=(moved, *where.gids[1:]))
        (check,) = wrong(case(where, **GOOD))
        assert check.port == ROCE[0].id
        assert (check.better or "").startswith("-1")

    def test_the_library_chooses(self) -> None:
        """By itself, or because it is told to; before 2.21 it took index 0."""
        assert wrong(case(**GOOD | {"NCCL_IB_GID_INDEX": "-1"})) == ()
        unset = {n: v for n, v in GOOD.items() if n != "NCCL_IB_GID_INDEX"}
        assert wrong(case(**unset)) == ()
        old = replace(case(**unset), version=(2, 18))
        assert {check.variable for check in wrong(old)} == {"NCCL_IB_GID_INDEX"}
        assert {check.origin for check in wrong(old)} == {"default"}

    def test_infiniband(self) -> None:
        """Its addresses are not chosen by index."""
        where = ground((port("mlx5_0", rail=0),))
        assert fits("NCCL_IB_GID_INDEX", case(where, NCCL_IB_GID_INDEX="0")) == set()

    def test_tables_that_cannot_be_read(self) -> None:
        """Nothing is said of what is not seen."""
        where = replace(ground(), gids=())
        assert fits("NCCL_IB_GID_INDEX", case(where, **GOOD)) == {Fit.UNKNOWN}

    @pytest.mark.parametrize(
        ("gid", "kind", "routable"),
        [
            ("0000:0000:0000:0000:0000:ffff:0a14:1e02", "RoCE v2", True),
            ("2001:0db8:0000:0000:0000:0000:0000:0001", "RoCE v2", True),
            ("0000:0000:0000:0000:0000:ffff:a9fe:0001", "RoCE v2", False),
            (LOCAL, "RoCE v2", False),
            ("0000:0000:0000:0000:0000:ffff:0a14:1e02", "IB/RoCE v1", False),
            ("nonsense", "RoCE v2", False),
        ],
    )
    def test_routable(self, gid: str, kind: str, *, routable: bool) -> None:
        """Version 2 and no address of a link alone."""
        assert is_routable(Gid(0, gid, kind)) is routable


class TestPriorities:
    @pytest.mark.parametrize(
        ("value", "right"), [("106", 1), ("104", 1), ("0", 0), ("96", 0)]
    )
    def test_a_class(self, value: str, right: int) -> None:
        """DSCP 26 goes to priority 3, which has PFC and ECN; all else does not."""
        found = wrong(case(**GOOD | {"NCCL_IB_TC": value}))
        assert len(found) == (0 if right else 1)
        assert {check.better for check in found} <= {"106"}

    @pytest.mark.parametrize(
        ("parts", "fit"),
        [
            ({"ecn_enabled": ()}, Fit.MISMATCH),
            ({"ecn_enabled": None}, Fit.OK),
            ({"pfc_enabled": ()}, Fit.MISMATCH),
            ({"pfc_enabled": None}, Fit.UNKNOWN),
            ({"dscp_to_priority": None}, Fit.UNKNOWN),
            ({"dscp_to_priority": ()}, Fit.UNKNOWN),
            ({"traffic_class": 0}, Fit.MISMATCH),
            ({"traffic_class": NO_CLASS}, Fit.OK),
        ],
    )
    def test_what_the_port_has(self, parts: dict[str, object], fit: Fit) -> None:
        """PFC and, where it can be read, ECN; the driver's own class wins."""
        path = host_path(priorities=tuple(bridging(i, **parts) for i in ROCE))
        where = ground(host_path=path)
        assert fits("NCCL_IB_TC", case(where, **GOOD)) == {fit}

    def test_a_class_that_the_driver_enforces(self) -> None:
        """Then none has to be set."""
        uses = tuple(bridging(info, traffic_class=106) for info in ROCE)
        where = ground(host_path=host_path(priorities=uses))
        unset = {n: v for n, v in GOOD.items() if n != "NCCL_IB_TC"}
        assert wrong(case(where, **unset)) == ()

    def test_fabrics_without_pfc(self) -> None:
        """Nobody promised a lossless class, so none is missed where none is set."""
        path = host_path(priorities=tuple(bridging(i, pfc_enabled=()) for i in ROCE))
        unset = {n: v for n, v in GOOD.items() if n != "NCCL_IB_TC"}
        assert wrong(case(ground(host_path=path), **unset)) == ()

    def test_a_better_class(self) -> None:
        """The usual one if it is right, else the first that is."""
        five = tuple(5 if dscp >= 40 else 0 for dscp in range(64))
        use = bridging(
            ROCE[0], pfc_enabled=(5,), ecn_enabled=None, dscp_to_priority=five
        )
        assert better_class(use) == str(40 * 4 + 2)


class TestTimeouts:
    @pytest.mark.parametrize(
        ("power", "retries", "seconds"),
        [(14, 7, 0.47), (18, 7, 7.52), (20, 7, 30.06), (22, 7, 120.26), (0, 7, inf)],
    )
    def test_how_long_it_lasts(self, power: int, retries: int, seconds: float) -> None:
        """4.096 us * 2^timeout, for each retry; 0 waits for ever."""
        assert survived_seconds(power, retries) == pytest.approx(seconds, rel=0.01)

    @pytest.mark.parametrize(
        ("values", "variable", "better"),
        [
            ({"NCCL_IB_TIMEOUT": "14"}, "NCCL_IB_TIMEOUT", "20"),
            (
                {"NCCL_IB_TIMEOUT": "18", "NCCL_IB_RETRY_CNT": "3"},
                "NCCL_IB_RETRY_CNT",
                "7",
            ),
            ({"NCCL_IB_RETRY_CNT": "1"}, "NCCL_IB_RETRY_CNT", "7"),
        ],
    )
    def test_too_short(
        self, values: dict[str, str], variable: str, better: str
    ) -> None:
        """Whichever of the two is at fault is named."""
        kept = {
            n: v for n, v in GOOD.items() if "TIMEOUT" not in n and "RETRY" not in n
        }
        (check,) = wrong(case(**kept | values))
        assert (check.variable, check.better) == (variable, better)

    @pytest.mark.parametrize(
        ("version", "fit"),
        [((2, 13), Fit.MISMATCH), ((2, 14), Fit.OK), ((2, 23), Fit.OK)],
    )
    def test_defaults_by_version(self, version: tuple[int, int], fit: Fit) -> None:
        """14 before 2.14, 18 before 2.23, 20 since."""
        assert fits("NCCL_IB_TIMEOUT", replace(case(), version=version)) == {fit}

    def test_a_site_that_needs_more(self) -> None:
        """How long links train is the site's to say."""
        where = ground(limits=Settings(retrain_seconds=60))
        (check,) = wrong(case(where, **GOOD | {"NCCL_IB_TIMEOUT": "20"}))
        assert check.better == "21"

    def test_devices_that_are_none(self) -> None:
        """The timeout is judged whichever devices are named."""
        found = wrong(case(NCCL_IB_HCA="mlx5_77", NCCL_IB_TIMEOUT="14"))
        assert "NCCL_IB_TIMEOUT" in {check.variable for check in found}

    @pytest.mark.parametrize(
        ("variable", "better"), [("NCCL_IB_RETRY_CNT", "7"), ("NCCL_IB_TIMEOUT", "20")]
    )
    def test_no_number(self, variable: str, better: str) -> None:
        """It says so; the other of the two is judged all the same."""
        (check,) = wrong(case(**GOOD | {variable: "abc"}))
        assert (check.variable, check.shown) == (variable, "no number")
        assert check.better == better
        other = {"NCCL_IB_RETRY_CNT": "abc", "NCCL_IB_TIMEOUT": "14"}
        assert len(wrong(case(**GOOD | other))) == 2

    def test_hexadecimal(self) -> None:
        """The library reads it, so it is a number."""
        assert wrong(case(**GOOD | {"NCCL_IB_TIMEOUT": "0x16"})) == ()

    def test_no_version(self) -> None:
        """Retries alone say nothing where the timeout's default is not known."""
        told = (LibrarySetting("NCCL_IB_RETRY_CNT", "2", "log"),)
        assert fits("NCCL_IB_RETRY_CNT", Case(ground(), told)) == {Fit.UNKNOWN}


class TestGpuDirect:
    @pytest.mark.parametrize(
        ("value", "right"), [("0", 0), ("LOC", 0), ("PHB", 1), ("3", 1)]
    )
    def test_the_level(self, value: str, right: int) -> None:
        """Off copies each byte through the host."""
        found = wrong(case(**GOOD | {"NCCL_NET_GDR_LEVEL": value}))
        assert len(found) == (0 if right else 1)

    @pytest.mark.parametrize(
        ("parts", "variable", "fit"),
        [
            ({"peer_memory": False}, "nvidia_peermem", Fit.MISMATCH),
            ({"peer_memory": False, "dma_buf": True}, "nvidia_peermem", Fit.OK),
            ({"peer_memory": False, "dma_buf": None}, "nvidia_peermem", Fit.UNKNOWN),
            ({"iommu_translates": True}, "iommu", Fit.MISMATCH),
            ({"acs_redirects": True}, "pcie_acs", Fit.MISMATCH),
            ({"acs_redirects": None}, "pcie_acs", Fit.UNKNOWN),
        ],
    )
    def test_what_the_node_must_have(
        self, parts: dict[str, object], variable: str, fit: Fit
    ) -> None:
        """Peer memory or dma-buf, no translation, no redirection on switches."""
        where = ground(host_path=host_path(**parts))
        assert fits(variable, case(where, **GOOD)) == {fit}

    def test_dma_buf_switched_off(self) -> None:
        """A setting may take away what the driver has."""
        where = ground(host_path=host_path(peer_memory=False, dma_buf=True))
        told = case(where, **GOOD | {"NCCL_DMABUF_ENABLE": "0"})
        assert fits("nvidia_peermem", told) == {Fit.MISMATCH}

    def test_one_rail_far_from_every_gpu(self) -> None:
        """The odd one among its peers, told at its port; a machine built so is none."""
        near = tuple(info.id.device for info in ROCE[1:])
        where = ground(host_path=host_path(near_gpus=near))
        (check,) = wrong(case(where, **GOOD))
        assert (check.variable, check.port) == ("pcie_placement", ROCE[0].id)
        assert wrong(case(ground(host_path=host_path(near_gpus=())), **GOOD)) == ()

    def test_device_that_came_after_the_look(self) -> None:
        """One that got another name since is not far: nobody has looked at it."""
        names = tuple(info.id.device for info in ROCE[1:])
        where = ground(host_path=host_path(near_gpus=names, devices=names))
        assert wrong(case(where, **GOOD)) == ()


class TestPaths:
    @pytest.mark.parametrize(
        ("rail_only", "name", "value", "fit"),
        [
            (True, "NCCL_CROSS_NIC", "1", Fit.MISMATCH),
            (True, "NCCL_CROSS_NIC", "0", Fit.OK),
            (True, "NCCL_CROSS_NIC", "2", Fit.UNKNOWN),
            (False, "NCCL_CROSS_NIC", "1", Fit.OK),
            (None, "NCCL_CROSS_NIC", "1", Fit.UNKNOWN),
            (True, "NCCL_PXN_DISABLE", "1", Fit.MISMATCH),
        ],
    )
    def test_rails(
        self,
        rail_only: bool | None,  # noqa: FBT001
        name: str,
        value: str,
        fit: Fit,
    ) -> None:
        """Where no path leads from rail to rail, traffic must keep to its own."""
        where = ground(limits=Settings(rail_only=rail_only))
        assert fits(name, case(where, **GOOD | {name: value})) == {fit}

    @pytest.mark.parametrize(
        ("wanted", "values", "variable", "fit"),
        [
            (4, {}, "NCCL_IB_QPS_PER_CONNECTION", Fit.MISMATCH),
            (4, {"NCCL_IB_QPS_PER_CONNECTION": "4"}, "NCCL_IB_QPS_PER_CONNECTION", Fit.OK),
            (None, {"NCCL_IB_QPS_PER_CONNECTION": "2"}, "NCCL_IB_QPS_PER_CONNECTION",
             Fit.UNKNOWN),
            (None, {"NCCL_IB_QPS_PER_CONNECTION": "500"}, "NCCL_IB_QPS_PER_CONNECTION",
             Fit.MISMATCH),
            (None, {"NCCL_IB_SPLIT_DATA_ON_QPS": "1"}, "NCCL_IB_SPLIT_DATA_ON_QPS",
             Fit.MISMATCH),
        ],
    )  # fmt: skip
    def test_queue_pairs(
        self, wanted: int | None, values: dict[str, str], variable: str, fit: Fit
    ) -> None:
        """As many as the site says; splitting needs more than one."""
        where = ground(limits=Settings(queue_pairs=wanted))
        assert fits(variable, case(where, **GOOD | values)) == {fit}

    @pytest.mark.parametrize(
        ("adaptive", "values", "fits_"),
        [
            (True, {"NCCL_IB_ADAPTIVE_ROUTING": "0"}, {Fit.MISMATCH}),
            (True, {"NCCL_IB_ADAPTIVE_ROUTING": "1"}, {Fit.OK}),
            (False, {"NCCL_IB_ADAPTIVE_ROUTING": "1"}, {Fit.MISMATCH}),
            (True, {}, {Fit.MISMATCH}),
            (None, {"NCCL_IB_ADAPTIVE_ROUTING": "1"}, {Fit.UNKNOWN}),
            (None, {}, set()),
        ],
    )
    def test_adaptive_routing(
        self,
        adaptive: bool | None,  # noqa: FBT001
        values: dict[str, str],
        fits_: set[Fit],
    ) -> None:
        """As the site says of its switches; on RoCE it is off unless set."""
        where = ground(limits=Settings(adaptive_routing=adaptive))
        assert fits("NCCL_IB_ADAPTIVE_ROUTING", case(where, **GOOD | values)) == fits_


class TestRanks:
    def test_two_values(self) -> None:
        """A variable that differs between the ranks of a job is named with both."""
        one, other = case(**GOOD), case(**GOOD | {"NCCL_IB_TIMEOUT": "21"})
        (check,) = wrong(one, other)
        assert (check.variable, check.value) == ("NCCL_IB_TIMEOUT", "21 / 22")

    def test_set_and_not_set(self) -> None:
        """Where environments are known, what one rank lacks differs as well."""
        less = {n: v for n, v in GOOD.items() if n != "NCCL_IB_RETRY_CNT"}
        (check,) = wrong(case(**GOOD), case(**less))
        assert check.value == "7 / not set"
        partly = replace(case(**less), complete=False)
        assert wrong(case(**GOOD), partly) == ()

    def test_other_jobs_and_other_variables(self) -> None:
        """Jobs may differ, and ranks in what is their own."""
        one = replace(case(**GOOD), job="a")
        other = replace(case(**GOOD | {"NCCL_IB_TIMEOUT": "21"}), job="b")
        assert wrong(one, other) == ()
        own = case(**GOOD | {"NCCL_DEBUG_FILE": "b"})
        assert wrong(case(**GOOD | {"NCCL_DEBUG_FILE": "a"}), own) == ()


class TestWhoWins:
    def test_the_order(self) -> None:
        """What a log tells, the environment, the job's file, the user's, the site's."""
        origins = ("/etc/nccl.conf", "/home/u/.nccl.conf", "job", "environment", "log")
        settings = [LibrarySetting("NCCL_NET", each, each) for each in origins]
        for count in range(len(settings), 0, -1):
            (won,) = effective(settings[:count])
            assert won.origin == origins[count - 1]

    @pytest.mark.parametrize(
        ("text", "version"),
        [
            ("2.21.5", (2, 21)),
            ("2.27", (2, 27)),
            ("", None),
            (None, None),
            ("x.y", None),
        ],
    )
    def test_versions(self, text: str | None, version: tuple[int, int] | None) -> None:
        """Major and minor decide."""
        assert version_of(text) == version
