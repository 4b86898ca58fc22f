"""Devices that come, go and change, too many of them, and names that bite."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from fabricmon.host.live_descriptors import MOST_DESCRIPTORS
from tests.campaign.row import Fault, Guard
from tests.campaign.scene import Scene, cpu_seconds
from tests.support.agent import CLASS, FAST, AgentProcess, Json
from tests.support.servers import LOOPBACK, free_port

MOST = 2000
MOST_CPU_SECONDS = 12.0  # 4 s here; ten times that where each device is a start of all
CALM: Json = {"periods": dict.fromkeys(FAST["periods"], 5)}


def add(scene: Scene, name: str | bytes, number: int) -> Path:
    """Add a device of software with a GUID of its own."""
    folder = Path(f"{scene.node.root}/{CLASS}/x").with_name(_text(name))
    files = {
        "node_guid": f"0002:c903:0000:{number:04x}\n",
        "ports/1/state": "4: ACTIVE\n",
        "ports/1/phys_state": "5: LinkUp\n",
        "ports/1/rate": "400 Gb/sec (4X NDR)\n",
        "ports/1/lid": "0x1\n",
        "ports/1/sm_lid": "0x1\n",
        "ports/1/link_layer": "InfiniBand\n",
        "ports/1/counters/symbol_error": "3\n",
        "ports/1/counters/link_downed": "0\n",
    }
    for file, text in files.items():
        place = folder / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder


def _text(name: str | bytes) -> str:
    return name if isinstance(name, str) else name.decode("utf-8", "surrogateescape")


def vanishes(scene: Scene) -> None:
    agent = scene.begin()
    scene.verdict("mlx5_0", "healthy")
    scene.node.remove(f"{CLASS}/mlx5_0")
    scene.finding("device_missing", "mlx5_0")
    scene.until(
        lambda: not any('device="mlx5_0",port' in s for s in agent.metrics()),
        "no value of it is exported",
    )
    assert len(agent.check()["ports"]) == 3


def comes_back(scene: Scene) -> None:
    agent = scene.begin()
    scene.verdict("mlx5_0", "healthy")
    target = str((scene.node.root / CLASS / "mlx5_0").readlink())
    scene.node.remove(f"{CLASS}/mlx5_0")
    scene.finding("device_missing", "mlx5_0")
    scene.node.link(f"{CLASS}/mlx5_0", target)
    scene.until(lambda: not agent.findings("device_missing"), "it is back")
    scene.value('infiniband_symbol_error_total{device="mlx5_0",port="1"}', 0)


def hot_plug_storm(scene: Scene) -> None:
    """Pull and plug one device a hundred times, as fast as files can be made."""
    agent = scene.begin()
    scene.verdict("mlx5_0", "healthy")
    for device in ("mlx5_0", "mlx5_1"):
        scene.value(f'infiniband_symbol_error_total{{device="{device}",port="1"}}', 0)
    place = scene.node.root / CLASS / "mlx5_0"
    target = str(place.readlink())
    before = len(list(Path(f"/proc/{agent.pid}/fd").iterdir()))
    for number in range(100):
        place.unlink()
        if number % 10 == 0:
            scene.until(
                lambda: len(agent.check()["ports"]) == 3, "it is seen to be gone"
            )
        place.symlink_to(target)
        if number % 10 == 0:
            scene.until(
                lambda: len(agent.check()["ports"]) == 4, "it is seen to be there"
            )
    scene.until(lambda: not agent.findings("device_missing"), "nothing is missed")
    scene.verdict("mlx5_0", "healthy")
    after = len(list(Path(f"/proc/{agent.pid}/fd").iterdir()))
    assert after < before + 300, f"{before} descriptors became {after}"


def hundred_devices(scene: Scene) -> None:
    """Plug a hundred devices, and pull all of them."""
    agent = scene.begin()
    scene.verdict("mlx5_0", "healthy")
    folders = [add(scene, f"hot_{n}", 0x100 + n) for n in range(100)]
    scene.until(lambda: len(agent.check()["ports"]) == 104, "all are there")
    for folder in folders:
        folder.rename(scene.folder / folder.name)
    scene.until(lambda: len(agent.check()["ports"]) == 4, "all are gone")
    scene.until(
        lambda: not any('device="hot_' in s and "port=" in s for s in _ports(agent)),
        "no series of them is left",
    )
    failing = 'read_errors_total{errno="ENOENT",source="state"}'
    value = agent.metric(failing)
    scene.polls_on()
    assert agent.metric(failing) == value, "they are still polled"


def _ports(agent: AgentProcess) -> list[str]:
    return [s for s in agent.metrics() if not s.startswith("finding")]


def renamed(scene: Scene) -> None:
    """Rename a device, as udev does after the start."""
    agent = scene.begin()
    scene.verdict("mlx5_0", "healthy")
    place = scene.node.root / CLASS / "mlx5_0"
    place.rename(place.with_name("ibp26s0"))
    scene.verdict("ibp26s0", "healthy")
    scene.until(lambda: len(agent.check()["ports"]) == 4, "four ports as before")
    scene.polls_on()
    assert agent.findings("device_missing") == []
    assert agent.findings("port_down") == []


def port_count(scene: Scene) -> None:
    """Let a device have a second port, and then one again."""
    agent = scene.begin()
    scene.verdict("mlx5_0", "healthy")
    ports = (scene.node.root / CLASS / "mlx5_0" / "ports").resolve()
    shutil.copytree(ports / "1", ports / "2", symlinks=True)
    scene.until(lambda: len(agent.check()["ports"]) == 5, "a port more")
    (ports / "2").rename(scene.folder / "former")
    scene.until(lambda: len(agent.check()["ports"]) == 4, "a port less")
    scene.until(
        lambda: not any('device="mlx5_0",port="2"' in s for s in agent.metrics()),
        "no series of it is left",
    )


def no_ports(scene: Scene) -> None:
    """Let a device lose all of its ports: its driver failed."""
    agent = scene.begin()
    scene.verdict("mlx5_0", "healthy")
    ports = (scene.node.root / CLASS / "mlx5_0" / "ports").resolve()
    ports.rename(scene.folder / "ports")
    error = scene.error("mlx5_0", "ENOENT")
    assert error["file"].endswith("/mlx5_0/ports")
    assert agent.check()["verdict"] != "healthy"


def no_class(scene: Scene) -> None:
    scene.make_node(None)
    agent = scene.begin()
    error = scene.error(None, "ENOENT")
    assert error["file"] == f"/{CLASS}"
    scene.value("infiniband_class_readable", 0)
    assert agent.check()["verdict"] == "unknown"
    assert scene.line("devices_unreadable")["err"] == "ENOENT"
    assert agent.stop() < 5


def no_sys(scene: Scene) -> None:
    """Take all of /sys away while the agent runs."""
    agent = scene.begin()
    scene.verdict("mlx5_0", "healthy")
    (scene.node.root / "sys").rename(scene.folder / "sys")
    scene.error(None, "ENOENT")
    scene.until(lambda: agent.findings("device_missing"), "the devices are missed")
    assert agent.check()["verdict"] == "down"
    (scene.folder / "sys").rename(scene.node.root / "sys")
    scene.verdict("mlx5_0", "healthy")


def root_by_link(scene: Scene) -> None:
    """Name the root by a relative path that leads through a link."""
    link = scene.folder / "way"
    link.symlink_to(scene.node.root)
    logs = scene.node.root / "logs"
    logs.mkdir()
    (logs / "job.log").write_text("gpu-7:4711:4711 [0] NCCL INFO NCCL version 2.23.4\n")
    config: Json = {
        "root": os.path.relpath(link),
        "periods": {"nccl_log_seconds": 0.2},
        "logs": {"paths": ["/logs/*.log"], "discovery_seconds": 0.2},
    }
    agent = scene.start(config)
    scene.verdict("mlx5_0", "healthy")
    assert agent.port_object("mlx5_0")["pci_address"] is not None
    scene.above("log_lines_total", 0)


def thousands(scene: Scene) -> None:
    """Add 2,000 devices; what they cost is bounded, also what their start costs."""
    scene.memory_mib, scene.descriptors = 320, MOST_DESCRIPTORS + 100
    scene.patience = max(scene.patience, 60.0)  # a round of all takes its time
    for number in range(MOST):
        add(scene, f"soft_{number}", number)
    agent = scene.start(CALM)

    def watched() -> bool:
        spent = cpu_seconds(agent.pid)
        assert spent < MOST_CPU_SECONDS, f"{spent:.0f} s of CPU"
        found = f'infiniband_symbol_error_total{{device="soft_{MOST - 1}",port="1"}}'
        return agent.metric(found) == 3

    scene.until(watched, "the last one is watched", 240)
    assert agent.get("/healthz") == "ok\n"
    scene.goes_on()
    scene.bounded()
    agent.signal(signal.SIGTERM)
    assert agent.wait(60) == 0  # two seconds of CPU, of which others may leave few


HOSTILE = 'x"\n}{\\<script>alert(1)<\u2215script>&\x1b[2J'
LONG = "n" * 254


def _hostile(scene: Scene, *names: str | bytes) -> tuple[AgentProcess, int]:
    for number, name in enumerate(names):
        add(scene, name, 0x200 + number)
    port = free_port()
    agent = scene.make({"listen": {"page": f"{LOOPBACK}:{port}"}})
    scene.begin(agent)
    scene.until(
        lambda: len(agent.check()["ports"]) == 4 + len(names), "they are watched"
    )
    return agent, port


def hostile_metrics(scene: Scene) -> None:
    agent, _ = _hostile(scene, HOSTILE)
    scene.until(lambda: "script" in agent.get("/metrics"), "it is exported")
    text = agent.get("/metrics")
    families = list(text_string_to_metric_families(text))
    labels = {
        sample.labels["device"]
        for family in families
        for sample in family.samples
        if "device" in sample.labels
    }
    assert any(label.startswith('x"') for label in labels)
    assert not any("\n" in label or "\x1b" in label for label in labels)


def hostile_page(scene: Scene) -> None:
    _, port = _hostile(scene, HOSTILE)
    scene.until(lambda: "alert(1)" in scene.page(port), "it is shown")
    text = scene.page(port)
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


def hostile_log(scene: Scene) -> None:
    """Let a key of the configuration, which is told as wrong, hold terminal codes."""
    agent = scene.begin()
    agent.config_file.write_text('"\\e]0;pwned\\a\\e[2J\\u202e": 1\n')
    scene.reload()
    err = scene.line("configuration_refused")["err"]
    assert "pwned" in err
    assert err.isprintable()


def not_text_name(scene: Scene) -> None:
    agent, port = _hostile(scene, b"mlx\xff\xfe5")
    scene.value("state_saved", 1)
    assert agent.get("/metrics")
    assert scene.page(port)
    scene.node.state("mlx5_0", "1: DOWN", "2: Polling")
    scene.finding("port_down", "mlx5_0")
    agent.stop()
    scene.begin(agent)
    assert agent.lines("state_ignored") == []
    scene.until(lambda: len(agent.check()["ports"]) == 5, "all are there again")


def long_name(scene: Scene) -> None:
    agent, port = _hostile(scene, LONG, LONG + "1")
    scene.until(lambda: "nnn" in agent.get("/metrics"), "they are exported")
    labels = {
        sample.labels["device"]
        for family in text_string_to_metric_families(agent.get("/metrics"))
        for sample in family.samples
        if sample.labels.get("device", "").startswith("nn")
    }
    assert len(labels) == 2
    assert max(map(len, labels)) <= 128
    assert scene.page(port)


FAULTS = (
    Fault(
        "device-vanishes",
        "a device is gone from the RDMA class",
        "device_missing; its series go, the others stay",
        Guard(
            "inventory.py",
            "            else:\n                card.miss(found.at)\n",
            "",
        ),
        vanishes,
    ),
    Fault(
        "device-comes-back",
        "a device is gone and comes back",
        "device_missing is resolved and the port read again",
        Guard(
            "known_device.py",
            "self.missing_since, self.polls = None, 0",
            "self.polls = 0",
        ),
        comes_back,
    ),
    Fault(
        "hot-plug-storm",
        "a device is pulled and plugged a hundred times",
        "four ports, all healthy, nothing missed, no descriptor lost",
        Guard(
            "inventory.py",
            "        self._listed = found.names\n",
            "        self._listed = self._listed or found.names\n",
        ),
        hot_plug_storm,
    ),
    Fault(
        "hundred-devices-come-and-go",
        "a hundred devices are plugged at once, and pulled at once",
        "watched, then gone from the metrics, and not polled any more",
        Guard(
            "schedule.py",
            "            self._entries.pop(key).ticket = -1",
            "            self._entries.get(key)",
        ),
        hundred_devices,
    ),
    Fault(
        "device-renamed",
        "a device gets another name",
        "the same card: no device_missing, no port_down",
        Guard(
            "inventory.py",
            "card = self._same_guid(hca) or self._same_slot(hca) or self._same_name(hca)",
            "card = None",
        ),
        renamed,
    ),
    Fault(
        "port-count-changes",
        "a device has two ports, then one again",
        "the second one is watched, then gone from check and metrics",
        Guard(
            "inventory.py",
            "        if device is not None and device.hca == hca:\n",
            "        if device is not None:\n",
        ),
        port_count,
    ),
    Fault(
        "device-without-ports",
        "the ports of a device vanish",
        "ENOENT with the folder's name; the node is not healthy",
        Guard(
            "sources/identity.py",
            '        failures.append(_failure(name, "ports", names.errno, message))\n',
            "        del message\n",
        ),
        no_ports,
    ),
    Fault(
        "no-rdma-class",
        "there is no /sys/class/infiniband",
        "it runs, says so once, exports class_readable 0 and blindness, ends on SIGTERM",
        Guard(
            "sources/devices.py",
            "return (DeviceList(at, (), names.errno),)",
            "return (DeviceList(at, ()),)",
        ),
        no_class,
    ),
    Fault(
        "sys-vanishes",
        "/sys is gone while the agent runs, and comes back",
        "the devices are missed, the verdict is down; all is well afterwards",
        Guard(
            "host/live.py",
            "        except OSError as error:\n            return failure(error.errno)\n"
            "        except ValueError:\n            return failure(errno.EINVAL)\n\n"
            "    def target",
            "        except KeyError as error:\n            return failure(0)\n"
            "        except ValueError:\n            return failure(errno.EINVAL)\n\n"
            "    def target",
        ),
        no_sys,
    ),
    Fault(
        "root-is-relative-link",
        "the root is a relative path through a link",
        "devices have their PCI addresses, logs below the root are followed",
        Guard(
            "host/live.py",
            'self._real_prefix = str(Path(root).resolve()).rstrip("/")',
            'self._real_prefix = str(Path(root).absolute()).rstrip("/")',
        ),
        root_by_link,
    ),
    Fault(
        "two-thousand-devices",
        "the node has 2,000 devices of software beside its own",
        "all are watched, memory stays below 320 MiB, CPU below 12 s, the loop turns",
        Guard(
            "inventory.py",
            "        if device.is_replaced_by(hca):\n",
            "        if hca:\n",
        ),
        thousands,
    ),
    Fault(
        "hostile-name-in-metrics",
        "a device is named with quotes, newlines, braces and terminal codes",
        "/metrics is read by Prometheus' parser; no control characters in a label",
        Guard(
            "sinks/template.py",
            "return text if text.isprintable() else printable(text)",
            "return text",
        ),
        hostile_metrics,
    ),
    Fault(
        "hostile-name-on-page",
        "the same with a script element, on the status page",
        "shown as text",
        Guard("sinks/page_words.py", "return html.escape(shown)", "return shown"),
        hostile_page,
    ),
    Fault(
        "hostile-text-in-log",
        "a wrong key of the configuration holds terminal codes, and is logged",
        "one line of JSON without control characters",
        Guard(
            "runtime/logging.py",
            "    if text.isprintable():\n",
            "    if text:\n",
        ),
        hostile_log,
    ),
    Fault(
        "name-not-utf8",
        "a device has a name that is no UTF-8",
        "served everywhere; the state is saved and taken back",
        Guard(
            "saved.py",
            "    except UnicodeEncodeError:\n        return False\n    return True",
            "    except KeyError:\n        return False\n    return True",
        ),
        not_text_name,
    ),
    Fault(
        "name-255-bytes",
        "two devices have names of 254 and 255 bytes that differ at their end",
        "two series, labels of 128 characters",
        Guard(
            "sinks/template.py", "    if len(text) > MOST_CHARACTERS:", "    if False:"
        ),
        long_name,
    ),
)
