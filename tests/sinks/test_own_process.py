"""The metrics of the agent's own process."""

import os
import resource
import time
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from fabricmon.sinks.own_process import OwnProcess
from fabricmon.sinks.template import Fixed


def measured(own: OwnProcess) -> dict[str, float]:
    """Return the value of each series."""
    text = generate_latest(Fixed(list(own.collect()))).decode()
    families = text_string_to_metric_families(text)
    return {s.name: s.value for family in families for s in family.samples}


def node(folder: Path, descriptors: int) -> Path:
    """Return a /proc of a kernel that does not say how many descriptors are open."""
    (folder / "self/fd").mkdir(parents=True)
    for number in range(descriptors):
        (folder / "self/fd" / str(number)).touch()
    (folder / "self/statm").write_text("100 40 3 1 0 5 0\n")
    fields = ["S", *["0"] * 18, "700", "1", "2"]
    (folder / "self/stat").write_text(f"1 (py (x) y) {' '.join(fields)}\n")
    (folder / "stat").write_text("cpu 1 2\nbtime 1700000000\n")
    return folder


class TestOwnProcess:
    def test_names_and_values_are_those_of_the_library(self) -> None:
        """Dashboards of other exporters work; memory moves between the two looks."""
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        text = generate_latest(registry).decode()
        families = text_string_to_metric_families(text)
        theirs = {s.name: s.value for family in families for s in family.samples}
        ours = measured(OwnProcess())
        left_out = {"process_virtual_memory_bytes", "process_max_fds"}
        assert ours.keys() == theirs.keys() - left_out
        name = "process_start_time_seconds"
        assert ours[name] == pytest.approx(theirs[name], abs=0.02)
        for name in ours.keys() - {"process_open_fds"}:
            assert ours[name] == pytest.approx(theirs[name], rel=0.1, abs=0.1)

    def test_open_descriptors_are_counted_anew(self) -> None:
        """One more is one more."""
        own = OwnProcess()
        before = measured(own)["process_open_fds"]
        extra = os.open("/dev/null", os.O_RDONLY)
        try:
            assert measured(own)["process_open_fds"] == before + 1
        finally:
            os.close(extra)

    def test_kernel_that_does_not_count_descriptors(self, tmp_path: Path) -> None:
        """Then they are listed: before Linux 6.2 the folder's size is 0."""
        proc = node(tmp_path, 3)
        values = measured(OwnProcess(proc))
        assert values["process_resident_memory_bytes"] == 40 * resource.getpagesize()
        ticks = os.sysconf("SC_CLK_TCK")
        assert values["process_start_time_seconds"] == 1700000000 + 700 / ticks

    def test_without_proc_there_is_nothing(self, tmp_path: Path) -> None:
        """No zeros for what cannot be read."""
        assert measured(OwnProcess(tmp_path)) == {}

    def test_start_that_is_not_told_is_now(self, tmp_path: Path) -> None:
        """A restart must be seen all the same."""
        proc = node(tmp_path, 1)
        (proc / "stat").write_text("cpu 1 2\n")
        started = measured(OwnProcess(proc))["process_start_time_seconds"]
        assert started == pytest.approx(time.time(), abs=60)
