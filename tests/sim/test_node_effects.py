"""What effects do to the files of a node, as an agent reads them."""

import json
from typing import Any

import pytest

from fabricmon.host.protocol import ReadError
from fabricmon.host.replay import ReplayHost
from fabricmon.sim.effects import (
    Bridged,
    Counting,
    DeviceHealth,
    Effect,
    Frozen,
    Gone,
    Inflow,
    JobEnds,
    KernelLines,
    Level,
    LogLines,
    Maintenance,
    ModuleReading,
    Mute,
    NetdevGone,
    NodeFile,
    OnPriority,
    Outage,
    PcieLink,
    PortText,
    Preset,
    Reboot,
    Reset,
    Silence,
    SimPort,
    Stall,
    Step,
    Unreadable,
    WallStep,
)
from fabricmon.sim.host import simulated_host
from fabricmon.sim.meters import Meter, Per
from fabricmon.sim.scenario import Sight
from tests.sim import fleets

NODE = 1
PORT = SimPort(NODE, "mlx5_4")  # rail 3
ROCE = "H100-RoCE-8x400-DCQCN"
FOREVER = float("inf")


def host(*effects: Effect, node: int = NODE, **keys: Any) -> ReplayHost:
    """Return a node of a small fleet with these effects."""
    usual: dict[str, Any] = {"jobs": (fleets.steady_job(),)}
    return simulated_host(fleets.stage(*effects, **(usual | keys)), node)


def at(played: ReplayHost, t: float, file: str, port: SimPort = PORT) -> str:
    """Return the text of a port's file at ``t``."""
    played.advance(t)
    return fleets.text(played, fleets.path(port, file))


def net(played: ReplayHost, t: float, file: str, netdev: str = "ibp91s0") -> str:
    """Return the text of a network device's file at ``t``."""
    played.advance(t)
    return fleets.text(played, f"/sys/class/net/{netdev}/{file}")


def kernel(played: ReplayHost) -> list[str]:
    """Return the new lines of the kernel's log."""
    lines = played.kernel_log()
    return [] if isinstance(lines, ReadError) else [line.text for line in lines]


def statistic(played: ReplayHost, t: float, name: str, netdev: str) -> int | None:
    """Return a driver statistic at ``t``."""
    played.advance(t)
    found = played.statistics(netdev)
    if isinstance(found, ReadError):
        return None
    return next(each.value for each in found if each.name == name)


def test_an_outage_shows_in_every_file() -> None:
    """Down and polling, then INIT, then ACTIVE; every counter of it moves once."""
    played = host(Outage(PORT, 100.0, 110.0, init=3.0))
    assert at(played, 99.0, "state") == "4: ACTIVE"
    assert at(played, 101.0, "state") == "1: DOWN"
    assert at(played, 101.0, "phys_state") == "2: Polling"
    assert at(played, 101.0, "counters/link_downed") == "1"
    assert net(played, 101.0, "carrier") == "0"
    assert net(played, 101.0, "carrier_down_count") == "1"
    assert statistic(played, 101.0, "link_down_events_phy", "ibp91s0") == 1
    assert at(played, 111.0, "state") == "2: INIT"
    assert at(played, 111.0, "phys_state") == "5: LinkUp"
    assert at(played, 114.0, "state") == "4: ACTIVE"
    assert net(played, 114.0, "carrier_changes") == "3"
    assert kernel(played) == [
        "mlx5_core 0000:5b:00.0 ibp91s0: Link down",
        "mlx5_core 0000:5b:00.0 ibp91s0: Link up",
    ]


def test_an_outage_without_memory_moves_no_counter() -> None:
    """The state files tell of it, and nothing else does."""
    quiet = Outage(PORT, 100.0, 110.0, counts=False, kernel_lines=False)
    played = host(quiet)
    assert at(played, 105.0, "state") == "1: DOWN"
    assert at(played, 120.0, "counters/link_downed") == "0"
    assert net(played, 120.0, "carrier_changes") == "1"
    assert kernel(played) == []


def test_nothing_is_carried_over_a_link_that_is_down() -> None:
    """Also a storage port is silent meanwhile."""
    disk = SimPort(NODE, "mlx5_3")
    played = host(Outage(disk, 100.0, 140.0), noise=1.0)
    before = at(played, 101.0, "counters/port_rcv_data", disk)
    assert at(played, 139.0, "counters/port_rcv_data", disk) == before
    assert at(played, 160.0, "counters/port_rcv_data", disk) > before


