"""Files of the node that hang, fail, vanish, or hold what no file should."""

from __future__ import annotations

import os
import stat

from tests.campaign.row import Fault, Guard
from tests.campaign.scene import Scene
from tests.support.agent import CLASS, without_privileges

COUNTER = "counters/symbol_error"
SERIES = 'infiniband_symbol_error_total{device="mlx5_0",port="1"}'
FILES = "host/live_files.py"
MIB = 1 << 20
OTHERS = {"mlx5_1", "mlx5_4", "mlx5_bond_0"}


def _hung(scene: Scene, *files: str) -> None:
    agent = scene.begin()
    for file in files:
        scene.node.hang(scene.node.port("mlx5_0", file))
    error = scene.error("mlx5_0", "ETIMEDOUT")
    assert error["device"] == "mlx5_0"
    scene.verdict("mlx5_0", "unknown")
    scene.value('unreadable{device="mlx5_0",errno="ETIMEDOUT",port=""}', 1)
    assert agent.port_object("mlx5_4")["verdict"] == "healthy"
    scene.goes_on()


def hung_counter(scene: Scene) -> None:
    _hung(scene, COUNTER)


def hung_state(scene: Scene) -> None:
    _hung(scene, "state")


def hung_device(scene: Scene) -> None:
    """Hang all that the agent asks of a device, before it starts."""
    for file in ("node_guid", "fw_ver", "ports/1/state", "ports/1/rate"):
        scene.node.hang(f"{CLASS}/mlx5_0/{file}")
    scene.start({"deadlines": {"read_seconds": 600}})
    scene.until(lambda: _active(scene) >= OTHERS, "the other ports are known")


def _active(scene: Scene) -> set[str]:
    ports = scene.agent.check()["ports"]
    return {port["device"] for port in ports if port["state"] == "ACTIVE"}


def hung_node(scene: Scene) -> None:
    agent = scene.begin()
    for device in ("mlx5_0", "mlx5_1", "mlx5_4", "mlx5_bond_0"):
        scene.node.hang(scene.node.port(device, COUNTER))
    for device in ("mlx5_0", "mlx5_1", "mlx5_4", "mlx5_bond_0"):
        scene.error(device, "ETIMEDOUT")
    assert agent.metric("node_verdict") == 1
    scene.bounded()
    assert agent.stop() < 5
    assert len(agent.lines("read_abandoned")) == 4


def hung_module(scene: Scene) -> None:
    """Hang the temperature of a transceiver, which the driver asks the module for."""
    real = (scene.node.root / CLASS / "mlx5_0" / "device").resolve()
    folder = str(real.relative_to(scene.node.root.resolve()))
    scene.node.put(f"{folder}/hwmon/hwmon4/temp2_label", "Module0\n")
    scene.node.hang(f"{folder}/hwmon/hwmon4/temp2_input")
    scene.start({"periods": {"modules_seconds": 0.2}})
    scene.error("mlx5_0", "ETIMEDOUT")
    assert scene.agent.port_object("mlx5_4")["verdict"] == "healthy"


def hang_ends(scene: Scene) -> None:
    agent, node = scene.begin(), scene.node
    path = node.port("mlx5_0", COUNTER)
    node.hang(path)
    scene.error("mlx5_0", "ETIMEDOUT")
    kept = (node.root / path).with_name("kept")
    (node.root / path).rename(kept)
    node.put(path, "12\n")
    end = os.open(kept, os.O_WRONLY | os.O_NONBLOCK)
    kept.unlink()
    os.close(end)
    scene.value(SERIES, 12)
    scene.until(lambda: not agent.check()["errors"], "no error is told any more")


def _unavailable(scene: Scene, errno: str, file: str = "symbol_error") -> None:
    """Expect one counter without a value, and its neighbour with one."""
    agent = scene.agent
    scene.until(
        lambda: agent.port_object("mlx5_0")["unavailable"].get(file) == errno,
        f"{file} is {errno}",
    )
    metrics = agent.metrics()
    assert f'infiniband_{file}_total{{device="mlx5_0",port="1"}}' not in metrics
    assert metrics['infiniband_link_downed_total{device="mlx5_0",port="1"}'] == 0
    assert agent.port_object("mlx5_0")["counters"].get(file) is None


def _linked(scene: Scene, target: str) -> None:
    scene.node.link(scene.node.port("mlx5_0", COUNTER), target)
    scene.begin()


def eio(scene: Scene) -> None:
    _linked(scene, "/proc/self/mem")
    _unavailable(scene, "EIO")
    scene.above('read_errors_total{errno="EIO",source="errors"}', 0)


