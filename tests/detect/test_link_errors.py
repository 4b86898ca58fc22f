"""Bit errors and retrains: what alarms, how soon, and what must stay silent."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from fabricmon.catalogue import Signal
from fabricmon.config import Config
from fabricmon.detect.link_errors import LinkErrors
from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    Hca,
    LinkEvent,
    MissingDevice,
    NetdevStatus,
    Part,
    PortId,
    Severity,
    View,
)
from fabricmon.parse.words import PhysState, PortState, Rate
from fabricmon.summaries import SUMMARY_LENGTH
from tests.manifest import SYSFS, entries
from tests.views import SPECS, START, Feed, boot, port, spec

HOUR = 3600
IB = tuple(file for file in SPECS if file != "rx_pcs_symbol_err_phy")


class Node(Feed):
    """A feed with its detector: `run` steps it and returns the last findings."""

    def __init__(self, *infos: object, **options: object) -> None:
        options.setdefault("files", IB)
        super().__init__(*infos, **options)  # type: ignore[arg-type]
        self.detector = LinkErrors(self.config)
        self.began = self.now
        self.step()

    def run(self, seconds: float = 5.0, each: float = 5.0) -> list[Finding]:
        """Let time pass and return what the detector says at the end of it."""
        found: list[Finding] = []
        for _ in range(max(round(seconds / each), 1)):
            found = list(self.detector.judge(self.step(each)))
        return found

    def until(
        self,
        limit: float,
        change: Callable[[], object],
        kind: str = "link_errors",
        severity: Severity = Severity.WARNING,
    ) -> tuple[float, Finding]:
        """Call ``change`` before each poll; return when the finding came, and it."""
        begin = self.now
        while self.now - begin < limit:
            change()
            for finding in self.run():
                if finding.kind == kind and finding.severity >= severity:
                    return self.now - begin, finding
        pytest.fail(f"no {kind} within {limit} s")

    def quiet(self, seconds: float, change: Callable[[], object]) -> None:
        """Call ``change`` before each poll and expect no finding at all."""
        for _ in range(round(seconds / self.period)):
            change()
            assert self.run(self.period, self.period) == []


def poisson(generator: random.Random, mean: float) -> int:
    """Return a random count with this mean."""
    limit, count, product = math.exp(-mean), 0, generator.random()
    while product > limit:
        count += 1
        product *= generator.random()
    return count


def steady(node: Node, gbps: float, ratio: float, seed: int = 1) -> Callable[[], None]:
    """Return what adds the symbol errors of a bit error ratio, for one poll."""
    node.link(PortState.ACTIVE, rate=Rate(gbps, 4, "NDR"))
    node.run()
    generator = random.Random(seed)

    def errors() -> None:
        count = poisson(generator, gbps * 1e9 * ratio * node.period)
        node.grow(symbol_error=count)

    return errors


def nothing() -> None:
    """Change nothing."""


# Steady errors


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("gbps", [100.0, 400.0, 800.0])
def test_bad_link_is_critical_within_two_minutes(gbps: float, seed: int) -> None:
    """1e-11 is above what any link in use may show (F01)."""
    node = Node()
    errors = steady(node, gbps, 1e-11, seed)
    seconds, finding = node.until(120, errors, severity=Severity.CRITICAL)
    assert seconds <= 120
    assert finding.action is Action.DRAIN_AFTER_JOB
    assert finding.part is Part.CULPRIT


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("gbps", "ratio"), [(100.0, 3e-13), (400.0, 1e-13)])
def test_marginal_link_warns_within_25_minutes(
    gbps: float, ratio: float, seed: int
) -> None:
    """Ten times what is allowed is found by two windows that agree (F01)."""
    node = Node()
    _, finding = node.until(1500, steady(node, gbps, ratio, seed))
    assert finding.severity is Severity.WARNING
    assert finding.action is Action.INSPECT


def test_slow_drift_is_found_by_the_long_window() -> None:
    """1e-14 all day (F03) is too little for 12 minutes, not for two hours."""
    node = Node()
    seconds, _ = node.until(5 * HOUR, steady(node, 400.0, 1e-14))
    assert seconds > HOUR


def test_sound_link_is_silent_all_day() -> None:
    """A link at the ratio that is allowed never alarms."""
    node = Node()
    node.quiet(20 * HOUR, steady(node, 400.0, 1e-15))


@pytest.mark.parametrize(("gbps", "alarms"), [(100.0, True), (800.0, False)])
def test_same_errors_weigh_less_on_a_faster_link(gbps: float, *, alarms: bool) -> None:
    """Twenty errors in 20 minutes are many at 100 Gb/s and few at 800 Gb/s."""
    node = Node()
    node.link(PortState.ACTIVE, rate=Rate(gbps, 4, "NDR"))
    found: list[Finding] = []
    for _ in range(20):
        node.grow(symbol_error=1)
        found += node.run(60)
    assert bool(found) is alarms


def test_evidence_names_the_counter_its_growth_and_its_bound() -> None:
    """Whoever reads the finding can check it against the files."""
    node = Node()
    _, finding = node.until(120, lambda: node.grow(symbol_error=20))
    evidence = finding.evidence[0]
    assert evidence.signal == "symbol_error"
    assert evidence.source == "infiniband/mlx5_0/ports/1/counters"
    assert evidence.threshold == 52
    assert evidence.window_seconds == 60
    assert evidence.unit == "errors"
    assert isinstance(evidence.value, int)
    assert evidence.value >= 52
    assert finding.onset == pytest.approx(node.wall - node.now + START + 10)


def test_summary_says_which_end_how_much_and_since_when() -> None:
    """One line, short enough for every sink."""
    node = Node()
    _, finding = node.until(120, lambda: node.grow(symbol_error=20))
    assert finding.summary.startswith("mlx5_0/1 inbound: symbol_error +")
    assert "(bound 52 at 400 Gb/s)" in finding.summary
    assert len(finding.summary) <= SUMMARY_LENGTH


def test_finding_ends_twelve_minutes_after_the_last_error() -> None:
    """A link that was repaired is sound again after a clean warning window."""
    node = Node()
    node.until(120, lambda: node.grow(symbol_error=20))
    assert node.run(600, 60.0) != []
    assert node.run(300, 60.0) == []


def test_finding_holds_over_the_pauses_between_bursts() -> None:
    """Bursts half an hour apart are one story, until twice that is clean."""
    node = Node()
    for _ in range(3):
        for _ in range(4):
            node.grow(symbol_error=300)
            node.run(5)
        node.run(1800, 60.0)
    assert node.run(60) != []
    assert node.run(3600, 60.0) == []


def test_two_files_of_the_same_errors_are_not_added() -> None:
    """The driver's statistics count the symbol errors of sysfs again."""
    node = Node(files=tuple(SPECS))
    for _ in range(10):
        node.grow(symbol_error=1, rx_pcs_symbol_err_phy=1)
        assert node.run(600) == []


