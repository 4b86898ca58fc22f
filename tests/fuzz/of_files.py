"""Targets that read files: traces, configuration, state, and what jobs drop."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec
import yaml

from fabricmon.assembly import make_pipeline, make_poll, moment
from fabricmon.cli.maintenance import _read as read_windows
from fabricmon.cli.maintenance import _still_open as still_open
from fabricmon.config import Config
from fabricmon.config_load import build, load
from fabricmon.errors import (
    ConfigError,
    FabricmonError,
    HostError,
    ParseError,
    TraceError,
)
from fabricmon.fleet.options_load import load_options
from fabricmon.fleet.rule_read import read_rules
from fabricmon.gate.decision import Known, Out, Outcome
from fabricmon.gate.journal import FILE as JOURNAL
from fabricmon.gate.journal import Entry, Journal, Nodes, read_entries
from fabricmon.gate.maintenance import worked_on
from fabricmon.gate.settings_load import load_gate
from fabricmon.host.inline import InlineReader
from fabricmon.host.log_patterns import find_logs
from fabricmon.host.protocol import ReadError
from fabricmon.host.replay import ReplayHost
from fabricmon.host.trace import Header, TraceRecord
from fabricmon.host.trace_read import TraceReader
from fabricmon.host.trace_write import TraceWriter
from fabricmon.inventory import Inventory
from fabricmon.registry import DETECTORS, SOURCES
from fabricmon.replaying import Replay
from fabricmon.saved import SavedState, UnusableStateError, decode, encode
from fabricmon.sim.score_files import read_findings, read_fleet, read_truth
from fabricmon.sinks.mqtt_disk import Bounds
from fabricmon.sinks.mqtt_spool import FILE as SPOOL
from fabricmon.sinks.mqtt_spool import Spool
from fabricmon.sources.job_files import parse_drop_file
from fabricmon.sources.log_cursors import Cursors, resume
from fabricmon.sources.maintenance import MAX_WINDOWS, parse_plan
from fabricmon.support.anonymise import Anonymiser
from fabricmon.support.bundle import FOLDER, TRACE, trace_in
from fabricmon.support.joining import JoinedTraces, Source
from fabricmon.support.pseudonyms import Pseudonyms
from fabricmon.support.trace import names_of, rewrite
from fabricmon.topology_load import load_topology
from fabricmon.window import Window
from tests.fuzz.target import DATA, Target, texts
from tests.gate import gates
from tests.traces import of_manifest

LONGEST_ERROR = 20_000
"""Characters of an error: it repeats keys, values and words as they stand."""

LONGEST_PLAY = 600.0
"""Seconds of a trace that are played: a trace of years is played for days."""


@contextmanager
def _file(data: bytes, name: str = "file") -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=_FOLDER) as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        yield path


_FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # in memory


def _on_file(run: Callable[[Path], object], name: str = "file") -> Callable[..., None]:
    def on_file(data: bytes) -> None:
        with _file(data, name) as path:
            run(path)

    return on_file


def trace(data: bytes) -> None:
    """Read a trace to its end, and ask its node for everything."""
    with _file(data, "n.trace.jsonl") as path:
        host = ReplayHost(TraceReader(path))
        for to in (1.0, 1e3, 1e9):
            host.advance(to)
            _ask(host)
        host.close()
        assert all(each.line >= 1 for each in host.problems)


def _ask(host: ReplayHost) -> None:
    paths = ["/a", "/a/b", "/sys/class/infiniband/mlx5_0/ports/1/state", "/proc/uptime"]
    for found in host.read_many(paths):
        assert isinstance(found, bytes | ReadError)
    for path in ("/", "/a", "/sys/class/infiniband", "/sys/class/net"):
        host.names(path)
        host.target(path)
    host.statistics("eth0")
    host.link_events()
    host.command("ibstat", 1)
    host.known_logs()
    host.find_logs("/var/log/*/*.log", 10)
    host.kernel_log()
    host.module("mlx5_0/1")
    host.devlink("0000:1a:00.0")
    host.bridging("eth0")
    host.processes()
    host.clock()
    host.addresses()


def played(data: bytes) -> None:
    """Play a trace through the whole agent, as far as it is short."""
    with _file(data, "n.trace.jsonl") as path:
        with TraceReader(path) as reader:
            last = max((record.t + (record.gap or 0) for record in reader), default=0.0)
        if last > LONGEST_PLAY:
            return
        play = Replay(path)
        for change in play.changes():
            assert len(change.incident.finding.summary) <= 120


def shared_trace(data: bytes) -> None:
    """Rewrite a trace as it may be given away; what comes out is a trace."""
    with _file(data, "n.trace.jsonl") as path:
        anonymiser = Anonymiser(Pseudonyms(bytes(16)))
        names_of(path, anonymiser)
        out = path.with_name("out.trace.jsonl.gz")
        source = JoinedTraces([Source(path)])
        rewrite(source, out, with_logs=False, anonymiser=anonymiser, most_bytes=1 << 24)
        with TraceReader(out) as reader:
            for _ in reader:
                pass


def bundle(path: Path) -> None:
    """Take the recording out of a bundle: one file, in the folder that was named."""
    out = path.with_name("out")
    out.mkdir()
    try:
        trace_in(path, out)
    finally:
        found = [each for each in path.parent.rglob("*") if each.is_file()]
        assert {each.name for each in found} <= {path.name, TRACE}


def configuration(path: Path) -> None:
    """Load a configuration: usable, or one error that is short."""
    said = ""
    try:
        load(path, {})
    except ConfigError as error:
        said = str(error)
    assert len(said) < LONGEST_ERROR


def environment(data: bytes) -> None:
    """Take keys out of the environment."""
    name, _, value = data.decode("utf-8", "replace").partition("=")
    load_nothing = {f"FABRICMON_{name}": value}
    with _file(b"") as path:
        load(path, load_nothing)


def header_configuration(data: bytes) -> None:
    """Use the configuration that a trace's header holds."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        tree = msgspec.json.decode(data, type=dict[str, object])
        build(tree, (), ())


