"""Every recorded sysfs tree, read as a node would be, against the right answers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabricmon.catalogue import Directory
from fabricmon.config import Config, Devices
from fabricmon.host.live import LiveHost
from fabricmon.host.protocol import Host
from fabricmon.inventory import Inventory
from fabricmon.model import (
    DeviceList,
    Hca,
    LinkStatus,
    NetdevStatus,
    PciStatus,
    PortInfo,
    ReadFailure,
    Reading,
    Record,
)
from tests.fake_host import FakeHost
from tests.manifest import SYSFS, lay_out
from tests.sources.polls import Sweep, every, only

Json = dict[str, Any]
EXPORT_ALL = Config(devices=Devices(virtual_functions="export"))
SETTINGS = {"lifespan", "clear_counters"}
FOLDERS = {
    Directory.COUNTERS: "counters",
    Directory.COUNTERS_EXT: "counters_ext",
    Directory.HW_COUNTERS: "hw_counters",
}
NO_LID = 65535


def samples() -> list[Any]:
    """Return manifest, expected ports and expected counters of every sample."""
    found = []
    for path in sorted(SYSFS.glob("*.expect.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        for key, file in case["inputs"].items():
            if key in {"manifest", "t0", "t1"}:
                suffix = "" if key == "manifest" else f"_{key}"
                counters = case["expect"].get(f"counters{suffix}", {})
                ports = [] if key == "t0" else case["expect"]["ports"]
                values = (SYSFS / file, case, ports, counters)
                found.append(pytest.param(*values, id=file))
    return found


def read_all(manifest: Path) -> tuple[Any, ...]:
    """Return every record that one sweep over the node gives."""
    return Sweep(FakeHost(manifest), EXPORT_ALL).records()


@pytest.mark.parametrize(("manifest", "case", "ports", "counters"), samples())
class TestCase:
    def test_counters(
        self, manifest: Path, case: Json, ports: list[Json], counters: Json
    ) -> None:
        """Each file that holds a number gives that number, and no file another."""
        found: dict[str, dict[str, dict[str, int]]] = {}
        for reading in every(Reading, read_all(manifest)):
            for spec, value in zip(reading.specs, reading.values, strict=True):
                if spec.directory in FOLDERS and value is not None:
                    port = found.setdefault(str(reading.port), {})
                    port.setdefault(FOLDERS[spec.directory], {})[spec.file] = value
        wanted: dict[str, dict[str, Json]] = {}
        for port_name, folders in counters.items():
            for folder, values in folders.items():
                left = {k: v for k, v in values.items() if k not in SETTINGS}
                if left:
                    wanted.setdefault(port_name, {})[folder] = left
        assert found == wanted

    def test_unavailable_counters_have_a_reason(
        self, manifest: Path, case: Json, ports: list[Json], counters: Json
    ) -> None:
        """A file without a number is said to be absent, with what stood there."""
        absent = {
            f"{reading.port}:{FOLDERS[spec.directory]}/{spec.file}"
            for reading in every(Reading, read_all(manifest))
            for spec in reading.specs
            if spec.directory in FOLDERS
            and spec.file in {each.file for each in reading.absent}
        }
        assert absent == set(case["expect"].get("unavailable", []))

    def test_link(
        self, manifest: Path, case: Json, ports: list[Json], counters: Json
    ) -> None:
        """State, rate and LIDs are as the case has them."""
        statuses = {
            str(status.port): status
            for status in every(LinkStatus, read_all(manifest))
            if status.complete
        }
        ambiguous = " ".join(case["expect"].get("ambiguous", []))
        for port in ports:
            name = f"{port['device']}/{port['port']}"
            status = statuses[name]
            found = {
                "state": status.state,
                "phys_state": status.phys_state,
                "rate_gbps": status.rate.gbps,
                "width": status.rate.width,
                "speed": status.rate.speed,
                "lid": status.lid,
                "sm_lid": status.sm_lid,
            }
            for key, value in found.items():
                wanted = None if port[key] == NO_LID else port[key]
                if f"{name} {key}" not in ambiguous:
                    assert (name, key, value) == (name, key, wanted)

    def test_identity(
        self, manifest: Path, case: Json, ports: list[Json], counters: Json
    ) -> None:
        """The inventory knows each port by what its files say."""
        inventory = Inventory(EXPORT_ALL)
        records = read_all(manifest)
        inventory.update(only(DeviceList, records))
        for hca in every(Hca, records):
            inventory.update(hca)
        infos = {str(info.id): info for info in inventory.ports()}
        for port in ports:
            assert_identity(infos[f"{port['device']}/{port['port']}"], port)
        if ports:
            assert len(infos) == len(ports)


def assert_identity(info: PortInfo, port: Json) -> None:
    """Compare what the case tells of the identity of a port."""
    found = {
        "link_layer": info.link_layer,
        "node_guid": info.node_guid,
        "fw": info.firmware,
        "hca_type": info.hca_type,
        "netdev": info.netdev,
    }
    wanted = {key: port[key] for key in found if key in port}
    wanted["fw"] = wanted.get("fw") or None
    assert {key: found[key] for key in wanted} == wanted


def test_every_case_is_here() -> None:
    """No tree lies there without its answers, nor the other way round."""
    assert len(samples()) == len(list(SYSFS.glob("*.manifest"))) > 0


@pytest.mark.parametrize(
    "manifest", sorted(SYSFS.glob("*.manifest")), ids=lambda path: path.stem
)
def test_live_host_reads_the_same(manifest: Path, tmp_path: Path) -> None:
    """Real files give the same records as the same tree in memory."""
    lay_out(manifest, tmp_path)
    assert device_records(LiveHost(str(tmp_path))) == device_records(FakeHost(manifest))


def device_records(host: Host) -> list[Record]:
    """Return all that is read of devices, times left out."""
    kinds = (Hca, LinkStatus, NetdevStatus, PciStatus, Reading, ReadFailure)
    return [
        replace(record, at=0.0) if not isinstance(record, ReadFailure) else record
        for record in Sweep(host).records()
        if isinstance(record, kinds)
    ]