# Bursts


def test_one_burst_is_no_error_ratio() -> None:
    """A thousand errors in one poll, once, are not a finding."""
    node = Node()
    node.grow(symbol_error=1000)
    node.quiet(3 * HOUR, nothing)


@pytest.mark.parametrize("gap_minutes", [2, 30, 118])
@pytest.mark.parametrize(("polls", "errors"), [(1, 10), (1, 10_000), (6, 50), (12, 50)])
def test_burst_errors_are_found_by_the_second_burst(
    gap_minutes: int, polls: int, errors: int
) -> None:
    """Heat and vibration (F04): weak or strong, 2 minutes or 2 hours apart."""
    node = Node()
    for _ in range(polls):
        node.grow(symbol_error=errors, link_error_recovery=0)
        node.run()
    node.run(gap_minutes * 60)
    found = []
    for _ in range(polls):
        node.grow(symbol_error=errors)
        found = node.run()
    found = found or node.run(10)
    assert [finding.kind for finding in found] == ["link_errors"]


def test_bursts_four_hours_apart_are_not_one_story() -> None:
    """What was long ago does not confirm what is now."""
    node = Node()
    for _ in range(4):
        node.grow(symbol_error=100)
        node.quiet(4 * HOUR, nothing)


# Links that train


def test_errors_of_the_boot_do_not_count() -> None:
    """Training at boot (N16): thousands of errors, recoveries and downs."""
    node = Node(uptime=60.0)
    for _ in range(8):
        node.grow(symbol_error=1000, link_error_recovery=1, port_rcv_errors=50)
        node.quiet(60, nothing)
    node.quiet(HOUR, nothing)


