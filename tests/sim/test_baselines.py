from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fabricmon.finding_document import FindingDocument
from fabricmon.model import PortId
from fabricmon.sim.baseline_counting import Remembered, Window
from fabricmon.sim.baseline_mean import Mean, MeanMeter, outliers, robust_z
from fabricmon.sim.baselines import NAMES, fair, verdicts, watch
from fabricmon.sim.score_groups import GROUP_OF_KIND
from fabricmon.sim.truth import FleetFile, FleetJob
from tests.sim import small_nodes
from tests.sim.scoring import fault, truth
from tests.sim.small_nodes import WORDS_PER_SECOND, down, kernel, port, up
from tests.traces import START

Json = dict[str, Any]
Events = tuple[tuple[float, Json], ...]

FIRST = "mlx5_0"
LONG = 2400.0
SHORT = 300.0  # enough for a peer that polls every second


def said(
    folder: Path, name: str, *events: tuple[float, Json], **options: Any
) -> list[tuple[str, str, str, float]]:
    """Return kind, state, severity and time of what a peer says of a node."""
    end = SHORT if name == "nvsentinel" else LONG
    path = small_nodes.trace(folder, *events, **({"end": end} | options))
    return [_short(each) for each in watch(path, [name]).documents[name]]


def kinds(
    folder: Path, name: str, *events: tuple[float, Json], **options: Any
) -> set[str]:
    """Return the kinds that a peer says of a node."""
    return {kind for kind, *_ in said(folder, name, *events, **options)}


def counter(name: str, value: float) -> Json:
    """Return a counter of the first port at a value."""
    return {"set": {port(FIRST, name): f"{value:.0f}\n"}}


def rising(name: str, per_second: float) -> Json:
    """Return a counter of the first port that rises."""
    return {"ramp": {port(FIRST, name): [0, per_second]}}


def outage(t: float, seconds: float, downs: int = 1) -> Events:
    """Return a loss of link that the kernel writes of."""
    lost = down(FIRST) | kernel("mlx5_core 0000:10:00.0 ib0: Link down")
    return (t, lost), (t + seconds, up(FIRST, downs))


def _short(document: FindingDocument) -> tuple[str, str, str, float]:
    assert isinstance(document.t, float)
    return document.kind, document.state, document.severity, document.t


@pytest.mark.parametrize("name", NAMES)
def test_healthy_node(name: str, tmp_path: Path) -> None:
    """Nobody says anything of a healthy node."""
    path = small_nodes.trace(tmp_path, end=600)
    assert verdicts([watch(path, [name])], FleetFile(nodes=("node01",)))[name] == []


def test_all_see_a_port_that_stays_down(tmp_path: Path) -> None:
    """Each of the five finds the plainest fault, at its own poll."""
    path = small_nodes.trace(tmp_path, (400, down(FIRST)), end=700)
    found = {
        name: [_short(each)[::3] for each in documents]
        for name, documents in watch(path).documents.items()
    }
    assert found == {
        "nvsentinel": [("port_down", 400)],
        "gpud": [("port_down", 420)],
        "azurehpc": [("port_down", 600)],
        "healthagent": [("port_down", 420)],
        "oci-hpc": [("port_down", 600)],
    }


def test_resolved_when_it_is_back(tmp_path: Path) -> None:
    """A state that is over is resolved, as the format has it."""
    found = said(tmp_path, "nvsentinel", *outage(100, 60, downs=0))
    assert [(state, t) for _, state, _, t in found] == [
        ("open", 100),
        ("resolved", 160),
    ]


# NVSentinel


def test_nvsentinel_any_link_downed(tmp_path: Path) -> None:
    """One step of the counter drains the node, also without a port seen down."""
    found = said(tmp_path, "nvsentinel", (100, counter("counters/link_downed", 1)))
    assert found == [("port_flap", "open", "critical", 100)]


