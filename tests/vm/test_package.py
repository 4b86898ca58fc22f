"""The .deb on a real systemd, without a network: its whole life."""

import re

import pytest

from tests.vm.outcome import Outcome

pytestmark = [pytest.mark.vm, pytest.mark.slow, pytest.mark.timeout(1800)]


class TestInstall:
    def test_starts(self, package: Outcome) -> None:
        """`dpkg -i` alone makes a service that is enabled, ready and answers."""
        notes = package.step("installed").notes

        assert notes["said"].endswith("exit 0\n")
        assert (notes["state"], notes["enabled"]) == ("active", "enabled")
        assert notes["healthz"] == 200
        assert "4 ports" in notes["status"]

    def test_runs_as_its_own_user(self, package: Outcome) -> None:
        """The package makes the user that the unit names."""
        assert package.step("installed").notes["user"] == "fabricmon"

    def test_carries_its_interpreter(self, package: Outcome) -> None:
        """Of the node the process maps the C library alone, and no Python."""
        files = package.step("installed").notes["files"]
        foreign = [f for f in files if not f.startswith("/usr/lib/fabricmon/")]

        assert "/usr/lib/fabricmon/fabricmon" in files
        for file in foreign:
            assert re.search(
                r"/(ld-linux|lib(c|m|dl|rt|pthread)\.|libnss_|locale)", file
            ), file

    def test_exposure(self, package: Outcome) -> None:
        """The running unit is as tight as its text."""
        said = package.step("installed").notes["exposure"]
        level = re.search(r"exposure level for \S+: ([\d.]+)", said)

        assert level
        assert float(level.group(1)) <= 2.0


class TestGate:
    def test_is_installed_and_off(self, package: Outcome) -> None:
        """Which node of the cluster runs it is not for the package to say."""
        notes = package.step("gate installed").notes

        assert (notes["state"], notes["enabled"]) == ("inactive", "disabled")
        assert notes["kept"] == []

    def test_starts(self, package: Outcome) -> None:
        """As it comes it starts, as a user of its own, takes alerts and keeps them."""
        notes = package.step("gate started").notes

        assert notes["said"] == "exit 0\n"
        assert notes["state"] == "active"
        assert notes["taken"] == "200"
        assert notes["user"] == "fabricmon-gate"
        assert notes["owner"] == "fabricmon-gate 750"
        assert "journal.sqlite" in notes["kept"]

    def test_exposure(self, package: Outcome) -> None:
        """The running unit is as tight as its text."""
        said = package.step("gate started").notes["exposure"]
        level = re.search(r"exposure level for \S+: ([\d.]+)", said)

        assert level
        assert float(level.group(1)) <= 1.5

    def test_upgrade(self, package: Outcome) -> None:
        """One that runs is restarted, is not enabled by it, and keeps its journal."""
        before = package.step("gate started").notes
        after = package.step("upgrade done").notes["gate"]

        assert (after["state"], after["enabled"]) == ("active", "disabled")
        assert after["pid"] not in {before["pid"], "0"}
        assert "journal.sqlite" in after["kept"]

    def test_remove(self, package: Outcome) -> None:
        """It is stopped; its journal and configuration stay until the purge."""
        notes = package.step("removed").notes

        assert notes["gate"]["state"] == "inactive"
        assert "journal.sqlite" in notes["gate"]["kept"]
        assert "/etc/fabricmon/gate.yaml" in notes["left"]


class TestService:
    def test_reload(self, package: Outcome) -> None:
        """A reload takes the changed configuration, in the same process."""
        before, after = package.step("reload").notes, package.step("reloaded").notes

        assert package.after("reload", "configuration_loaded") < 20
        assert before["pid"] == after["pid"]

    def test_watchdog(self, package: Outcome) -> None:
        """A loop that hangs is ended by systemd's watchdog and started again."""
        before, after = package.step("hang").notes, package.step("restarted").notes

        assert after["restarts"] == "1"
        assert before["pid"] != after["pid"]
        assert "Watchdog timeout" in package.step("purged").notes["journal"]

    def test_stops(self, package: Outcome) -> None:
        """The service stops within 2 s and calls that a success."""
        notes = package.step("stopped").notes
        began = package.after("stop", "agent_stopping")

        assert package.after("stop", "agent_stopped") - began < 2
        assert notes["result"] == "success"


@pytest.mark.parametrize(("name", "revision"), [("upgrade", "2"), ("rollback", "1")])
class TestOtherVersion:
    def test_runs(self, package: Outcome, name: str, revision: str) -> None:
        """The other build runs at once, in a process of its own."""
        before = package.step(name).notes
        after = package.step(f"{name} done").notes

        assert after["said"].endswith("exit 0\n")
        assert after["version"].endswith(f"-{revision}")
        assert after["state"] == "active"
        assert before["pid"] != after["pid"]

    def test_keeps_state(self, package: Outcome, name: str, revision: str) -> None:
        """Open findings go on under their ids, and nothing is told again."""
        ids = package.step("found").notes["findings"]

        assert len(ids) == 2
        assert package.step(f"{name} done").notes["findings"] == ids
        for device in ("rxe2", "rxe3"):
            assert package.findings(device, name, f"{name} done") == []

    def test_keeps_configuration(
        self, package: Outcome, name: str, revision: str
    ) -> None:
        """What the administrator changed stays."""
        assert package.step(f"{name} done").notes["configured"]


class TestRemoval:
    def test_disabled_stays_so(self, package: Outcome) -> None:
        """A package that is installed again does not enable what was disabled."""
        assert package.step("disabled").notes["enabled"] == "disabled"

    def test_remove_keeps_what_is_the_sites(self, package: Outcome) -> None:
        """Without a purge, configuration and state stay, and no code does."""
        notes = package.step("removed").notes

        assert notes["state"] == "inactive"
        assert notes["state_files"] == [".lock", "state.msgpack"]
        assert "/etc/fabricmon/fabricmon.yaml" in notes["left"]
        assert not [path for path in notes["left"] if path.startswith("/usr/")]

    def test_purge_leaves_nothing(self, package: Outcome) -> None:
        """After a purge nothing is left but the folder that is a mount, empty."""
        notes = package.step("purged").notes

        assert notes["said"].endswith("exit 0\n")
        assert notes["left"] == ["/var/lib/fabricmon"]
        assert notes["state_files"] == []

    def test_never_crashed(self, package: Outcome) -> None:
        """Nothing in all this was an error of the program."""
        names = {event.name for event in package.events}

        assert not names & {"source_crashed", "sink_failed", "state_unsaved"}
        assert "Traceback" not in package.step("purged").notes["journal"]