def topology(path: Path) -> None:
    """Load a topology."""
    found = load_topology(str(path), "node01")
    assert len(found.peers) <= path.stat().st_size


def options(data: bytes) -> None:
    """Read options of the fleet's rules from a file and from words."""
    text = data.decode("utf-8", "replace")
    settings = text.split("\x1e")
    with _file(settings[0].encode()) as path:
        load_options(path, settings[1:])


def drop_file(data: bytes) -> None:
    """Read a job's drop file."""
    found = parse_drop_file(data, "/run/fabricmon/jobs/1.json")
    assert len(found.problems) <= 1
    for job in found.jobs:
        for pattern in job.logs:
            find_logs(pattern, 8, lambda _: ("a.log", "b" * 40), lambda _: _ABSENT)


def maintenance(data: bytes) -> None:
    """Read the windows of maintenance, as the agent, the command and the gate do."""
    plan = parse_plan(data, "file", 1.0, "node01")
    assert len(plan.windows) <= MAX_WINDOWS
    assert plan.error is None or len(plan.error) < 1000
    with _file(data) as path:
        worked_on(str(path), 1.7e9)
        with suppress(ValueError):
            list(still_open(read_windows(path), datetime.now(UTC)))


_ABSENT = ReadError("ENOENT")


def state(data: bytes) -> None:
    """Start an agent on a saved state; it judges, is shown, and saves a state."""
    saved = decode(data)
    with _file(_node()) as path:
        host = ReplayHost(TraceReader(path))
        loaded = build({}, (), ())
        reader = InlineReader(host, make_poll(host, loaded.config, SOURCES))
        pipeline = make_pipeline(host, reader, loaded, "node01")
        pipeline.restore(saved)
        for now in (0.0, 5.0, 10.0, 11.0):
            host.advance(now)
            pipeline.step(moment(host), judge=True)
        decode(encode(pipeline.save()))
        host.close()


def detector_states(data: bytes) -> None:
    """Give every detector the state of another: a state, or one plain error."""
    restored = [partial(each(_CONFIG).restore, data, 1e9) for each in DETECTORS]
    restored.append(partial(Window(_CONFIG).resume, data, "b1"))
    restored.append(partial(Inventory(_CONFIG).restore, data))
    for each in restored:
        with suppress(ValueError):
            each()
    assert isinstance(resume(data), Cursors)


_CONFIG = Config()


def journal(path: Path) -> None:
    """Open the gate's journal."""
    opened = Journal(str(path.parent))
    try:
        opened.restored()
        opened.unfinished()
        opened.releases()
        opened.prune(0.0, 10)
    finally:
        opened.close()
    for entry in read_entries(str(path.parent)):
        msgspec.json.encode(entry)


def spool(path: Path) -> None:
    """Open a spool of findings; one that is damaged is set aside."""
    opened = Spool(str(path.parent), Bounds(10, 10_000), 4)
    opened.open()
    opened.append([b"{}"])
    for each in opened.oldest(5):
        assert isinstance(each.payload, bytes)
    opened.topics("b")
    opened.close()


def _journals() -> list[bytes]:
    with _file(b"", JOURNAL) as path:
        path.unlink()
        opened = Journal(str(path.parent))
        told = gates.report()
        opened.note([Entry(time=1.0, what="told")], [Known(told, 1.0, 1.0, 1.0)])
        opened.begin(told, 2.0, Nodes((Out("n1", 2.0, Outcome.DONE, {"a"}),), ()))
        opened.close()
        return [path.read_bytes()]