def test_nvsentinel_is_blind_at_the_ceiling(tmp_path: Path) -> None:
    """Where link_downed stands at 255, a flap between two polls is nothing to it."""
    events = (0, counter("counters/link_downed", 255)), *outage(100.2, 0.5, downs=255)
    assert kinds(tmp_path, "nvsentinel", *events) == set()


def test_nvsentinel_reboot(tmp_path: Path) -> None:
    """A planned reboot looks like a fault to it (the false fatal of its users)."""
    assert "port_down" in kinds(
        tmp_path, "nvsentinel", (100, down(FIRST) | {"boot_id": "b2"}), (160, up(FIRST))
    )


@pytest.mark.parametrize(
    ("file", "per_second", "expected"),
    [
        ("counters/symbol_error", 0.3, set()),
        ("counters/symbol_error", 0.6, {"link_errors"}),
        ("counters/link_error_recovery", 0.05, set()),
        ("counters/link_error_recovery", 0.12, {"link_unstable"}),
        ("counters/port_rcv_errors", 9, set()),
        ("counters/port_rcv_errors", 12, {"link_errors"}),
        ("counters/port_xmit_discards", 99, set()),
        ("counters/port_xmit_discards", 120, {"congestion"}),
        ("hw_counters/local_ack_timeout_err", 0.5, set()),
        ("hw_counters/local_ack_timeout_err", 3, {"transport_retries"}),
    ],
)
def test_nvsentinel_limits(
    file: str, per_second: float, expected: set[str], tmp_path: Path
) -> None:
    """Just below each limit nothing, above it the finding."""
    assert kinds(tmp_path, "nvsentinel", (0, rising(file, per_second))) == expected


def test_nvsentinel_symbol_errors_get_worse(tmp_path: Path) -> None:
    """More than 10 a second is noted, more than 120 in the hour is fatal."""
    found = said(
        tmp_path,
        "nvsentinel",
        (100, counter("counters/symbol_error", 15)),
        (200, counter("counters/symbol_error", 121)),
    )
    assert [(state, severity) for _, state, severity, _ in found] == [
        ("open", "warning"),
        ("update", "critical"),
    ]


def test_nvsentinel_missing_device(tmp_path: Path) -> None:
    """Three polls without the device."""
    gone = {"del": ["/sys/class/infiniband/mlx5_0"]}
    found = said(tmp_path, "nvsentinel", (99.5, gone))
    assert found == [("device_missing", "open", "critical", 102)]


def test_nvsentinel_rate(tmp_path: Path) -> None:
    """A card that is slower than most of its kind."""
    slow = {"set": {port(FIRST, "rate"): "200 Gb/sec (2X NDR)\n"}}
    assert kinds(tmp_path, "nvsentinel", (100, slow)) == {"rate_degraded"}


# gpud


def test_gpud_misses_one_flap(tmp_path: Path) -> None:
    """F05: 8 s between two polls of 30 s are not seen."""
    assert kinds(tmp_path, "gpud", *outage(605, 8)) == set()


def test_gpud_misses_a_micro_flap(tmp_path: Path) -> None:
    """F08: half a second that only counters remember."""
    assert kinds(tmp_path, "gpud", *outage(605, 0.5)) == set()


def test_gpud_three_long_flaps(tmp_path: Path) -> None:
    """Three times down for 25 s and back."""
    events = [
        event for n in range(3) for event in outage(600 + 300 * n, 70, downs=n + 1)
    ]
    found = said(tmp_path, "gpud", *events)
    assert ("port_flapping", "open", "critical", 1290) in found


def test_gpud_counts_flaps_on_infiniband_only(tmp_path: Path) -> None:
    """The same on Ethernet is no flap to it."""
    events = [event for n in range(3) for event in outage(600 + 300 * n, 70, n + 1)]
    found = kinds(tmp_path, "gpud", *events, layer="Ethernet")
    assert "port_flapping" not in found