def einval(scene: Scene) -> None:
    _linked(scene, "/sys/class/net/lo/speed")
    _unavailable(scene, "EINVAL")
    scene.above('read_errors_total{errno="EINVAL",source="errors"}', 0)


def enodev(scene: Scene) -> None:
    """A socket answers every open with ENXIO, as a driver that is being unbound."""
    import socket  # noqa: PLC0415

    place = scene.folder / "gone"
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(place))
    _linked(scene, str(place))
    _unavailable(scene, "ENXIO")


def eacces(scene: Scene) -> None:
    folder = scene.node.root / scene.node.port("mlx5_0", "counters")
    folder.chmod(0)
    scene.start(prefix=without_privileges())
    error = scene.error("mlx5_0", "EACCES")
    assert error["file"].endswith("/mlx5_0/ports/1/counters")
    assert scene.agent.check()["verdict"] == "unknown"
    folder.chmod(0o755)


def class_eacces(scene: Scene) -> None:
    config = {"deadlines": {"quarantine_seconds": 0.2}}
    agent = scene.start(config, prefix=without_privileges())
    (scene.node.root / CLASS).chmod(0)
    scene.error(None, "EACCES")
    scene.value("infiniband_class_readable", 0)
    scene.above('read_errors_total{errno="EACCES",source="state"}', 40)
    assert agent.findings("device_missing") == []
    (scene.node.root / CLASS).chmod(0o755)
    scene.value("infiniband_class_readable", 1)


def restricted_function(scene: Scene) -> None:
    """Every error counter of a device answers EINVAL, and each read floods dmesg."""
    folder = scene.node.root / scene.node.port("mlx5_0", "counters")
    for file in folder.iterdir():
        scene.node.link(f"{folder.relative_to(scene.node.root)}/{file.name}", _EINVAL)
    agent = scene.begin()
    series = 'device_quarantined{device="mlx5_0",reason="EINVAL",source="errors"}'
    scene.value(series, 1)
    failed = 'read_errors_total{errno="EINVAL",source="errors"}'
    before = agent.metric(failed)
    scene.polls_on()
    assert agent.metric(failed) == before


_EINVAL = "/sys/class/net/lo/speed"


def _holding(scene: Scene, content: bytes, file: str = COUNTER) -> None:
    place = scene.folder / "content"
    place.write_bytes(content)
    place.replace(scene.node.root / scene.node.port("mlx5_0", file))
    scene.begin()


def garbage(scene: Scene) -> None:
    _holding(scene, b"N/A (no PMA)\n")
    _unavailable(scene, "N/A (no PMA)")


def empty(scene: Scene) -> None:
    _holding(scene, b"")
    _unavailable(scene, "empty")


def negative(scene: Scene) -> None:
    _holding(scene, b"-5\n")
    _unavailable(scene, "-5")


def all_ones(scene: Scene) -> None:
    _holding(scene, b"18446744073709551615\n")
    _unavailable(scene, "all ones")


def overflow(scene: Scene) -> None:
    _holding(scene, b"18446744073709551620\n")
    _unavailable(scene, "18446744073709551620")


def endless_digits(scene: Scene) -> None:
    _holding(scene, b"7" * 5000)
    _unavailable(scene, "7" * 80)


def huge(scene: Scene) -> None:
    _holding(scene, b"1" * (8 * MIB))
    _unavailable(scene, "EFBIG")


def not_text(scene: Scene) -> None:
    _holding(scene, b"\xff\xfe\x00\x1b[31m\n")
    scene.until(
        lambda: "symbol_error" in scene.agent.port_object("mlx5_0")["unavailable"],
        "it has no value",
    )
    assert SERIES not in scene.agent.metrics()


def loop(scene: Scene) -> None:
    _linked(scene, "symbol_error")
    _unavailable(scene, "ELOOP")


def folder(scene: Scene) -> None:
    path = scene.node.port("mlx5_0", COUNTER)
    scene.begin()
    scene.value(SERIES, 0)
    scene.node.remove(path)
    (scene.node.root / path).mkdir()
    _unavailable(scene, "EISDIR")


def vanishing_file(scene: Scene) -> None:
    """Take a counter away after its folder was listed: what was read is no value now."""
    _rested(scene)
    scene.start({"periods": {"identity_seconds": 3600}})
    scene.value(SERIES, 0)
    scene.node.remove(scene.node.port("mlx5_0", COUNTER))
    scene.value(SERIES, None)


