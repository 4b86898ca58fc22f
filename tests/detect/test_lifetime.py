"""What counters gathered since they were last cleared."""

import pytest

from fabricmon.catalogue import Signal
from fabricmon.detect import lifetime
from fabricmon.detect.lifetime import LifetimeValue, lifetime_reasons


def traffic(sent: int, received: int) -> tuple[LifetimeValue, ...]:
    """Return packet counters."""
    return (
        LifetimeValue("port_xmit_packets", sent, Signal.PACKETS_TRANSMITTED),
        LifetimeValue("port_rcv_packets", received, Signal.PACKETS_RECEIVED),
    )


def reasons(name: str, value: int, signal: Signal, *others: LifetimeValue) -> str:
    """Return the reasons that one counter gives, as one text."""
    return "; ".join(lifetime_reasons((LifetimeValue(name, value, signal), *others)))


class TestProportion:
    """A sum is bad only against the traffic that it came with."""

    def test_old_and_small_values_are_history(self) -> None:
        """A busy healthy port has some of everything after a year."""
        values = (
            *traffic(315_487_941_081, 317_548_853_677),
            LifetimeValue("port_rcv_errors", 14, Signal.RECEIVE_ERROR),
            LifetimeValue("link_downed", 2, Signal.LINK_DOWN),
            LifetimeValue("roce_adp_retrans", 3, Signal.RETRANSMIT),
            LifetimeValue("port_xmit_discards", 5, Signal.DISCARD),
        )
        assert not lifetime_reasons(values)

    def test_the_same_retries_on_little_traffic_are_bad(self) -> None:
        """One packet in a thousand is repeated."""
        signal = Signal.SEQUENCE_ERROR
        busy, idle = traffic(10**11, 10**11), traffic(10**7, 10**7)
        assert not reasons("packet_seq_err", 10_000, signal, *busy)
        assert "1.0e-03" in reasons("packet_seq_err", 10_000, signal, *idle)

    def test_the_busier_direction_is_the_measure(self) -> None:
        """A port that mostly receives is not blamed by its few acknowledgements."""
        mostly_in = traffic(10**5, 10**9)
        assert not reasons("packet_seq_err", 2000, Signal.SEQUENCE_ERROR, *mostly_in)

    def test_few_errors_on_an_idle_port_are_not_judged(self) -> None:
        """A handful of errors in a hundred packets is no rate."""
        idle = traffic(100, 100)
        assert not reasons("port_rcv_errors", 50, Signal.RECEIVE_ERROR, *idle)

    def test_damaged_packets_are_bad_at_a_lower_rate_than_retries(self) -> None:
        """After correction a good link damages none."""
        some = traffic(10**8, 10**8)
        assert reasons("rx_crc_errors_phy", 386, Signal.CORRUPTION, *some)


class TestWithoutTraffic:
    """Tools that print errors alone."""

    def test_thousands_of_damaged_packets_speak_for_themselves(self) -> None:
        """No year of healthy life brings so many."""
        assert reasons("SymbolErrors", 13_151, Signal.SYMBOL_ERROR)

    def test_retries_alone_say_nothing(self) -> None:
        """They may be few in a long life."""
        assert not reasons("packet_seq_err", 10**6, Signal.SEQUENCE_ERROR)

    def test_a_full_packet_counter_is_no_measure(self) -> None:
        """It stopped long ago: the ratio would be far too high."""
        full = LifetimeValue(
            "PortRcvPkts", 2**32 - 1, Signal.PACKETS_RECEIVED, saturated=True
        )
        assert not reasons("RcvErrors", 9000, Signal.RECEIVE_ERROR, full)


