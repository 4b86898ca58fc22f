"""Equal parts of events are one object, and events stay what they were."""

from fabricmon.parse import log_shared
from fabricmon.parse.log_event import LogEvent, LogField, LogSeverity
from fabricmon.parse.log_shared import Shared


def event(value: str | float = "RETRY_EXC") -> LogEvent:
    """Return an event whose texts are new objects."""
    device, peer, host = (
        str(each, "ascii") for each in (b"mlx5_0", b"10.0.0.2", b"n1")
    )
    return LogEvent(
        kind="ib_completion_error",
        severity=LogSeverity.CRITICAL,
        rule="C1",
        file="a.log",
        line_number=1,
        offset=0,
        device=device,
        peer=peer,
        host=host,
        status=12,
        fields=(LogField("name", value),),
    )


class TestShared:
    def test_equal_parts_are_one_object(self) -> None:
        """A storm of thousands of lines names few devices and hosts."""
        shared = Shared()
        one, other = shared.event(event()), shared.event(event())
        assert one == other == event()
        assert one.device is other.device
        assert one.host is other.host
        assert one.peer is other.peer
        assert one.fields is other.fields

    def test_numbers_of_another_type_are_not_equal(self) -> None:
        """Python takes 1 and 1.0 for the same, a document does not."""
        shared = Shared()
        shared.event(event(1))
        (field,) = shared.event(event(1.0)).fields
        assert isinstance(field.value, float)

    def test_what_is_known_is_bounded(self) -> None:
        """Names in a log are anybody's."""
        shared = Shared()
        for number in range(3 * log_shared.MOST_SHARED):
            shared.text(str(number))
            shared.event(event(number))
        assert len(shared._texts) <= log_shared.MOST_SHARED
        assert len(shared._fields) <= log_shared.MOST_SHARED
