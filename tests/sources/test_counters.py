import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.catalogue import Directory, lookup
from fabricmon.host.protocol import ReadError
from fabricmon.model import Absence, PortId, Reading, ReadPlan, Target
from fabricmon.parse.sysfs import parse_counter
from fabricmon.sources.counters import NO_VALUE, read
from fabricmon.sources.paths import RDMA_CLASS
from tests.fake_host import FakeHost
from tests.sources.mlx5_node import mlx5_node
from tests.sources.polls import hca_of, only, poll

FILES = ("symbol_error", "link_downed", "port_rcv_errors")
SPECS = tuple(
    spec for spec in (lookup(Directory.COUNTERS, f, "mlx5_core") for f in FILES) if spec
)
PLAN = ReadPlan(PortId("mlx5_0", 1), SPECS, tuple(f"/c/{f}" for f in FILES), 3)


def host_with(*contents: str) -> FakeHost:
    """Return a host on which the files of the plan hold these texts."""
    host = FakeHost()
    for path, content in zip(PLAN.paths, contents, strict=True):
        host.put(path, content)
    return host


class TestRead:
    def test_values_in_the_order_of_the_specs(self) -> None:
        """Numbers are as they stand in the files."""
        reading = read(host_with("3\n", "0\n", "65535\n"), PLAN)
        assert reading == Reading(PLAN.port, 1000.0, SPECS, (3, 0, 65535))

    def test_costs_what_the_plan_says(self) -> None:
        """The host counts the firmware commands of the burst."""
        host = host_with("0\n", "0\n", "0\n")
        read(host, PLAN)
        assert host.firmware_reads == 3

    @pytest.mark.parametrize("errno", ["ENOENT", "EINVAL", "EIO", "EOPNOTSUPP"])
    def test_a_file_that_fails_costs_itself(self, errno: str) -> None:
        """The others keep their values; the failure keeps its errno."""
        host = host_with("3\n", "0\n", "4\n")
        host.fail("/c/link_downed", errno)
        reading = read(host, PLAN)
        assert reading.values == (3, None, 4)
        assert reading.absent == (Absence("link_downed", errno),)

    def test_text_in_place_of_a_number_is_kept(self) -> None:
        """Old kernels answer with words and success."""
        reading = read(host_with("N/A (no PMA)\n", "0\n", ""), PLAN)
        assert reading.values == (None, 0, None)
        assert reading.absent == (
            Absence("symbol_error", "N/A (no PMA)"),
            Absence("port_rcv_errors", "empty"),
        )

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            ("18446744073709551615\n", "all ones"),
            ("-1\n", "-1"),
            ("184467440737095516160\n", "184467440737095516160"),
        ],
    )
    def test_impossible_numbers_are_no_values(self, content: str, reason: str) -> None:
        """All ones, negative and too long numbers do not enter a window."""
        reading = read(host_with("3\n", content, "4\n"), PLAN)
        assert reading.values == (3, None, 4)
        assert reading.absent == (Absence("link_downed", reason),)

    def test_time_is_that_of_the_end(self) -> None:
        """A read that hung gives values of the moment in which it came back."""
        host = host_with("0\n", "0\n", "0\n")
        slow = host.read_many

        def hang(paths: tuple[str, ...], cost: int = 0) -> list[bytes | ReadError]:
            host.now += 30
            return slow(paths, cost)

        host.read_many = hang  # type: ignore[method-assign, assignment]
        assert read(host, PLAN).at == 1030.0

    @given(st.lists(st.binary(max_size=24), min_size=3, max_size=3))
    def test_nothing_in_a_file_is_too_odd(self, contents: list[bytes]) -> None:
        """Whatever the files hold, a value is a number of 64 bits or has a reason."""
        host = FakeHost()
        for path, content in zip(PLAN.paths, contents, strict=True):
            host.put(path, content)
        reading = read(host, PLAN)
        reasons = {each.file for each in reading.absent}
        for spec, value, content in zip(SPECS, reading.values, contents, strict=True):
            assert (value is None) == (spec.file in reasons)
            number = parse_counter(content)
            if isinstance(number, int) and number < NO_VALUE:
                assert value == number


class TestGroups:
    @pytest.mark.parametrize(
        ("source", "file"),
        [
            ("errors", "symbol_error"),
            ("traffic", "port_xmit_data"),
            ("hardware", "rx_write_requests"),
        ],
    )
    def test_each_group_is_a_source(self, source: str, file: str) -> None:
        """A source reads the files of its own group only."""
        host = mlx5_node(1)
        target = Target("mlx5_0", hca_of(host, "mlx5_0"))
        reading = only(Reading, poll(source, host, target))
        assert file in {spec.file for spec in reading.specs}
        assert {spec.group.value for spec in reading.specs} == {source}

    def test_settings_are_not_read(self) -> None:
        """`lifespan` sits among the counters and counts nothing."""
        host = mlx5_node(1)
        folder = f"{RDMA_CLASS}/mlx5_0/ports/1/hw_counters"
        host.put(f"{folder}/clear_counters", 0)
        target = Target("mlx5_0", hca_of(host, "mlx5_0"))
        poll("hardware", host, target)
        assert host.opened[f"{folder}/duplicate_request"] == 1
        assert not {f"{folder}/lifespan", f"{folder}/clear_counters"} & {*host.opened}