def vanishing_folder(scene: Scene) -> None:
    """Take the folder away between two looks at what files there are."""
    _rested(scene)
    _without_counters(scene, {"identity_seconds": 3600})


def vanishing_folder_unread(scene: Scene) -> None:
    """Take the folder away; that is seen before a counter is read again."""
    groups = ("outages", "errors", "traffic", "hardware")
    _without_counters(scene, {f"{group}_seconds": 4 for group in groups})


def _rested(scene: Scene) -> None:
    """Let the folder be as old as those of a node: its files are kept open."""
    folder = scene.node.root / scene.node.port("mlx5_0", "counters")
    os.utime(folder, (1, 1))


def _without_counters(scene: Scene, periods: dict[str, int]) -> None:
    scene.start({"periods": periods})
    scene.value(SERIES, 0)
    scene.node.remove(scene.node.port("mlx5_0", "counters"))
    scene.value(SERIES, None)
    assert scene.agent.port_object("mlx5_0")["state"] == "ACTIVE"


def replaced_file(scene: Scene) -> None:
    """Exchange a whole device behind its name: no value of one counts for the other.

    Its identity is not due: where that is read first, it tells of a new device, too.
    """
    agent, node = scene.start({"periods": {"identity_seconds": 3600}}), scene.node
    scene.value(SERIES, 0)
    old = (node.root / CLASS / "mlx5_0").resolve()
    spare = scene.folder / "other"
    import shutil  # noqa: PLC0415

    shutil.copytree(old, spare, symlinks=True)
    (spare / "ports/1" / COUNTER).write_text("4000000\n")
    (spare / "ports/1/counters/link_downed").write_text("7\n")
    old.rename(scene.folder / "former")
    spare.rename(old)
    scene.value(SERIES, 4000000)
    scene.polls_on()
    told = {finding["kind"] for finding in agent.check()["findings"]}
    assert told <= {"counter_saturated", "telemetry_stale"}, told  # it may starve here


def state_garbage(scene: Scene) -> None:
    scene.begin()
    scene.verdict("mlx5_0", "healthy")
    scene.node.put(scene.node.port("mlx5_0", "state"), "banana\n")
    scene.verdict("mlx5_0", "unknown")
    assert scene.agent.port_object("mlx5_0")["state"] is None
    assert scene.agent.findings("port_down") == []


def state_binary(scene: Scene) -> None:
    _holding(scene, b"\xff\xfe\x00\x80\n", "state")
    scene.verdict("mlx5_0", "unknown")


def state_fails(scene: Scene) -> None:
    scene.begin()
    scene.node.link(scene.node.port("mlx5_0", "state"), _EINVAL)
    error = scene.error("mlx5_0", "EINVAL")
    assert error["file"] == "state"
    scene.verdict("mlx5_0", "unknown")
    assert scene.agent.findings("port_down") == []


def uptime_garbage(scene: Scene) -> None:
    scene.node.put("proc/uptime", "soon\n")
    scene.node.put("proc/sys/kernel/random/boot_id", "\x00\x1b]0;x\x07\n")
    scene.begin()
    scene.verdict("mlx5_0", "healthy")


def device_memory(scene: Scene) -> None:
    """Let a counter be a device that never ends."""
    _linked(scene, "/dev/zero")
    _unavailable(scene, "EFBIG")


def is_pipe(scene: Scene, path: str) -> bool:
    """Tell whether a file of the node is a pipe."""
    return stat.S_ISFIFO((scene.node.root / path).stat().st_mode)


_RELIEF = Guard(
    "runtime/reader.py", "if slow >= len(self._threads):", "if not self._threads:"
)