def test_silent_peers_are_asked_again_until_the_job_dies() -> None:
    """Every ACK timeout counts at both ends; the last one ends the job."""
    outage = Outage(PORT, 100.0, FOREVER)
    made = fleets.stage(outage, jobs=(fleets.steady_job(restarts=False),))
    pairs = made.plan.jobs["train"].queue_pairs
    upstream, other = SimPort(0, "mlx5_4"), SimPort(0, "mlx5_5")
    played = simulated_host(made, 0)
    file = "hw_counters/local_ack_timeout_err"
    assert at(played, 103.0, file, upstream) == "0"
    assert at(played, 106.0, file, upstream) == f"{pairs}"
    assert at(played, 125.0, file, other) == "0"
    dead = "hw_counters/req_transport_retries_exceeded"
    assert at(played, 125.0, dead, upstream) == "0"
    assert at(played, 136.0, dead, upstream) == f"{pairs}"
    assert at(played, 136.0, file, upstream) == f"{7 * pairs}"
    assert int(at(played, 140.0, "hw_counters/req_cqe_flush_error", other)) >= 90
    [run] = made.runs
    assert 130 < run.end < 135


def test_a_dead_job_says_who_was_silent() -> None:
    """The log of a talker names the peer's address, of the silent node its own port."""
    played = host(Outage(PORT, 100.0, 200.0), node=0)
    played.advance(140.0)
    [log] = played.known_logs()
    text = played.read_log(log.path, log.serial, 0, 1 << 20)
    assert isinstance(text, bytes)
    assert b"Got completion from peer 10.20.0.3<" in text
    assert b"status=12" in text
    assert b"Init COMPLETE" in text
    own = host(Outage(PORT, 100.0, 200.0))
    own.advance(140.0)
    [log] = own.known_logs()
    text = own.read_log(log.path, log.serial, 0, 1 << 20)
    assert isinstance(text, bytes)
    assert text.count(b"NET/IB : mlx5_4:1 Got async error event: port error") == 8


def test_a_job_starts_again_without_what_is_broken() -> None:
    """The scheduler takes the nodes whose rails are up."""
    made = fleets.stage(Outage(PORT, 60.0, FOREVER), jobs=(fleets.steady_job(),))
    first, second = made.runs
    assert first.nodes == ("node000", "node001", "node002", "node003")
    assert second.nodes == ("node000", "node002", "node003")
    assert 60 <= second.start - first.end <= 120


def test_an_outage_within_the_timeout_only_pauses_the_job() -> None:
    """A flap of two seconds is a longer step, and no timeout."""
    made = fleets.stage(Outage(PORT, 100.0, 102.0), jobs=(fleets.steady_job(),))
    assert len(made.runs) == 1
    played = simulated_host(made, NODE)
    assert at(played, 290.0, "hw_counters/local_ack_timeout_err") == "0"


def test_a_crashed_node_kills_the_job_after_its_retries() -> None:
    """Its neighbours resend for half a minute, then give up."""
    made = fleets.stage(
        JobEnds(100.0, "train", crash_node=2), jobs=(fleets.steady_job(),)
    )
    played = simulated_host(made, 3)
    name = "hw_counters/req_transport_retries_exceeded"
    assert at(played, 120.0, name) == "0"
    assert int(at(played, 131.0, name)) > 0
    assert len(made.runs) == 1


def test_events_are_counted_by_their_rate() -> None:
    """A slow process jumps, a fast one is a ramp; both have their mean."""
    played = host(
        Counting(PORT, Meter.SYMBOL_ERRORS, 0.0, FOREVER, 0.5),
        Counting(PORT, Meter.RECEIVE_ERRORS, 0.0, FOREVER, 40.0),
    )
    assert 80 < int(at(played, 300.0, "counters/symbol_error")) < 230
    assert 11_000 < int(at(played, 300.0, "counters/port_rcv_errors")) < 13_000


def test_events_per_packet_follow_the_traffic() -> None:
    """While the job computes nothing is damaged."""
    played = host(
        Counting(PORT, Meter.OUT_OF_SEQUENCE, 0.0, FOREVER, 1e-4, Per.PACKET_RECEIVED),
        Stall(150.0, 250.0),
    )
    busy = int(at(played, 150.0, "hw_counters/out_of_sequence"))
    assert busy > 10_000
    still = int(at(played, 152.0, "hw_counters/out_of_sequence"))
    assert int(at(played, 249.0, "hw_counters/out_of_sequence")) == still