def test_gpud_kernel_lines(tmp_path: Path) -> None:
    """Too little power and too hot a module are read from the kernel."""
    lines = (
        kernel("mlx5_core 0000:10:00.0: Detected insufficient power on the PCIe slot"),
        kernel("mlx5_core 0000:10:00.0: Port module event: High temperature"),
    )
    found = kinds(tmp_path, "gpud", (100, lines[0]), (200, lines[1]))
    assert found == {"nic_power", "module_hot"}


# Azure, healthagent, OCI


def test_azure_five_losses(tmp_path: Path) -> None:
    """The fifth lost carrier within a day, and no earlier one."""
    events = [event for n in range(5) for event in outage(10 + 40 * n, 5, downs=n + 1)]
    assert kinds(tmp_path, "azurehpc", *events[:8]) == set()
    assert kinds(tmp_path, "azurehpc", *events) == {"port_flapping"}


def test_one_loss_with_two_lines(tmp_path: Path) -> None:
    """Kernel and network manager write of the same loss: it counts once."""
    line = kernel("systemd-networkd: ib0: Lost carrier")
    events = [
        event
        for n in range(3)
        for event in (*outage(10 + 40 * n, 5), (11 + 40 * n, line))
    ]
    assert kinds(tmp_path, "azurehpc", *sorted(events, key=lambda e: e[0])) == set()


def test_healthagent_three_downs(tmp_path: Path) -> None:
    """Three steps of link_downed in three hours; two are nothing."""
    steps = [(100.0 * n, counter("counters/link_downed", n)) for n in (1, 2, 3)]
    assert kinds(tmp_path, "healthagent", *steps[:2]) == set()
    assert kinds(tmp_path, "healthagent", *steps) == {"port_flapping"}


def test_healthagent_lifetime_counts(tmp_path: Path) -> None:
    """More than 3 recoveries ever are a warning, also if all are from last year."""
    four = (0, counter("counters/link_error_recovery", 4))
    found = said(tmp_path, "healthagent", four)
    assert found == [("link_unstable", "open", "warning", 0)]


def test_healthagent_does_not_see_ethernet(tmp_path: Path) -> None:
    """A RoCE port that is down is none of its business."""
    events = ((400.0, down(FIRST)),)
    assert kinds(tmp_path, "healthagent", *events, layer="Ethernet") == set()


def test_oci_flaps(tmp_path: Path) -> None:
    """One loss in six hours warns, the second drains."""
    one = said(tmp_path, "oci-hpc", *outage(310, 5))
    assert one == [("port_flap", "open", "warning", 600)]
    two = kinds(tmp_path, "oci-hpc", *outage(310, 5), *outage(700, 5, 2))
    assert two == {"port_flap", "port_flapping"}


def test_oci_after_boot(tmp_path: Path) -> None:
    """The first half hour after a boot does not count."""
    young = (0, {"set": {"/proc/uptime": "60.00 60.00\n"}})
    assert kinds(tmp_path, "oci-hpc", young, *outage(310, 5)) == set()


def test_oci_pcie(tmp_path: Path) -> None:
    """A narrow PCIe link, and AER errors that go on for 15 min."""
    function = "/sys/devices/pci0000:00/0000:10:00.0"
    narrow = {"set": {f"{function}/current_link_width": "8\n"}}
    assert kinds(tmp_path, "oci-hpc", (100, narrow)) == {"pcie_degraded"}
    table = f"{function}/aer_dev_correctable"
    rising = [
        (300.0 * n, {"set": {table: f"RxErr {n}\nTOTAL_ERR_COR {n}\n"}})
        for n in range(5)
    ]
    assert kinds(tmp_path, "oci-hpc", *rising[:3]) == set()
    assert kinds(tmp_path, "oci-hpc", *rising) == {"pcie_errors"}


def test_storage_is_not_watched(tmp_path: Path) -> None:
    """Each is told to look at the fabric's ports only."""
    path = small_nodes.trace(tmp_path, (400, down("mlx5_8")), end=700)
    assert not any(watch(path).documents.values())


# Mean throughput


