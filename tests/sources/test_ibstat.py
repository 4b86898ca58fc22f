from pathlib import Path

from fabricmon.config import Config, Devices
from fabricmon.host.protocol import CommandOutput, ReadError
from fabricmon.model import PortId, ReadFailure, ToolReport
from fabricmon.parse.words import PortState
from tests.fake_host import FakeHost
from tests.manifest import DATA
from tests.sources.polls import only, poll

CASES = DATA / "fabric"


def report_of(output: CommandOutput) -> ToolReport:
    """Return what the source makes of an output of the tool."""
    host = FakeHost()
    host.commands["ibstat"] = output
    return only(ToolReport, poll("ibstat", host))


def read(name: str) -> bytes:
    """Return a recorded text."""
    return Path(CASES / name).read_bytes()


class TestIbstat:
    def test_ports(self) -> None:
        """Every port that was printed has its status."""
        text = read("ibstat-h100-8ndr-bf3-bond.txt")
        report = report_of(CommandOutput(text, b"", 0))
        assert len(report.statuses) == text.count(b"Port 1:")
        first = report.statuses[0]
        assert (first.port, first.state) == (PortId("mlx5_0", 1), PortState.ACTIVE)
        assert first.rate.gbps == 400
        assert report.errors == ()

    def test_ports_before_a_panic_count(self) -> None:
        """What was printed before the tool gave up is kept, the rest is an error."""
        name = "ibstat-azure-a100-ibpanic-tail"
        output = CommandOutput(read(f"{name}.txt"), read(f"{name}.stderr.txt"), 255)
        report = report_of(output)
        assert report.statuses
        assert any("ibpanic" in error.message for error in report.errors)

    def test_missing_tool_is_no_failure(self) -> None:
        """A node without the tool has nothing to compare with."""
        assert poll("ibstat", FakeHost()) == ()

    def test_forbidden_tool_is_a_failure(self) -> None:
        """A tool that may not be run is said."""
        host = FakeHost()
        host.commands["ibstat"] = ReadError("EACCES")
        assert only(ReadFailure, poll("ibstat", host)).errno == "EACCES"

    def test_tool_that_hangs(self) -> None:
        """A tool that was stopped at its deadline is a failure, with the deadline."""
        host = FakeHost()
        host.commands["ibstat"] = CommandOutput(read("ibstat-sleep.txt"), b"", None)
        failure = only(ReadFailure, poll("ibstat", host))
        assert failure.errno == "ETIMEDOUT"
        assert "20 s" in failure.message

    def test_tool_that_the_kernel_holds(self) -> None:
        """That the last run cannot be ended is told as that, not as a wrong right."""
        host = FakeHost()
        host.commands["ibstat"] = ReadError("EBUSY")
        failure = only(ReadFailure, poll("ibstat", host))
        assert "still holds" in failure.message

    def test_tool_that_shows_nothing(self) -> None:
        """A tool that fails and prints no port has failed as a whole."""
        host = FakeHost()
        said = (
            b"ibpanic: [77] main: stat of IB device 'mlx5_1' failed: Invalid argument"
        )
        host.commands["ibstat"] = CommandOutput(b"", said, 255)
        failure = only(ReadFailure, poll("ibstat", host))
        assert (failure.device, failure.errno) == ("mlx5_1", "EINVAL")

    def test_without_a_driver(self) -> None:
        """A node without an RDMA driver has nothing to compare with."""
        host = FakeHost()
        said = read("ibstat-cant-list-devices.stderr.txt")
        host.commands["ibstat"] = CommandOutput(b"", said, 255)
        assert poll("ibstat", host) == ()

    def test_not_run_where_devices_are_excluded(self) -> None:
        """The tool opens every device, also those that must not be opened."""
        host = FakeHost()
        host.commands["ibstat"] = CommandOutput(read("ibstat-sleep.txt"), b"", 0)
        for devices in (Devices(exclude=("mlx5_9",)), Devices(include=("mlx5_*",))):
            assert poll("ibstat", host, config=Config(devices=devices)) == ()
        assert poll("ibstat", host) != ()
