"""The source of kernel events."""

from fabricmon.host.protocol import KernelLine, ReadError
from fabricmon.model import KernelEvents, KernelKind, Target
from tests.fake_host import FakeHost
from tests.sources.polls import only, poll

DOWN = "mlx5_core 0000:1a:00.0 eth3: Link down"


def news(host: FakeHost, carried: object = None) -> KernelEvents:
    """Poll once."""
    return only(KernelEvents, poll("kmsg", host, Target(carried=carried)))


def test_known_lines_become_events() -> None:
    """A line at its time; what no rule knows is left out."""
    host = FakeHost()
    host.kernel_lines = [
        KernelLine(990.0, DOWN),
        KernelLine(991.0, "mlx5_core 0000:1a:00.0: nothing that matters"),
    ]
    (event,) = news(host).events
    assert (event.kind, event.at) == (KernelKind.LINK_DOWN, 990.0)


def test_nothing_gives_no_record() -> None:
    """A quiet log is no reason to judge."""
    assert poll("kmsg", FakeHost()) == ()


def test_lost_lines_are_told() -> None:
    """They are counted, though nobody knows what they said."""
    host = FakeHost()
    host.kernel_lines = [KernelLine(990.0, "", 12)]
    assert news(host).lost == 12


def test_a_refusal_is_told_once() -> None:
    """The note names the drop-in; it is not repeated while it stays."""
    host = FakeHost()
    host.kernel_lines = ReadError("EPERM")
    first = news(host)
    assert first.problem is not None
    assert "kernel-log.conf.example" in first.problem
    assert poll("kmsg", host, Target(carried=first.carried)) == ()


def test_the_end_of_a_refusal_is_told() -> None:
    """Once the log can be read, nothing is held against it."""
    host = FakeHost()
    host.kernel_lines = ReadError("EPERM")
    refused = news(host)
    host.kernel_lines = []
    again = news(host, refused.carried)
    assert again.problem is None
    assert poll("kmsg", host, Target(carried=again.carried)) == ()
