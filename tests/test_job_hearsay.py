"""What logs add to the jobs that are known otherwise."""

from dataclasses import replace

import pytest

from fabricmon.job_hearsay import (
    MOST_JOBS,
    UNNAMED,
    Hearsay,
    ports_of,
    transport_of,
    with_rails,
)
from fabricmon.model import JobTransport, JobUse, LogEvent, LogField, LogSeverity
from tests.views import port

JOB = JobUse("7", "slurm")


def event(
    kind: str,
    *,
    job: str | None = "7",
    status: str | None = None,
    device: str | None = None,
    port: int | None = None,
    **fields: str | int,
) -> LogEvent:
    """Return an event with these fields."""
    told = tuple(LogField(name, value) for name, value in fields.items())
    return LogEvent(
        kind,
        LogSeverity.INFO,
        "T",
        "/log",
        1,
        0,
        device=device,
        port=port,
        status=status,
        job=job,
        fields=told,
    )


def heard(*events: LogEvent) -> Hearsay:
    """Return what heard these at t = 0."""
    found = Hearsay()
    for each in events:
        found.take(each, 0)
    return found


class TestTransport:
    def test_a_channel_proves_what_carries_the_data(self) -> None:
        """The newest one counts."""
        found = heard(
            event("channel_via_net", status="IB"),
            event("channel_via_socket", status="Socket"),
        )
        assert found.transports() == (JobTransport("7", "socket"),)

    def test_a_choice_counts_until_a_channel_shows_otherwise(self) -> None:
        """NCCL names a network also where nothing leaves the node."""
        chosen = event("net_name", status="Socket")
        assert heard(chosen).transports() == (JobTransport("7", "socket"),)
        proven = heard(event("channel_via_net", status="IBext_v8"), chosen)
        assert proven.transports() == (JobTransport("7", "ib"),)

    def test_of_a_log_that_nobody_can_attribute(self) -> None:
        """It is told all the same."""
        found = heard(event("channel_via_net", job=None, status="IB"))
        assert found.transports() == (JobTransport(UNNAMED, "ib"),)

    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("IB", "ib"),
            ("IBext_v8", "ib"),
            ("gIB", "ib"),
            ("Socket", "socket"),
            ("FastSocket", "socket"),
            ("AWS Libfabric", "ofi"),
            ("UCX", "other"),
        ],
    )
    def test_kinds(self, name: str, kind: str) -> None:
        """By NCCL's names; a plugin nobody knows is another."""
        assert transport_of(name) == kind


class TestJobs:
    def test_devices_and_nodes_are_added(self) -> None:
        """From the list of NICs and the shape of the largest communicator."""
        found = heard(
            event("net_selected", device="mlx5_0", port=1),
            event("net_selected", device="mlx5_1", port=1),
            event("comm_shape", nodes=4),
            event("comm_shape", nodes="2"),
        )
        (use,) = found.add_to([JOB])
        assert use == replace(JOB, devices=("mlx5_0/1", "mlx5_1/1"), nodes=4)

    def test_other_events_tell_nothing(self) -> None:
        """A storm of errors makes no jobs."""
        assert heard(event("ib_completion_error")).transports() == ()
        assert heard(event("ib_completion_error")).add_to([JOB]) == (JOB,)

    def test_a_job_that_is_over_is_forgotten(self) -> None:
        """Once it is not listed and was silent for an hour."""
        found = heard(event("channel_via_net", status="IB"))
        found.forget([JOB], 10_000)
        assert found.transports()
        found.forget([], 10_000)
        assert not found.transports()

    def test_many_jobs(self) -> None:
        """The one that was heard of longest ago goes first."""
        found = Hearsay()
        for number in range(MOST_JOBS + 1):
            found.take(event("channel_via_net", job=str(number), status="IB"), number)
        assert len(found.transports()) == MOST_JOBS
        assert found.transports()[0].job == "1"


class TestRails:
    PORTS = (
        port("mlx5_0", rail=0),
        port("mlx5_1", rail=1),
        port("mlx5_10", rail=2),
        port("mlx5_2", rail=None),
    )

    @pytest.mark.parametrize(
        ("devices", "rails"),
        [
            (("mlx5_1/1",), (1,)),
            (("mlx5_1",), (1,)),
            (("mlx5_1*",), (1, 2)),
            (("mlx5_1/2", "GPU-1"), ()),
            (("mlx5_2",), ()),
            ((), ()),
        ],
    )
    def test_by_device(self, devices: tuple[str, ...], rails: tuple[int, ...]) -> None:
        """A name, a beginning, a port; what is no device has no rail."""
        uses = with_rails([replace(JOB, devices=devices)], self.PORTS)
        assert uses[0].rails == rails

    def test_by_pci_address(self) -> None:
        """As device plugins name what they give; also a virtual function."""
        physical = replace(self.PORTS[0], pci_address="0000:1a:00.0")
        virtual = replace(self.PORTS[1], pci_address="0000:1b:00.2", pf="0000:1b:00.0")
        given = replace(JOB, devices=("0000:1a:00.0", "0000:1b:00.2"))
        assert with_rails([given], (physical, virtual))[0].rails == (0, 1)


class TestPorts:
    @pytest.mark.parametrize("name", ["mlx5_1", "mlx5_1/1", "mlx5_[1]"])
    def test_by_what_the_job_was_given(self, name: str) -> None:
        """A device, a port of it, or a pattern."""
        infos = [port("mlx5_0"), port("mlx5_1")]
        found = ports_of(replace(JOB, devices=(name,)), infos)
        assert [str(info.id) for info in found] == ["mlx5_1/1"]

    def test_nothing_told(self) -> None:
        """Then its ports are not known."""
        assert ports_of(JOB, [port("mlx5_0")]) == ()