def _spools() -> list[bytes]:
    with _file(b"", SPOOL) as path:
        path.unlink()
        opened = Spool(str(path.parent), Bounds(10, 10_000), 4)
        opened.open()
        opened.append([b'{"id":1}', b"x" * 50])
        opened.retain("b", ["t/1"])
        opened.close()
        return [path.read_bytes()]


def fleet_folder(data: bytes) -> None:
    """Read the files of a simulated fleet."""
    with _file(data, "fleet.json") as path:
        path.with_name("truth.json").write_bytes(data)
        for read in (read_fleet, read_truth):
            with suppress(ParseError):
                read(path.parent)
        with suppress(ParseError):
            list(read_findings(path))


_NODES: list[bytes] = []


def _node() -> bytes:
    """Return a trace of a node with eight ports, made once."""
    if not _NODES:
        record = of_manifest(DATA / "sysfs" / "sysfs-dgx-two-init.manifest")
        with _file(b"") as path:
            with TraceWriter(path, Header(node="node01", boot_id="b1")) as writer:
                writer.write(record)
                writer.write(TraceRecord(t=60.0))
            _NODES.append(path.read_bytes())
    return _NODES[0]


def _small_traces() -> list[bytes]:
    port = "/sys/class/infiniband/mlx5_0/ports/1"
    base = {
        f"{port}/state": "4: ACTIVE\n",
        f"{port}/phys_state": "5: LinkUp\n",
        f"{port}/rate": "400 Gb/sec (4X NDR)\n",
        f"{port}/link_layer": "InfiniBand\n",
        f"{port}/counters/link_downed": "0\n",
        "/sys/class/infiniband/mlx5_0/node_guid": "0002:c903:0000:0001\n",
        "/proc/uptime": "9999.0 1.0\n",
    }
    lines = [
        {"fabricmon_trace": 1, "node": "n", "boot_id": "b", "start": _START},
        {"t": 0, "set": base},
        {"t": 5, "ramp": {f"{port}/counters/symbol_error": [0, 1.5, 900]}},
        {"t": 6, "ethtool": {"eth0": {"rx_bytes": [1, 2.5], "tx": 4}}},
        {"t": 7, "kmsg": ["mlx5_core 0000:1a:00.0: Link down"], "wall_step": -3.5},
        {"t": 8, "set": {f"{port}/state": "1: DOWN\n"}, "hang": {f"{port}/rate": 3}},
        {"t": 9, "append": {"/var/log/nccl/a.log": "n:1:1 [0] NCCL WARN x\n"}},
        {"t": 12, "err": {f"{port}/state": "EIO"}, "slow": {f"{port}/rate": 0.4}},
        {"t": 14, "command": {"ibstat": {"stdout": "CA 'x'\n", "exit": 0}}},
        {"t": 15, "module": {"mlx5_0/1": {"temperature_c": 71.5, "bias_ma": [6]}}},
        {"t": 16, "dcb": {"eth0": {"pfc_enabled": [3]}}, "clock_error": 0.001},
        {"t": 18, "devlink": {"0000:1a:00.0": {"fw": "error"}}, "gap": 4},
        {"t": 24, "boot_id": "b2", "del": [port], "dir": ["/a"], "link": {"/b": "a"}},
        {"t": 30, "rotate": {"/var/log/nccl/a.log": "/var/log/nccl/b.log"}},
        {"t": 40},
    ]
    whole = "".join(json.dumps(line) + "\n" for line in lines).encode()
    return [whole, *(f"{json.dumps(lines[0])}\n{json.dumps(x)}\n".encode()
                     for x in lines[1:])]  # fmt: skip


_START = "2026-01-05T08:00:00Z"


def _zipped() -> list[bytes]:
    return [gzip.compress(_small_traces()[0], mtime=0)]


def _bundles() -> list[bytes]:
    made = []
    for name in (f"{FOLDER}/{TRACE}", "../evil", f"{FOLDER}/MANIFEST.json"):
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w:gz") as archive:
            entry = tarfile.TarInfo(name)
            content = _zipped()[0]
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        made.append(stream.getvalue())
    return made


def _configurations() -> list[bytes]:
    everything = msgspec.to_builtins(_CONFIG)
    whole = yaml.safe_dump(everything).encode()
    parts = [yaml.safe_dump({k: v}).encode() for k, v in everything.items()]
    rows = (
        b"log_rules:\n- {id: own, anchor: 'lost link', pattern: 'lost link (x|y)'}\n"
        b"kinds: {port_down: 'off'}\nexpected_devices: [mlx5_0]\na: &a [*a]\n"
    )
    return [*parts, rows, whole[:8000]]