def fleet_of(*nodes: str) -> FleetFile:
    """Return a fleet whose nodes share a job."""
    job = FleetJob(id="train", nodes=nodes, start=0, end=LONG)
    return FleetFile(nodes=nodes, jobs=(job,))


def mean_kinds(
    folder: Path, changed: Json | None
) -> set[tuple[str | None, str | None]]:
    """Return node and device of outliers among four nodes, one of them changed."""
    names = tuple(f"node{n:02d}" for n in range(4))
    nodes = []
    for name in names:
        events = ((300.0, changed),) if changed and name == "node02" else ()
        path = small_nodes.trace(folder / name, *events, end=900, node=name)
        nodes.append(watch(path, [MeanMeter.name]))
    found = verdicts(nodes, fleet_of(*names))[MeanMeter.name]
    return {(each.subject.node, each.subject.device) for each in found}


def test_mean_finds_a_port_without_traffic(tmp_path: Path) -> None:
    """A rail that carries less than the others is an outlier."""
    files = [port(FIRST, f"counters/port_{way}_data") for way in ("xmit", "rcv")]
    slow = {"ramp": {file: [300 * WORDS_PER_SECOND, 1e9] for file in files}}
    assert mean_kinds(tmp_path, slow) == {("node02", FIRST)}


def test_mean_misses_a_straggler(tmp_path: Path) -> None:
    """F54: a half-rate hop slows all alike, so every mean stays the same."""
    slow = {"set": {port(FIRST, "rate"): "200 Gb/sec (2X NDR)\n"}}
    assert mean_kinds(tmp_path, slow) == set()


@pytest.mark.parametrize(("windows", "count"), [(5, 0), (6, 1)])
def test_mean_needs_most_windows(windows: int, count: int) -> None:
    """An outlier in five windows of ten is none, in six it is."""
    means = {f"n{n}": _means(windows if n == 0 else 0) for n in range(5)}
    found = list(outliers(means, fleet_of(*means), START))
    assert len([each for each in found if each.state == "open"]) == count


def _means(low_windows: int) -> list[Mean]:
    """Return the means of one rail, the first of them low."""
    rates = [1e9] * low_windows + [9e9] * (14 - low_windows)
    port_id = PortId(FIRST, 1)
    return [Mean(30.0 * n + 60, port_id, 0, rate) for n, rate in enumerate(rates)]


def test_robust_z() -> None:
    """A floor of 5 % of the median keeps equal values from making outliers."""
    assert robust_z([100, 100, 100, 103]) == pytest.approx([0, 0, 0, 0.6])
    assert robust_z([0, 0]) == [0, 0]


# Parts


def test_fair() -> None:
    """A peer is right with any kind of the accepted kind's group."""
    accept = fair(truth(fault(accept=("port_flap",)))).faults[0].accept
    assert set(accept) == {
        kind for kind, group in GROUP_OF_KIND.items() if group == "flap/down"
    }


def test_fair_keeps_the_peer() -> None:
    """Where the other end is to be named, one's own retries are no answer."""
    accept = fair(truth(fault(accept=("peer_suspect",)))).faults[0].accept
    assert "transport_retries" not in accept


def test_remembered() -> None:
    """The first value moves nothing; a fall is a reset, not a move."""
    last = Remembered()
    assert last.move(0, 5) is None
    assert last.move(5, None) is None
    step = last.move(10, 25)
    assert step is not None
    assert (step.amount, step.per_second, step.is_reset) == (20, 2, False)
    fall = last.move(20, 3)
    assert fall is not None
    assert (fall.amount, fall.is_reset) == (0, True)


def test_window() -> None:
    """What is as old as the window is out of it."""
    window = Window(60)
    assert [window.add(t, 1) for t in (0, 30, 60, 61)] == [1, 2, 2, 3]


def test_a_gap_stops_the_agents(tmp_path: Path) -> None:
    """What passes while nothing runs is not seen, as by any agent."""
    events = (95, {"gap": 60}), (100, down(FIRST)), (130, up(FIRST, downs=0))
    assert kinds(tmp_path, "nvsentinel", *events) == set()