class TestCeilings:
    """Counters that can count no further."""

    @pytest.mark.parametrize(
        ("name", "value", "signal"),
        [
            ("link_downed", 255, Signal.LINK_DOWN),
            ("link_error_recovery", 255, Signal.LINK_RECOVERY),
            ("symbol_error", 65535, Signal.SYMBOL_ERROR),
            ("port_rcv_errors", 65535, Signal.RECEIVE_ERROR),
        ],
    )
    def test_a_full_link_counter_is_not_health(
        self, name: str, value: int, signal: Signal
    ) -> None:
        """Full means blind, on any traffic."""
        full = LifetimeValue(name, value, signal, saturated=True)
        assert "ceiling" in lifetime_reasons((full, *traffic(10**15, 10**15)))[0]

    @pytest.mark.parametrize(
        ("name", "signal"),
        [
            ("port_xmit_wait", Signal.TRANSMIT_WAIT),
            ("excessive_buffer_overrun_errors", Signal.INTEGRITY),
            ("port_rcv_remote_physical_errors", Signal.REMOTE_PHYSICAL),
        ],
    )
    def test_full_counters_of_other_things_are_routine(
        self, name: str, signal: Signal
    ) -> None:
        """Congestion, four-bit counters and faults elsewhere fill up in good health."""
        full = LifetimeValue(name, 2**32 - 1, signal, saturated=True)
        assert not lifetime_reasons((full,))

    def test_many_link_downs_count_before_the_ceiling(self) -> None:
        """Planned reboots bring one or two each, not dozens."""
        limit = lifetime.LINK_DOWNS
        assert not reasons("link_downed", limit - 1, Signal.LINK_DOWN)
        assert reasons("link_downed", limit, Signal.LINK_DOWN)


class TestBlackhole:
    """A port that sends and never hears anything."""

    def test_nothing_received_while_retries_climb_is_bad(self) -> None:
        """The port is ACTIVE, and nothing comes back."""
        found = reasons(
            "completer_retry_err", 900, Signal.RETRANSMIT, *traffic(9000, 0)
        )
        assert "none received" in found

    def test_a_sender_that_needs_no_answer_is_left_alone(self) -> None:
        """Without retries nobody waits: multicast, or a capture port."""
        found = reasons("completer_retry_err", 0, Signal.RETRANSMIT, *traffic(9000, 0))
        assert not found


class TestPause:
    """Pause frames that this host sends."""

    def test_a_storm_is_bad(self) -> None:
        """One pause for each hundred packets received."""
        heard = LifetimeValue("rx_pause_ctrl_phy", 10, Signal.PAUSE_RECEIVED)
        some = traffic(10**7, 10**7)
        sent = Signal.PAUSE_TRANSMITTED
        assert reasons("tx_pause_ctrl_phy", 100_000, sent, heard, *some)

    def test_being_paused_is_not(self) -> None:
        """The fabric stops this port: it is a victim."""
        heard = LifetimeValue("rx_pause_ctrl_phy", 10**6, Signal.PAUSE_RECEIVED)
        some = traffic(10**7, 10**7)
        sent = Signal.PAUSE_TRANSMITTED
        assert not reasons("tx_pause_ctrl_phy", 100_000, sent, heard, *some)


class TestLanes:
    """Raw errors by lane."""

    def test_the_lane_with_nearly_all_errors_is_named(self) -> None:
        """It says where to look: cable or module."""
        lanes = (
            LifetimeValue("rx_err_lane_0_phy", 28_116, Signal.LANE_ERROR),
            LifetimeValue("rx_err_lane_3_phy", 17_722_623, Signal.LANE_ERROR),
        )
        damaged = LifetimeValue("rx_crc_errors_phy", 386, Signal.CORRUPTION)
        found = lifetime_reasons((damaged, *lanes, *traffic(10**6, 10**6)))
        assert "lane 3" in found[-1]

    def test_raw_errors_alone_are_correction_at_work(self) -> None:
        """Before correction every fast link has errors."""
        assert not lifetime_reasons(
            (LifetimeValue("rx_err_lane_3_phy", 10**9, Signal.LANE_ERROR),)
        )