def test_errors_that_go_on_after_the_boot_count() -> None:
    """The grace of a boot hides no bad link."""
    node = Node(uptime=0.0)
    seconds, _ = node.until(1200, lambda: node.grow(symbol_error=20))
    assert 900 <= seconds <= 1000


@pytest.mark.parametrize("polls_before", [-2, -1, 0, 1])
def test_errors_around_a_counted_flap_do_not_count(polls_before: int) -> None:
    """Errors in the poll of the flap, the one before and those after (F05, F08)."""
    node = Node()
    for _ in range(6):
        if polls_before < 0:
            node.grow(link_downed=1)
            node.run(5.0 * -polls_before)
        node.grow(symbol_error=5000)
        if polls_before == 0:
            node.grow(link_downed=1)
        elif polls_before > 0:
            node.run(5.0 * polls_before)
            node.grow(link_downed=1)
        node.quiet(1200, nothing)


def test_errors_around_a_seen_outage_do_not_count() -> None:
    """The same where the state tells it (F06), however long the port was down."""
    node = Node(files=("symbol_error",))
    for _ in range(4):
        node.grow(symbol_error=500)
        node.run()
        node.link(PortState.DOWN, PhysState.POLLING)
        node.run(120)
        node.link(PortState.ACTIVE)
        node.grow(symbol_error=3000)
        node.run(20)
        node.grow(symbol_error=200)
        node.quiet(1200, nothing)


def test_errors_around_a_kernel_event_do_not_count() -> None:
    """A link event of the port's network device tells of the outage as well."""
    node = Node(port(netdev="ib0", netdevs=("ib0",)), files=("symbol_error",))
    for _ in range(4):
        node.grow(symbol_error=3000)
        event = LinkEvent(node.now + 2, "ib0", up=False)
        assert list(node.detector.judge(node.step(events=(event,)))) == []
        node.quiet(600, nothing)


def test_errors_while_the_carrier_is_lost_do_not_count() -> None:
    """Ethernet: the network device says that the link is not up."""
    info = port(netdev="eth0", netdevs=("eth0",))
    node = Node(info, files=("symbol_error",))
    for _ in range(4):
        node.grow(symbol_error=3000)
        lost = NetdevStatus(info.id, "eth0", node.now + 5, "down", carrier=False)
        assert list(node.detector.judge(node.step(netdevs=(lost,)))) == []
        node.quiet(600, nothing)


def test_bad_link_between_flaps_is_found() -> None:
    """A flap excuses the errors beside it, not those of the next hour."""
    node = Node()
    node.grow(link_downed=1)
    node.run()
    seconds, _ = node.until(300, lambda: node.grow(symbol_error=20))
    assert 30 <= seconds <= 120


def hca(instance: str) -> Hca:
    """Return the identity of the device under one load of its driver."""
    return Hca(
        name="mlx5_0",
        node_guid=None,
        sys_image_guid=None,
        hca_type=None,
        board_id=None,
        firmware=None,
        node_type=None,
        pci_address="0000:1a:00.0",
        driver="mlx5_core",
        numa_node=None,
        is_vf=False,
        pf_address=None,
        ports=(),
        plans=(),
        driver_instance=instance,
    )


def test_errors_after_a_driver_load_do_not_count() -> None:
    """The link trains when its driver is loaded again (N03)."""
    node = Node()
    node.hcas = (hca("1"),)
    node.run()
    node.hcas = (hca("2"),)
    for _ in range(4):
        node.grow(symbol_error=1000)
        node.quiet(60, nothing)
    node.quiet(HOUR, nothing)