FAULTS = (
    Fault(
        "hung-counter",
        "a counter file never returns from read",
        "ETIMEDOUT told for that device alone, its port unknown, the others read on",
        _RELIEF,
        hung_counter,
    ),
    Fault(
        "hung-state",
        "the state file of a port never returns",
        "ETIMEDOUT in check and metrics, port unknown, never port_down",
        Guard(
            "schedule.py",
            "if entry.runs_since(begun_before) and entry.source.lane is not Lane.TOOL:",
            "if False:",
        ),
        hung_state,
    ),
    Fault(
        "hung-device-at-start",
        "every file of a device hangs before the start",
        "READY long before the device's time-out, the other ports known",
        Guard(
            "agent.py",
            "not self._pipeline.has_seen_all() and waited < READY_SECONDS",
            "not self._pipeline.has_seen_all()",
        ),
        hung_device,
    ),
    Fault(
        "hung-every-device",
        "a counter of every device hangs",
        "metrics served, node unknown; SIGTERM ends it and names four reads given up",
        Guard(
            "runtime/reader.py",
            "thread.join(max(deadline - time.monotonic(), 0))",
            "thread.join()",
        ),
        hung_node,
    ),
    Fault(
        "hung-module-temperature",
        "the temperature file of a transceiver hangs",
        "ETIMEDOUT told for its device, the others healthy",
        Guard(
            "runtime/reader.py",
            "            if len(lane.waiting) < MOST_WAITING:\n"
            "                lane.waiting[_key(job)] = job\n"
            "                self._relieve()\n",
            "            if len(lane.waiting) < MOST_WAITING:\n"
            "                lane.waiting[_key(job)] = job\n"
            "                time.sleep(60 * (job.source == 'modules'))\n"
            "                self._relieve()\n",
        ),
        hung_module,
    ),
    Fault(
        "hang-that-ends",
        "a hung counter returns after its time-out",
        "its value is exported again and no error stays",
        Guard(
            "schedule.py",
            "        entry.in_flight_since = None\n        entry.settled = True\n",
            "        entry.settled = True\n",
        ),
        hang_ends,
    ),
    Fault(
        "read-eio",
        "a counter answers EIO",
        "no value, reason EIO, counted in read_errors_total; its neighbours have theirs",
        Guard(
            FILES,
            "    except OSError as error:\n        content = failure(error.errno)\n"
            "    finally:\n        if not kept:",
            "    except KeyError as error:\n        content = failure(error.errno)\n"
            "    finally:\n        if not kept:",
        ),
        eio,
    ),
    Fault(
        "read-einval",
        "a counter answers EINVAL",
        "no value (never 0), reason EINVAL",
        Guard(
            "sources/counters.py",
            "value = raw.errno if isinstance(raw, ReadError) else parse_counter(raw)",
            "value = 0 if isinstance(raw, ReadError) else parse_counter(raw)",
        ),
        einval,
    ),
    Fault(
        "open-enxio",
        "a counter cannot be opened (ENXIO)",
        "no value, reason ENXIO",
        Guard(
            FILES,
            "        return Opened(failure(error.errno))\n    except ValueError:",
            '        return Opened(b"0")\n    except ValueError:',
        ),
        enodev,
    ),
    Fault(
        "counters-eacces",
        "the folder of counters may not be entered",
        "EACCES with the folder's name, port unknown: no errors seen is not no errors",
        Guard(
            "sources/plans.py", "self.failures.append(failure)", "self.failures.clear()"
        ),
        eacces,
    ),
    Fault(
        "class-eacces",
        "the RDMA class may not be listed any more",
        "infiniband_class_readable 0 and EACCES told; no device is called missing",
        Guard(
            "inventory.py",
            'if found.error not in {None, "ENOENT"}:',
            "if False:",
        ),
        class_eacces,
    ),
    Fault(
        "restricted-function",
        "every counter of a device answers EINVAL",
        "the group is put aside and exported so: the kernel log is not flooded",
        Guard(
            "quarantine.py",
            "case.until = now + case.pause_seconds",
            "case.until = now",
        ),
        restricted_function,
    ),
    Fault(
        "counter-garbage",
        "a counter holds text",
        "no value, the text is the reason",
        Guard(
            "sources/counters.py",
            "    except (TypeError, ValueError):\n        return _read_one_by_one",
            "    except TypeError:\n        return _read_one_by_one",
        ),
        garbage,
    ),
    Fault(
        "counter-empty",
        "a counter is an empty file",
        "no value, reason 'empty', never 0",
        Guard("parse/sysfs.py", '[:MAX_REASON] or "empty"', "[:MAX_REASON] or 0"),
        empty,
    ),
    Fault(
        "counter-negative",
        "a counter holds -5",
        "no value, reason '-5'",
        Guard("sources/counters.py", "min(values) < 0 or ", ""),
        negative,
    ),
    Fault(
        "counter-all-ones",
        "a counter holds 2^64 - 1, which drivers answer for 'unknown'",
        "no value, reason 'all ones'",
        Guard("sources/counters.py", "if value == NO_VALUE:", "if False:"),
        all_ones,
    ),
    Fault(
        "counter-overflow",
        "a counter holds more than 64 bits",
        "no value, the text is the reason",
        Guard(
            "parse/sysfs.py", "        if value <= MAX_COUNTER:", "        if value:"
        ),
        overflow,
    ),
    Fault(
        "counter-endless-digits",
        "a counter holds 5,000 digits",
        "no value, 80 characters of it as the reason",
        Guard(
            "parse/sysfs.py",
            "if digits.isdigit() and len(digits) <= 20:",
            "if digits.isdigit() and int(digits) < 0:",
        ),
        endless_digits,
    ),
    Fault(
        "counter-huge",
        "a counter is a file of 8 MiB",
        "EFBIG, and no more than 64 KiB of it in memory",
        Guard(
            FILES,
            "    while more := os.pread(descriptor, LIMIT_BYTES + 1 - len(content),"
            " len(content)):\n        content += more\n"
            "        if len(content) > LIMIT_BYTES:",
            "    while more := os.pread(descriptor, LIMIT_BYTES + 1, len(content)):\n"
            "        content += more\n        if False:",
        ),
        huge,
    ),
    Fault(
        "counter-endless",
        "a counter is a device that never ends (/dev/zero)",
        "EFBIG",
        Guard(FILES, "LIMIT_BYTES = 64 * 1024", "LIMIT_BYTES = 1 << 40"),
        device_memory,
    ),
    Fault(
        "counter-not-utf8",
        "a counter holds bytes that are no text, NUL and terminal codes",
        "no value, the reason is printable, check and metrics answer",
        Guard(
            "parse/sysfs.py",
            'digits[: 4 * MAX_REASON].decode("utf-8", "replace")',
            "digits[: 4 * MAX_REASON].decode()",
        ),
        not_text,
    ),
    Fault(
        "counter-link-loop",
        "a counter is a link to itself",
        "ELOOP",
        Guard(
            FILES,
            "        descriptor, is_link = _open(path)\n    except OSError as error:",
            "        descriptor, is_link = _open(path)\n    except KeyError as error:",
        ),
        loop,
    ),
    Fault(
        "counter-becomes-folder",
        "a counter file becomes a folder while it is read",
        "EISDIR, no value",
        Guard(
            FILES,
            "        kept = regular and not is_link and keep()\n"
            "    except OSError as error:\n        content = failure(error.errno)",
            "        kept = regular and not is_link and keep()\n"
            "    except OSError as error:\n        content = b'0'",
        ),
        folder,
    ),
    Fault(
        "file-vanishes",
        "a counter is removed after it was listed",
        "its series goes; no value of the past is served",
        Guard(
            "host/live_descriptors.py",
            "            and (self.changed is None or self.changed == now.st_mtime_ns)\n",
            "",
        ),
        vanishing_file,
    ),
    Fault(
        "folder-vanishes",
        "the folder of a port's counters is removed",
        "its series go, the state of the port stays",
        Guard(
            "host/live_descriptors.py",
            "        if moved:\n"
            "            for index, descriptor in enumerate(burst.descriptors):",
            "        if False:\n"
            "            for index, descriptor in enumerate(burst.descriptors):",
        ),
        vanishing_folder,
    ),
    Fault(
        "folder-vanishes-unread",
        "the same, and its files are not due for long",
        "its series go as soon as the folder is seen to be gone",
        Guard(
            "observed.py",
            "                known.readings.pop(each.group, None)\n",
            "                pass\n",
        ),
        vanishing_folder_unread,
    ),
    Fault(
        "device-replaced",
        "another device stands behind the same name at once",
        "its values are exported, and no increase is made of the difference",
        Guard(
            "host/live_descriptors.py",
            "if self._compare_folders(burst) and self._is_another(burst):",
            "if self._compare_folders(burst) and False:",
        ),
        replaced_file,
    ),
    Fault(
        "state-garbage",
        "the state of a port reads 'banana'",
        "state null, port unknown, no port_down",
        Guard(
            "parse/sysfs.py",
            "return known if known is not None else _STATE_NUMBERS.get(value)",
            "return known if known is not None else PortState.ACTIVE",
        ),
        state_garbage,
    ),
    Fault(
        "state-not-utf8",
        "the state of a port is no text",
        "port unknown, no crash",
        Guard("parse/text.py", 'raw.decode("utf-8", "replace")', "raw.decode()"),
        state_binary,
    ),
    Fault(
        "state-fails",
        "the state of a port answers EINVAL",
        "file and errno told, port unknown, no port_down",
        Guard(
            "snapshot_report.py",
            "            if not absence.is_absent:\n",
            "            if not absence:\n",
        ),
        state_fails,
    ),
    Fault(
        "uptime-garbage",
        "/proc/uptime and the boot id hold nonsense",
        "the node is judged all the same",
        Guard(
            "parse/sysfs.py",
            "    seconds = number(words[0]) if words else None\n",
            "    seconds = float(words[0]) if words else None\n",
        ),
        uptime_garbage,
    ),
)