def test_counters_stop_at_all_ones() -> None:
    """Sixteen bits hold 65,535 and eight hold 255."""
    played = host(
        Counting(PORT, Meter.SYMBOL_ERRORS, 0.0, FOREVER, 1e4),
        Step(PORT, Meter.LINK_DOWNS, 10.0, 1000),
        Preset(PORT, Meter.TRANSMIT_DISCARDS, None),
    )
    assert at(played, 100.0, "counters/symbol_error") == "65535"
    assert at(played, 100.0, "counters/link_downed") == "255"
    assert at(played, 0.0, "counters/port_xmit_discards") == "65535"


def test_resets_reach_one_area_or_some_counters() -> None:
    """Clearing the PMA leaves the queue counters as they are."""
    played = host(
        Preset(PORT, Meter.SYMBOL_ERRORS, 40),
        Preset(PORT, Meter.RECEIVE_ERRORS, 14),
        Preset(PORT, Meter.ACK_TIMEOUTS, 9),
        Reset(PORT, 50.0, "pma", (Meter.SYMBOL_ERRORS,)),
        Reset(PORT, 60.0, "pma"),
    )
    assert at(played, 55.0, "counters/symbol_error") == "0"
    assert at(played, 55.0, "counters/port_rcv_errors") == "14"
    before = int(at(played, 59.0, "counters/port_rcv_data"))
    assert at(played, 61.0, "counters/port_rcv_errors") == "0"
    assert int(at(played, 61.0, "counters/port_rcv_data")) < before
    assert at(played, 61.0, "hw_counters/local_ack_timeout_err") == "9"


def test_gauges_follow_the_load() -> None:
    """A stall of PCIe shows only while data passes."""
    level = Level(PORT, Meter.PCI_STALL_WRITE, 50.0, 250.0, 80, only_busy=True)
    played = host(level)
    seen = {
        statistic(played, 60 + number / 4, "outbound_pci_stalled_wr", "ibp91s0")
        for number in range(24)
    }
    assert seen == {0, 80}
    assert statistic(played, 260.0, "outbound_pci_stalled_wr", "ibp91s0") == 0


def test_state_files_can_say_anything() -> None:
    """Another rate, or INIT without an outage; afterwards what stood there before."""
    played = host(
        PortText(PORT, 50.0, 100.0, rate="200 Gb/sec (2X NDR)"),
        PortText(PORT, 150.0, 200.0, state="INIT"),
    )
    assert at(played, 60.0, "rate") == "200 Gb/sec (2X NDR)"
    assert at(played, 110.0, "rate") == "400 Gb/sec (4X NDR)"
    assert at(played, 160.0, "state") == "2: INIT"
    assert at(played, 160.0, "counters/link_downed") == "0"


def test_a_device_that_is_gone_comes_back_as_another_instance() -> None:
    """Its folder is gone; then it is there by another name, with new numbers."""
    gone = Gone(NODE, "mlx5_4", 100.0, 130.0, new_name="ibp91", keeps_pma=True)
    preset = (Preset(PORT, Meter.ACK_TIMEOUTS, 5), Preset(PORT, Meter.SYMBOL_ERRORS, 7))
    played = host(gone, *preset)
    index = net(played, 90.0, "ifindex")
    assert at(played, 101.0, "state") == "ENOENT"
    assert net(played, 101.0, "operstate") == "ENOENT"
    assert "mlx5_4" not in str(played.names("/sys/class/infiniband"))
    again = SimPort(NODE, "ibp91")
    assert at(played, 131.0, "state", again) == "4: ACTIVE"
    assert at(played, 131.0, "counters/symbol_error", again) == "7"
    assert at(played, 131.0, "hw_counters/local_ack_timeout_err", again) == "0"
    assert int(net(played, 131.0, "ifindex")) > int(index)
    assert played.problems == ()


def test_new_firmware_outlives_the_driver() -> None:
    """What a card was given is there again when its driver is loaded anew."""
    burnt = NodeFile(NODE, 50.0, "/sys/class/infiniband/mlx5_4/fw_ver", "28.43.1014\n")
    played = host(burnt, Gone(NODE, "mlx5_4", 100.0, 130.0, new_name="ibp91"))
    played.advance(131.0)
    assert played.read("/sys/class/infiniband/ibp91/fw_ver") == b"28.43.1014\n"
    assert played.problems == ()