def _keys() -> tuple[bytes, ...]:
    names = msgspec.to_builtins(_CONFIG)
    below = [k for v in names.values() if isinstance(v, dict) for k in v]
    return (
        *(f"{each}: ".encode() for each in (*names, *below)),
        b"&a ", b"*a", b"<<: *a", b"!!python/object ", b"? ", b"|\n", b"- ", b"!!int ",
    )  # fmt: skip


def _states() -> list[bytes]:
    stored = (DATA / "state" / "version-1.msgpack").read_bytes()
    with _file(_small_traces()[0], "n.trace.jsonl") as path:
        play = Replay(path)
        for _ in play.changes():
            pass
        made = encode(play.pipeline.save())
    return [stored, made]


def _blobs() -> list[bytes]:
    found = []
    for raw in _states():
        saved: SavedState = decode(raw)
        found += [each for each in saved.detectors.values() if each]
        found += [saved.inventory, saved.counters, saved.logs]
    return found


_TOPOLOGY = (
    "cluster: c1\nrails: [[mlx5_0, 'mlx5_1*'], [mlx5_2]]\nnodes:\n  node01:\n    rack: r"
    "1\n    addresses: [10.0.0.1]\n    ports: {mlx5_0/1: {leaf: l1, leaf_port: 3, rail:"
    " 0, role: compute}}\n  node02: {addresses: [10.0.0.2], ports: {}}\n"
)
_GATE = (
    "listen: {address: '127.0.0.1:9881', token_file: /x}\ndry_run: true\n"
    "budget: {nodes: 2}\nmqtt: {host: b, tls: {ca: /x}}\nscript: {path: /x}\n"
)
_RULES = (
    "groups:\n- name: a\n  interval: 30s\n  rules:\n  - {record: x:y, expr: up}\n"
    "  - {alert: A, expr: 'x:y > 1', for: 1m, labels: {kind: k}}\n"
)
_WINDOWS = (
    '[{"until": "2026-01-31T18:00:00Z", "ports": ["mlx5_0/1"], "reason": "x"},'
    '{"until": "9999-12-31T23:59:59-23:59", "nodes": ["node*", "[a-z]?"]}]'
)
_DROP = (
    '[{"job": "12", "pids": [4], "logs": ["/scratch/12/*.log"], "settings": '
    '{"NCCL_DEBUG": "WARN", "NCCL_IB_TIMEOUT": 22}}]'
)
_FLEET = (
    '{"nodes": ["n1"], "jobs": [{"id": "j", "nodes": ["n1"], "start": 0, "end": 9}],'
    '"leafs": {"l": [{"node": "n1", "device": "mlx5_0", "port": 1}]}, "seed": 1,'
    '"scenario": "s", "duration": 9, "faults": [], "victims": [], "forbid": []}'
)

FILE_TARGETS = (
    Target("trace", trace, _small_traces, (TraceError,)),
    Target("trace_gz", trace, _zipped, (TraceError,)),
    Target("replay", played, _small_traces, (FabricmonError,), slack=40),
    Target("trace_shared", shared_trace, _small_traces, (TraceError, OSError), slack=4),
    Target("bundle", _on_file(bundle), _bundles, (OSError,)),
    Target(
        "config", _on_file(configuration, "c.yaml"), _configurations, (ConfigError,),
        words=_keys(), slack=20, repeated=1000,
    ),
    Target(
        "environment", environment, texts("LISTEN__METRICS=null", "KINDS__X=off"),
        (ConfigError,), slack=20, repeated=1000,
    ),
    Target("config_tree", header_configuration, texts("{}", '{"kinds":{"x":"off"}}'),
           (ConfigError,)),
    Target("topology", _on_file(topology), texts(_TOPOLOGY), (ConfigError,), slack=20, repeated=1000),
    Target("gate_config", _on_file(load_gate), texts(_GATE), (ConfigError,), slack=20, repeated=1000),
    Target("rule_options", options, texts(
        "where: {cluster_label: c}\x1eseverities.port_down=off\x1ewhere.node_label=n"),
        (ConfigError,), slack=20, repeated=1000),
    Target("rule_files", _on_file(read_rules), texts(_RULES), (ParseError,), slack=20, repeated=1000),
    Target("job_file", drop_file, texts(_DROP)),
    Target("maintenance", maintenance, texts(_WINDOWS)),
    Target("state", state, _states, (UnusableStateError,), slack=40),
    Target("detector_states", detector_states, _blobs),
    Target("gate_journal", _on_file(journal, JOURNAL), _journals, (HostError,),
           slack=4),
    Target("spool", _on_file(spool, SPOOL), _spools, slack=4),
    Target("fleet_folder", fleet_folder, texts(_FLEET)),
)  # fmt: skip
