import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.config import Config
from fabricmon.model import MaintenancePlan, MaintenanceWindow
from fabricmon.sources.maintenance import parse_plan
from tests.fake_host import FakeHost
from tests.sources.polls import only, poll

PATH = "/run/fabricmon/maintenance.json"
NOON = "2026-01-31T12:00:00Z"
NOON_SECONDS = 1769860800.0


def plan_of(content: object) -> MaintenancePlan:
    """Return what the source makes of a file with this content."""
    host = FakeHost()
    text = content if isinstance(content, str) else json.dumps(content)
    host.put(PATH, text)
    return only(MaintenancePlan, poll("maintenance", host))


class TestMaintenance:
    def test_windows(self) -> None:
        """Each entry is a window; no ports mean the node."""
        entry = {"until": NOON, "ports": ["mlx5_0/1"], "reason": "cable"}
        assert plan_of([entry, {"until": NOON}]).windows == (
            MaintenanceWindow(NOON_SECONDS, ("mlx5_0/1",), "cable"),
            MaintenanceWindow(NOON_SECONDS),
        )

    def test_offset_is_respected(self) -> None:
        """A time with an offset is that moment."""
        plan = plan_of([{"until": "2026-01-31T14:00:00+02:00"}])
        assert plan.windows[0].until == NOON_SECONDS

    def test_absent_file_is_an_empty_plan(self) -> None:
        """No file means no maintenance, and no error."""
        plan = only(MaintenancePlan, poll("maintenance", FakeHost()))
        assert (plan.windows, plan.error) == ((), None)

    def test_run_folder_is_configured(self) -> None:
        """The file lies in the run folder of the configuration."""
        host = FakeHost()
        host.put("/srv/run/maintenance.json", json.dumps([{"until": NOON}]))
        config = Config(run_folder="/srv/run/")
        plan = only(MaintenancePlan, poll("maintenance", host, config=config))
        assert len(plan.windows) == 1

    def test_unreadable_file_is_an_error(self) -> None:
        """A file that cannot be read does not pass for an absent one."""
        host = FakeHost()
        host.fail(PATH, "EACCES")
        plan = only(MaintenancePlan, poll("maintenance", host))
        assert (
            plan.error == f"{PATH}: EACCES: make it readable for fabricmon or remove it"
        )

    @pytest.mark.parametrize(
        ("entry", "about"),
        [
            ({}, "`until`"),
            ({"until": "tomorrow"}, "$.until"),
            ({"until": "2026-01-31T12:00:00"}, "timezone"),
            ({"until": NOON, "ports": "mlx5_0/1"}, "$.ports"),
            ("mlx5_0/1", "object"),
        ],
    )
    def test_bad_entry_costs_itself(self, entry: object, about: str) -> None:
        """The others hold; the error names file, entry, key and what to write."""
        plan = plan_of([{"until": NOON}, entry])
        assert len(plan.windows) == 1
        assert plan.error is not None
        assert plan.error.startswith(f"{PATH}: entry 2: ")
        assert about in plan.error
        assert "write a list such as" in plan.error

    @pytest.mark.parametrize("content", ["", "{", "{}", "null", "[" * 5000])
    def test_no_list_is_an_error(self, content: str) -> None:
        """A file that is no list gives no window and says what to write."""
        plan = plan_of(content)
        assert plan.windows == ()
        assert plan.error is not None
        assert "write a list such as" in plan.error

    def test_later_versions_may_add_keys(self) -> None:
        """A key that is not known is passed over."""
        assert plan_of([{"until": NOON, "ticket": 7}]).error is None

    @given(st.binary(max_size=200))
    def test_any_bytes_are_survived(self, raw: bytes) -> None:
        """Whatever stands in the file, the source gives a plan."""
        plan = parse_plan(raw, PATH, 0.0)
        assert plan.windows or plan.error or raw.strip() == b"[]"


class TestSharedFile:
    """A file that many nodes read, such as a ConfigMap."""

    @pytest.mark.parametrize(
        ("node", "nodes", "applies"),
        [
            ("gpu-7", ["gpu-7"], True),
            ("gpu-7", ["gpu-*"], True),
            ("gpu-7", ["gpu-8", "cpu-*"], False),
            (None, ["gpu-7"], False),
            ("gpu-7", [], True),
        ],
    )
    def test_windows_of_other_nodes(
        self, node: str | None, nodes: list[str], *, applies: bool
    ) -> None:
        """Names or patterns; a node that does not know its name takes none of them."""
        raw = json.dumps([{"until": NOON, "nodes": nodes}]).encode()
        plan = parse_plan(raw, PATH, 0.0, node)
        assert bool(plan.windows) is applies
        assert plan.error is None

    def test_its_place_is_configured(self) -> None:
        """Elsewhere than in the run folder, where the socket lies."""
        host = FakeHost()
        host.put("/etc/maintenance/plan.json", json.dumps([{"until": NOON}]))
        config = Config(maintenance_file="/etc/maintenance/plan.json")
        plan = only(MaintenancePlan, poll("maintenance", host, config=config))
        assert len(plan.windows) == 1