def test_errors_after_a_device_came_back_do_not_count() -> None:
    """A device that was away trains its link as well."""
    node = Node()
    node.missing = (MissingDevice("mlx5_0", node.now, 3),)
    node.run()
    node.missing = ()
    for _ in range(4):
        node.grow(symbol_error=1000)
        node.quiet(60, nothing)


# Values that cannot be trusted


def test_old_errors_are_nothing() -> None:
    """Values that stood there before the agent (N39) say nothing of now."""
    node = Node(files=())
    node.put(symbol_error=50_000, port_rcv_errors=14, excessive_buffer_overrun_errors=9)
    node.quiet(HOUR, nothing)


def test_saturated_counters_are_no_finding_and_say_blind() -> None:
    """A port full from earlier life (N05) cannot be judged, and that is said."""
    node = Node(files=())
    node.put(symbol_error=65_535, port_rcv_errors=65_535)
    node.put(local_link_integrity_errors=15, link_error_recovery=255)
    node.quiet(HOUR, nothing)
    blind = {b.kind: b.reason for b in node.detector.blind(node.step())}
    reason = "its counters stand at their ceiling"
    assert blind == {"link_errors": reason, "link_unstable": reason}


def test_counter_that_reaches_its_ceiling_has_not_recovered() -> None:
    """Errors until the field is full (N06): silence then is no health."""
    node = Node(files=("symbol_error",))

    def errors() -> None:
        now = node.of().values["symbol_error"] or 0
        node.put(symbol_error=min(now + 5000, 65_535))

    node.until(120, errors)
    for _ in range(20):
        errors()
        node.run()
    (finding,) = node.run(6 * HOUR, 60.0)
    assert finding.severity is Severity.CRITICAL


def test_cleared_counter_ends_a_stuck_finding() -> None:
    """Once someone cleared the full counter, silence is health again."""
    node = Node(files=("symbol_error",))
    node.put(symbol_error=65_000)
    node.run()
    node.until(120, lambda: node.grow(symbol_error=20))
    node.put(symbol_error=65_535)
    assert node.run(6 * HOUR, 60.0) != []
    node.put(symbol_error=0)
    assert node.run(600, 60.0) == []


def test_errors_are_found_although_someone_clears_the_counters() -> None:
    """Periodic clearing (N04) hides no bad link."""
    node = Node(files=("symbol_error",))
    polls = iter(range(1000))

    def errors() -> None:
        if next(polls) % 4 == 3:
            node.put(symbol_error=0)
        else:
            node.grow(symbol_error=20)

    node.until(300, errors)


def test_cleared_counters_are_no_errors() -> None:
    """Clearing alone, again and again, makes no finding."""
    node = Node(files=())
    node.put(symbol_error=5000)
    node.run()
    for value in (0, 4, 0, 3, 0):
        node.put(symbol_error=value)
        node.run(600)
    node.put(symbol_error=0)
    node.quiet(HOUR, nothing)


def test_lump_after_a_gap_is_no_error_ratio() -> None:
    """What came while the agent did not run (N30, N31) is one lump."""
    node = Node()
    node.grow(symbol_error=20_000)
    assert node.run(600, 600.0) == []
    node.quiet(3 * HOUR, nothing)


def test_bad_link_is_found_by_a_starved_agent() -> None:
    """Polls twenty times late (N31) have right rates; never critical on lumps."""
    node = Node()
    found: list[Finding] = []
    for _ in range(10):
        node.grow(symbol_error=400)
        found = node.run(100, 100.0)
    assert [finding.severity for finding in found] == [Severity.WARNING]


def test_starved_agent_does_not_make_errors_more() -> None:
    """A sound link over polls that are twenty times late stays silent."""
    node = Node()
    generator = random.Random(1)
    for _ in range(1000):
        node.grow(symbol_error=poisson(generator, 400e9 * 1e-15 * 100))
        assert node.run(100, 100.0) == []


# What is not this port's fault


