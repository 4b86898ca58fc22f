"""Data centre bridging over netlink."""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.host.live import LiveHost
from fabricmon.host.live_dcb import Bridges, parse_answer, request

# The first line was packed by C with the structures of <linux/dcbnl.h>: ETS, rates, PFC
# for priority 3, DSCP 26 to 3, DSCP 48 to 6, FCoE to 5. The second is what Linux 6.18
# answered for the loopback interface (sequence 7).
FOUND, REFUSED = (
    bytes.fromhex(line)
    for line in (Path(__file__).parent.parent / "data" / "netlink" / "dcb.hex")
    .read_text()
    .splitlines()
)


class TestAnswer:
    def test_what_the_kernel_sends(self) -> None:
        """Priorities with PFC, and where each DSCP goes; what is not named goes to 0."""
        use = parse_answer(FOUND, "eth0", 1)
        assert use is not None
        assert use.pfc_enabled == (3,)
        assert use.dscp_to_priority is not None
        assert len(use.dscp_to_priority) == 64
        named = {d: p for d, p in enumerate(use.dscp_to_priority) if p}
        assert named == {26: 3, 48: 6}
        assert use.ecn_enabled is None

    def test_a_port_that_trusts_the_tag(self) -> None:
        """Without an entry for any DSCP it looks at none: that is known, not unread."""
        without = FOUND.replace(bytes.fromhex("05031a00"), bytes.fromhex("01031a00"))
        without = without.replace(bytes.fromhex("05063000"), bytes.fromhex("01063000"))
        use = parse_answer(without, "eth0", 1)
        assert use is not None
        assert (use.pfc_enabled, use.dscp_to_priority) == ((3,), ())

    def test_a_refusal(self) -> None:
        """A driver without bridging is an error with the kernel's number."""
        with pytest.raises(OSError, match="refuses") as caught:
            parse_answer(REFUSED, "lo", 7)
        assert caught.value.errno == errno.EOPNOTSUPP

    def test_the_answer_to_another_question(self) -> None:
        """An answer that came late is none to this question."""
        assert parse_answer(FOUND, "eth0", 2) is None
        assert parse_answer(REFUSED, "lo", 1) is None

    @given(st.binary(max_size=200), st.integers(0, 344))
    def test_damage(self, noise: bytes, cut: int) -> None:
        """Whatever comes is an answer, none, or a refusal."""
        for datagram in (noise, FOUND[:cut] + noise, FOUND[:cut]):
            with suppress(OSError):
                parse_answer(datagram, "eth0", 1)


class TestRequest:
    def test_names_that_are_none(self) -> None:
        """A name that no device can have is not asked for."""
        for name in ("", "a" * 16, "a\0b"):
            with pytest.raises(OSError, match="no such"):
                request(name, 1)

    def test_the_running_kernel_understands_it(self) -> None:
        """The loopback interface has no bridging, and the kernel says so."""
        bridges = Bridges()
        assert bridges.read("lo") is None
        assert bridges.read("no-such-dev") is None
        bridges.close()


class TestHost:
    def test_a_copied_tree_has_none(self, tmp_path: Path) -> None:
        """The kernel would answer for this machine, not for that one."""
        host = LiveHost(str(tmp_path))
        try:
            assert host.bridging("eth0", 28) is None
            assert host.firmware_reads == 0
        finally:
            host.close()
