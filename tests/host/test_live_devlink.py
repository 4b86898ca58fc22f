"""Health reporters over generic netlink."""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.host.live import LiveHost
from fabricmon.host.live_devlink import (
    Answers,
    Reporters,
    family_of,
    family_request,
    health_request,
    reporters_of,
)
from fabricmon.model import HealthReporter

# The first three were packed by C with the structures of <linux/devlink.h>: the number
# of the family (20), four reporters of two devices, the end of the dump. The last is
# what Linux 6.18 without devlink answered to sequence 7.
FAMILY, DUMP, END, REFUSED = (
    bytes.fromhex(line)
    for line in (Path(__file__).parent.parent / "data" / "netlink" / "devlink.hex")
    .read_text()
    .splitlines()
)
FIRST, SECOND = "0000:1a:00.0", "0000:3c:00.0"


def taken(*datagrams: bytes, sequence: int = 2, is_dump: bool = True) -> Answers:
    """Return what was made of an answer."""
    answers = Answers(sequence)
    for datagram in datagrams:
        answers.take(datagram, is_dump=is_dump)
    return answers


class TestAnswer:
    def test_family(self) -> None:
        """Its number is what further questions go to."""
        answers = taken(FAMILY, sequence=1, is_dump=False)
        assert answers.is_whole
        assert family_of(answers.bodies) == 20

    def test_reporters_of_one_device(self) -> None:
        """Kernels before 6.6 tell of every device; only one was asked for."""
        answers = taken(DUMP, END)
        assert answers.is_whole
        assert reporters_of(answers.bodies, FIRST) == (
            HealthReporter("fw", "healthy"),
            HealthReporter("fw_fatal", "error"),
            HealthReporter("tx", "healthy"),
        )
        assert reporters_of(answers.bodies, SECOND) == (HealthReporter("fw", "error"),)
        assert reporters_of(answers.bodies, "0000:00:00.0") == ()

    def test_an_answer_goes_on(self) -> None:
        """Without its end a dump is not whole."""
        assert not taken(DUMP).is_whole

    def test_a_refusal(self) -> None:
        """A kernel without devlink is an error with its number."""
        with pytest.raises(OSError, match="refuses") as caught:
            taken(REFUSED, sequence=7)
        assert caught.value.errno == errno.ENOENT

    def test_the_answer_to_another_question(self) -> None:
        """An answer that came late is none to this question."""
        assert taken(DUMP, END, REFUSED, sequence=3).bodies == []

    @given(st.binary(max_size=200), st.integers(0, 400))
    def test_damage(self, noise: bytes, cut: int) -> None:
        """Whatever comes is an answer, none, or a refusal."""
        for datagram in (noise, DUMP[:cut] + noise, FAMILY[:cut] + noise):
            with suppress(OSError):
                bodies = taken(datagram).bodies
                reporters_of(bodies, FIRST)
                family_of(bodies)


class TestRequest:
    def test_asks_for_reading_only(self) -> None:
        """The commands are those that get; none recovers, tests or clears."""
        assert family_request(1)[16] == 3
        assert health_request(20, FIRST, 2)[16] == 52

    def test_the_running_kernel_understands_it(self) -> None:
        """No device of this address is there, or no devlink at all."""
        reporters = Reporters()
        assert reporters.read("ffff:ff:1f.7") == ()
        assert reporters.read("ffff:ff:1f.7") == ()
        reporters.close()


def test_a_copied_tree_has_none(tmp_path: Path) -> None:
    """The kernel would answer for this machine, not for that one."""
    host = LiveHost(str(tmp_path))
    try:
        assert host.devlink(FIRST) == ()
    finally:
        host.close()