def test_packets_marked_bad_upstream_are_not_this_link() -> None:
    """Remote physical errors tell of a fault elsewhere: nothing is said here."""
    node = Node()
    node.quiet(HOUR, lambda: node.grow(port_rcv_remote_physical_errors=50))


def test_receive_errors_that_upstream_explains_are_not_this_link() -> None:
    """Where the marked packets are counted as damaged too, they are taken off."""
    node = Node()
    node.quiet(
        HOUR,
        lambda: node.grow(port_rcv_remote_physical_errors=50, port_rcv_errors=50),
    )


def test_virtual_function_is_never_blamed() -> None:
    """Physical errors that a VF shows belong to the port of its PF."""
    node = Node(port(is_vf=True))
    node.quiet(HOUR, lambda: node.grow(symbol_error=50, link_error_recovery=1))


def traffic(node: Node) -> Callable[[], int]:
    """Return what adds the bytes of a job whose load varies from minute to minute."""
    generator = random.Random(3)

    def load() -> int:
        minute = int((node.now - START) // 60)
        generator.seed(minute)
        words = generator.randrange(1, 1000) * 10**7
        node.grow(port_rcv_data=words, port_xmit_data=words)
        return words

    return load


def test_damaged_packets_that_follow_the_load_are_congestion() -> None:
    """Errors in proportion to the bytes (A2) are not called a bad link."""
    node = Node()
    load = traffic(node)
    for _ in range(300):
        load()
        assert node.run() == []
    node.quiet(HOUR, lambda: node.grow(port_rcv_errors=load() // 10**9))


def test_damaged_packets_that_ignore_the_load_are_damage() -> None:
    """The same number spread evenly is a bad link, and the finding says why."""
    node = Node()
    load = traffic(node)
    for _ in range(300):
        load()
        node.run()

    def errors() -> None:
        load()
        node.grow(port_rcv_errors=5)

    _, finding = node.until(HOUR, errors)
    assert finding.evidence[0].signal == "port_rcv_errors"
    assert finding.evidence[0].unit == "packets"


def test_symbol_errors_say_whether_they_follow_the_load() -> None:
    """Symbol errors are damage in any case; the correlation is told as evidence."""
    node = Node()
    load, generator = traffic(node), random.Random(5)
    for _ in range(300):
        load()
        node.run()

    def errors() -> None:
        load()
        node.grow(symbol_error=generator.choice((0, 0, 1)))

    _, first = node.until(HOUR, errors)
    for _ in range(300):
        errors()
        found = node.run()
    (correlation,) = [e for e in found[0].evidence if e.signal == "load_correlation"]
    assert correlation.threshold == 0.3
    assert isinstance(correlation.value, float)
    assert found[0].summary.endswith(", not load") is (abs(correlation.value) < 0.3)
    assert first.part is Part.CULPRIT


def test_few_damaged_packets_beside_clean_symbols_are_tolerated() -> None:
    """One damaged packet a minute does not warn while symbol errors are counted."""
    node = Node()
    for _ in range(180):
        node.grow(port_rcv_errors=1)
        assert node.run(60) == []


def test_damaged_packets_stand_in_for_symbols_that_cannot_be_read() -> None:
    """Without symbol errors the bound for bit errors holds for packets."""
    node = Node(files=("port_rcv_errors",))
    found: list[Finding] = []
    for _ in range(180):
        node.grow(port_rcv_errors=1)
        found = found or node.run(60)
    assert found[0].evidence[0].signal == "port_rcv_errors"


def test_damaged_packets_stand_in_for_saturated_symbols() -> None:
    """A full symbol counter (N05) does not hide a bad link."""
    node = Node(files=("port_rcv_errors",))
    node.put(symbol_error=65_535)
    node.until(600, lambda: node.grow(port_rcv_errors=1))


def test_integrity_errors_count_twice_before_they_warn() -> None:
    """The link's own alarm, twice within two hours, warns without any bound."""
    node = Node()
    node.grow(local_link_integrity_errors=1)
    assert node.run(600) == []
    node.grow(local_link_integrity_errors=1)
    (finding,) = node.run(60)
    assert finding.evidence[0].signal == "local_link_integrity_errors"
    assert finding.evidence[0].value == 1
    assert finding.severity is Severity.WARNING


def test_corrupt_packets_alone_blame_nobody() -> None:
    """A bad ICRC passed every link check on its way (F38): seen here, not made here."""
    node = Node()
    node.grow(rx_icrc_encapsulated=3)
    assert node.run(600) == []
    node.grow(rx_icrc_encapsulated=1)
    (finding,) = node.run(60)
    assert finding.part is Part.OBSERVER
    assert finding.action is Action.NONE
    assert finding.severity is Severity.WARNING


# The rate that the bound needs


def test_rate_is_that_of_the_last_time_up() -> None:
    """A port that is down shows a made-up rate; the last real one counts."""
    node = Node()
    node.run()
    node.link(PortState.DOWN, PhysState.POLLING, Rate(10.0, 4, "SDR"))
    node.run(30)
    node.link(PortState.ACTIVE, rate=Rate(None))
    node.run(60)
    _, finding = node.until(300, lambda: node.grow(symbol_error=20))
    assert "at 400 Gb/s" in finding.summary


def test_unknown_rate_is_taken_from_the_expectation() -> None:
    """Where the file fails, what the configuration expects is used."""
    node = Node(port(expected_rate_gbps=200.0))
    node.link(PortState.ACTIVE, rate=Rate(None))
    node.of().status = replace(node.of().status, rate=Rate())  # type: ignore[type-var]
    node.detector = LinkErrors(node.config)
    _, finding = node.until(300, lambda: node.grow(symbol_error=20))
    assert "at 200 Gb/s" in finding.summary


def test_unknown_rate_is_taken_from_equal_boards() -> None:
    """Without an expectation the rate of the other ports of that board is used."""
    first, second = port("mlx5_0"), port("mlx5_1")
    node = Node(first, second)
    node.link(PortState.ACTIVE, rate=Rate(200.0, 2, "NDR"), where=second.id)
    node.link(PortState.ACTIVE, rate=Rate(None))
    node.detector = LinkErrors(node.config)
    _, finding = node.until(300, lambda: node.grow(symbol_error=20))
    assert "at 200 Gb/s" in finding.summary


def test_unknown_rate_everywhere_is_said() -> None:
    """With no rate at all nothing is guessed: the kind is blind."""
    node = Node()
    node.link(PortState.ACTIVE, rate=Rate(None))
    node.detector = LinkErrors(node.config)
    node.quiet(600, lambda: node.grow(symbol_error=20))
    blind = list(node.detector.blind(node.step()))
    assert [(b.kind, b.reason) for b in blind] == [
        ("link_errors", "the line rate of no port is known")
    ]


def test_node_without_error_counters_says_blind() -> None:
    """EFA and others have no such files: silence is not health."""
    node = Node(files=("packet_seq_err",))
    reason = "no counter of it can be read"
    blind = list(node.detector.blind(node.step()))
    assert [(b.kind, b.reason) for b in blind] == [
        ("link_errors", reason),
        ("link_unstable", reason),
    ]


def test_node_that_can_be_judged_is_not_blind() -> None:
    """One port that can tell is enough."""
    node = Node(port("mlx5_0"), port("mlx5_1"))
    node.fail("symbol_error", "EINVAL")
    node.run()
    assert list(node.detector.blind(node.step())) == []


def test_node_without_ports_is_not_called_blind() -> None:
    """No RDMA device is not a blind detector."""
    node = Node()
    assert list(node.detector.blind(node.step(ports=()))) == []


# Retrains


@pytest.mark.parametrize("minutes", [2, 20])
def test_link_that_retrains_warns_at_the_third(minutes: int) -> None:
    """Recovery without down (F09), every 2 to 20 minutes."""
    node = Node()
    for _ in range(2):
        node.grow(link_error_recovery=1)
        assert node.run(minutes * 60) == []
    node.grow(link_error_recovery=1)
    (finding,) = node.run(15)
    assert (finding.kind, finding.severity) == ("link_unstable", Severity.WARNING)
    assert finding.evidence == (
        Evidence(
            "link_error_recovery",
            3,
            "events",
            "infiniband/mlx5_0/ports/1/counters",
            3,
            3600.0,
        ),
    )
    assert finding.action is Action.INSPECT


def test_link_that_retrains_all_the_time_is_critical() -> None:
    """Ten in an hour: no job bears that."""
    node = Node()
    for _ in range(9):
        node.grow(link_error_recovery=1)
        found = node.run(300)
    assert [finding.severity for finding in found] == [Severity.WARNING]
    node.grow(link_error_recovery=1)
    (finding,) = node.run(15)
    assert finding.severity is Severity.CRITICAL
    assert finding.action is Action.DRAIN_AFTER_JOB
    assert len(finding.summary) <= SUMMARY_LENGTH


def test_two_recoveries_an_hour_are_tolerated() -> None:
    """One every half hour stays below the limit all day."""
    node = Node()
    for _ in range(20):
        node.grow(link_error_recovery=1)
        node.quiet(1800, nothing)


def test_recoveries_of_a_flap_are_the_flap() -> None:
    """A flap counts recoveries as well (F06): another kind tells of it."""
    node = Node()
    for _ in range(5):
        node.grow(link_error_recovery=3, link_downed=1, symbol_error=100)
        node.quiet(900, nothing)


def test_unstable_link_ends_an_hour_later() -> None:
    """The finding goes with its reason."""
    node = Node()
    node.grow(link_error_recovery=3)
    assert node.run(1800) != []
    assert node.run(1900) == []


def test_recoveries_that_fill_their_field_have_not_ended() -> None:
    """Eight bits are full after hours of F09: silence then is no health."""
    node = Node(files=())
    node.put(link_error_recovery=252)
    node.run()
    node.grow(link_error_recovery=3)
    node.run(60)
    assert [f.kind for f in node.run(5 * HOUR, 60.0)] == ["link_unstable"]


def test_two_files_of_the_same_recoveries_are_not_added() -> None:
    """InfiniBand and the driver's statistics both count them."""
    twin = spec("total_success_recovery_phy", Signal.LINK_RECOVERY)
    node = Node(files=())
    node.specs[twin.file] = twin
    node.put(link_error_recovery=0, total_success_recovery_phy=0)
    node.run()
    node.grow(link_error_recovery=2, total_success_recovery_phy=2)
    node.quiet(60, nothing)


# Restart of the agent


def restarted(node: Node) -> Node:
    """Return the node under a new agent that restored what the old one saved."""
    saved = node.detector.save()
    after = Node(files=())
    after.now, after.wall = node.now - 1000.0, node.wall  # another clock
    after.boot = boot(after.now)
    after.of().values.update(node.of().values)
    after.detector.restore(saved, after.wall - after.now)
    return after


def test_finding_survives_a_restart() -> None:
    """A restarted agent (N30) still holds what was open, with its onset."""
    node = Node()
    _, before = node.until(120, lambda: node.grow(symbol_error=20))
    after = restarted(node)
    (found,) = after.run()
    assert found.kind == "link_errors"
    assert found.onset == pytest.approx(before.onset, abs=1e-3)
    assert found.evidence[0].signal == "symbol_error"


def test_burst_before_a_restart_still_agrees() -> None:
    """The first burst before, the second after: found."""
    node = Node()
    node.grow(symbol_error=100)
    node.run(60)
    after = restarted(node)
    after.run(600)
    after.grow(symbol_error=100)
    assert [finding.kind for finding in after.run(20)] == ["link_errors"]


def test_recoveries_before_a_restart_still_count() -> None:
    """Two before, one after: three in the hour."""
    node = Node()
    node.grow(link_error_recovery=2)
    node.run(60)
    after = restarted(node)
    after.run(60)
    after.grow(link_error_recovery=1)
    assert [finding.kind for finding in after.run(20)] == ["link_unstable"]


def test_restart_makes_no_finding_of_its_own() -> None:
    """Counters that grew while nobody looked are first sights."""
    node = Node()
    node.run(60)
    after = restarted(node)
    after.grow(symbol_error=30_000, port_rcv_errors=500, link_error_recovery=20)
    after.quiet(HOUR, nothing)


@pytest.mark.parametrize("saved", [b"[1]", b"\xff\xff", b"{}"])
def test_broken_state_is_refused(saved: bytes) -> None:
    """What was not saved by this detector is a ValueError."""
    with pytest.raises(ValueError):
        LinkErrors(Config()).restore(saved, 0.0)


# A recorded pair, and cost


def recorded(sample: str, device: str) -> dict[str, int]:
    """Return the counters of a device in a sample of the recorded flap."""
    values: dict[str, int] = {}
    for entry in entries(SYSFS / f"sysfs-flap-pair.{sample}.manifest"):
        folder, _, file = entry.path.rpartition("/")
        if folder.endswith(f"{device}/ports/1/counters") and file in SPECS:
            values[file] = int(entry.text)
    return values


def test_recorded_flaps_are_no_bit_errors() -> None:
    """Twelve flaps in an hour with 88 symbol errors: the flaps explain the errors."""
    quiet, flapping = port("mlx5_0"), port("mlx5_3")
    node = Node(quiet, flapping, files=())
    for device in (quiet, flapping):
        node.put(device.id, **recorded("t0", device.id.device))
    node.run()
    for device in (quiet, flapping):
        node.put(device.id, **recorded("t1", device.id.device))
    assert recorded("t1", "mlx5_3")["symbol_error"] == 102
    assert node.run(3600, 3600.0) == []
    node.quiet(600, nothing)


def test_recorded_errors_without_the_flaps_would_alarm() -> None:
    """The same 88 errors twice, without an outage, are a finding."""
    node = Node()
    for _ in range(2):
        node.grow(symbol_error=88)
        found = node.run(3600, 3600.0)
        found = found or node.run(15)
    assert [finding.kind for finding in found] == ["link_errors"]


def test_views_without_errors_ask_the_window_nothing() -> None:
    """A quiet node costs no look at any counter."""

    class NoCounters:
        def __getattr__(self, name: str) -> object:
            raise AssertionError(name)

    node = Node()
    node.run()
    view: View = replace(node.step(), counters=NoCounters())  # type: ignore[arg-type]
    assert list(node.detector.judge(view)) == []


def test_port_that_was_quiet_for_hours_is_forgotten() -> None:
    """Watching costs memory only while there is something to watch."""
    node = Node()
    node.grow(symbol_error=1)
    node.run(60)
    assert PortId("mlx5_0", 1) in node.detector._watched
    node.run(3 * HOUR, 60.0)
    assert node.detector._watched == {}


def test_port_that_is_not_shown_is_not_collected() -> None:
    """Errors of a port that no view has (port 0 of a device) pile up nowhere."""
    node = Node()
    for _ in range(100):
        node.grow(symbol_error=10)
        assert list(node.detector.judge(node.step(ports=()))) == []
    watched = node.detector._watched.values()
    assert sum(len(watch.pending) for watch in watched) <= 1


def test_device_that_is_gone_for_good_is_forgotten() -> None:
    """An open finding of a device that never comes back is not kept for ever."""
    node = Node()
    node.until(120, lambda: node.grow(symbol_error=20))
    node.step(60.0, ports=())
    assert list(node.detector.judge(node.step(60.0, ports=()))) == []
    assert node.detector._watched != {}
    assert list(node.detector.judge(node.step(3 * HOUR, ports=()))) == []
    assert node.detector._watched == {}


def test_a_link_that_is_clean_says_since_when() -> None:
    """While the finding holds on it does not speak as if errors still came."""
    node = Node()
    node.until(120, steady(node, 400.0, 1e-11), severity=Severity.CRITICAL)
    (finding,) = node.run(370)
    assert "/1 inbound, none for 6 min, before: symbol_error +" in finding.summary
    assert len(finding.summary) <= SUMMARY_LENGTH