def test_a_stuck_device_counts_nothing_and_reads_slowly() -> None:
    """All numbers stand still for a time, then jump to where they would be."""
    beats = Counting(PORT, Meter.RECEIVE_ERRORS, 0.0, FOREVER, 10.0, even=True)
    played = host(Frozen(NODE, "mlx5_4", 100.0, 200.0, read_seconds=30.0), beats)
    stuck = at(played, 110.0, "counters/port_rcv_errors")
    assert at(played, 199.0, "counters/port_rcv_errors") == stuck == "1000"
    assert at(played, 199.0, "state") == "4: ACTIVE"
    played.begin_charging()
    at(played, 199.0, "counters/symbol_error")
    assert played.end_charging() == 30.0
    assert at(played, 201.0, "counters/port_rcv_errors") == "2010"


def test_a_reboot_is_a_silence_after_which_all_is_new() -> None:
    """Another boot identity, a young up-time, and numbers from 0."""
    played = host(Reboot(NODE, 100.0, 60.0), Preset(PORT, Meter.SYMBOL_ERRORS, 30))
    before = played.boot_id()
    played.advance(170.0)
    assert played.boot_id() != before
    assert float(fleets.text(played, "/proc/uptime").split()[0]) < 60
    assert at(played, 170.0, "counters/symbol_error") == "0"
    assert at(played, 170.0, "state") == "4: ACTIVE"


@pytest.mark.parametrize("restart", [True, False])
def test_silence_is_a_gap(*, restart: bool) -> None:
    """The agent does not run for a time, and keeps its memory or not."""
    played = host(Silence(NODE, 50.0, 80.0, restart=restart))
    moments = played.moments(lambda: played.monotonic() + 10, lambda: None)
    wakes = [wake for wake in moments if wake.gap]
    assert [(w.gap.start, w.gap.end) for w in wakes if w.gap] == [(50.0, 80.0)]
    assert wakes[0].restarted is restart


def test_the_wall_clock_jumps() -> None:
    """Monotonic time does not."""
    played = host(WallStep(NODE, 50.0, 3600.0))
    played.advance(60.0)
    assert played.wall() - played.header.start == 3660.0


def test_files_get_texts_and_errors() -> None:
    """A text, an errno, or nothing at all; masked ones go on beneath."""
    folder = "/sys/class/infiniband/mlx5_4"
    played = host(
        NodeFile(NODE, 50.0, f"{folder}/fw_ver", "1.2.3\n"),
        NodeFile(NODE, 50.0, f"{folder}/board_id"),
        Unreadable(NODE, 50.0, 90.0, f"{folder}/ports/1/state", "EIO"),
        Unreadable(NODE, 50.0, 90.0, f"{folder}/ports/1/counters/symbol_error", "EIO"),
        Step(PORT, Meter.SYMBOL_ERRORS, 60.0, 3),
    )
    played.advance(60.0)
    assert fleets.text(played, f"{folder}/fw_ver") == "1.2.3"
    assert fleets.text(played, f"{folder}/board_id") == "ENOENT"
    assert at(played, 61.0, "state") == "EIO"
    assert at(played, 61.0, "counters/symbol_error") == "EIO"
    assert at(played, 91.0, "state") == "4: ACTIVE"
    assert at(played, 91.0, "counters/symbol_error") == "3"


def test_pcie_trains_at_another_width() -> None:
    """Both ends say so; the slot's maximum only where it is the slot's."""
    played = host(PcieLink(PORT, 50.0, 8, 16.0, slot_width=8))
    played.advance(60.0)
    folder = "/sys/bus/pci/devices/0000:5b:00.0"
    assert fleets.text(played, f"{folder}/current_link_width") == "8"
    assert fleets.text(played, f"{folder}/current_link_speed") == "16.0 GT/s PCIe"
    assert fleets.text(played, f"{folder}/max_link_width") == "16"
    slot = "/sys/devices/pci0000:5a/0000:5a:01.0"
    assert fleets.text(played, f"{slot}/max_link_width") == "8"


def test_aer_tables_count() -> None:
    """A storm of corrected errors moves the total of the table."""
    storm = Counting(PORT, Meter.AER_CORRECTABLE, 50.0, 110.0, 20.0)
    played = host(storm)
    played.advance(120.0)
    table = fleets.text(played, "/sys/bus/pci/devices/0000:5b:00.0/aer_dev_correctable")
    total = int(table.rpartition(" ")[2])
    assert "TOTAL_ERR_COR" in table
    assert 1000 < total < 1400


def test_a_network_device_can_leave_alone() -> None:
    """The RDMA device stays, with its traffic."""
    played = host(NetdevGone(PORT, 50.0, 100.0))
    assert net(played, 60.0, "operstate") == "ENOENT"
    assert statistic(played, 60.0, "rx_corrected_bits_phy", "ibp91s0") is None
    assert at(played, 60.0, "state") == "4: ACTIVE"
    assert net(played, 101.0, "operstate") == "up"
    assert statistic(played, 101.0, "link_down_events_phy", "ibp91s0") == 0


def test_data_can_go_by_another_priority() -> None:
    """The lossless priority stands still meanwhile."""
    port = SimPort(NODE, "mlx5_4")
    played = host(OnPriority(port, 50.0, 200.0), profile=ROCE)
    netdev = "enp101s0np0"

    def octets(t: float) -> tuple[int | None, ...]:
        names = ("rx_prio3_bytes", "rx_prio0_bytes")
        return tuple(statistic(played, t, name, netdev) for name in names)

    lossless, best_effort = octets(50.5)
    assert octets(199.0)[0] == lossless
    assert (octets(199.5)[1] or 0) > (best_effort or 0)
    assert (octets(290.0)[0] or 0) > (lossless or 0)


def test_a_mute_counter_stands_still() -> None:
    """Whatever happens; afterwards it counts again."""
    played = host(
        Mute(PORT, Meter.SYMBOL_ERRORS, 50.0, 100.0),
        Counting(PORT, Meter.SYMBOL_ERRORS, 0.0, FOREVER, 10.0, even=True),
    )
    assert at(played, 99.0, "counters/symbol_error") == "500"
    assert at(played, 120.0, "counters/symbol_error") == "700"


def test_what_is_told_beside_files() -> None:
    """Kernel lines, log lines, transceiver, bridging, health and maintenance."""
    played = host(
        KernelLines(NODE, 50.0, ("one", "two")),
        LogLines(NODE, 50.0, "a line\n"),
        ModuleReading(PORT, 50.0, 81.5),
        Bridged(PORT, 50.0, (), ecn_enabled=False),
        DeviceHealth(NODE, "mlx5_4", 50.0, "fw", "error"),
        Maintenance(NODE, 50.0, 100.0, (PORT,)),
        profile=ROCE,
    )
    played.advance(60.0)
    assert kernel(played) == ["one", "two"]
    module = played.module("mlx5_4/1")
    assert module is not None
    assert module.temperature_c == 81.5
    assert module.vendor is not None
    bridging = played.dcb("enp101s0np0")
    assert bridging is not None
    assert bridging.pfc_enabled == ()
    states = {each.name: each.state for each in played.devlink("0000:65:00.0")}
    assert states["fw"] == "error"
    [window] = json.loads(fleets.text(played, "/run/fabricmon/maintenance.json"))
    assert window["ports"] == ["mlx5_4/1"]
    played.advance(101.0)
    assert fleets.text(played, "/run/fabricmon/maintenance.json") == "ENOENT"


def test_what_may_not_be_seen_is_not_written() -> None:
    """With sysfs alone there are no statistics, logs, PCIe links, modules."""
    sights: tuple[Sight, ...] = ("sysfs",)
    played = host(
        KernelLines(NODE, 50.0, ("one",)), Outage(PORT, 60.0, 70.0), sights=sights
    )
    played.advance(200.0)
    assert kernel(played) == []
    assert played.known_logs() == ()
    assert played.module("mlx5_4/1") is None
    assert played.statistics("ibp91s0") == ReadError("EOPNOTSUPP")
    folder = "/sys/bus/pci/devices/0000:5b:00.0"
    assert fleets.text(played, f"{folder}/current_link_width") == "ENOENT"
    assert fleets.text(played, f"{folder}/aer_dev_fatal") == "ENOENT"
    assert at(played, 200.0, "counters/link_downed") == "1"


def test_inflow_adds_to_what_jobs_carry() -> None:
    """A tenth of the line more comes in while it lasts, and nothing more goes out."""
    begin, end, line = 100.0, 200.0, 400e9 / 8
    grown = {}
    for file in ("counters/port_rcv_data", "counters/port_xmit_data"):
        plain, more = host(), host(Inflow(PORT, begin, end, 0.1))
        values = [int(at(played, 300.0, file)) * 4 for played in (plain, more)]
        grown[file] = values[1] - values[0]
    added = pytest.approx(0.1 * line * (end - begin), rel=1e-3)
    assert grown == {"counters/port_rcv_data": added, "counters/port_xmit_data": 0}
