"""Logs of jobs: storms, endless lines, rotation, and files that are no logs."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.campaign.row import Fault, Guard
from tests.campaign.scene import Scene
from tests.support.agent import AgentProcess, Json
from tests.support.servers import LOOPBACK, free_port

READING = "sources/log_reading.py"
EVENTS = 'log_events_total{kind="ib_completion_error"'
MIB = 1 << 20
PERIODS: Json = {
    "nccl_log_seconds": 0.2,
    "jobs_seconds": 0.2,
    "inspector_seconds": 0.2,
    "hardware_seconds": 0.2,
}


def _warning(number: int, peer: str = "10.31.7.9") -> str:
    return (
        f"gpu-7:4711:4720 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB: Got completion "
        f"from peer {peer}<{40000 + number}> with status=12 opcode=0 len=0 vendor err "
        f"129 (Recv) hca mlx5_0\n"
    )


HEAD = "gpu-7:4711:4711 [0] NCCL INFO NCCL version 2.23.4+cuda12.6\n"


def _following(scene: Scene, **logs: object) -> AgentProcess:
    """Start an agent that follows the logs of a folder, and finds new ones at once."""
    (scene.node.root / "logs").mkdir()
    config: Json = {
        "periods": PERIODS,
        "logs": {
            "paths": ["/logs/*.log"],
            "discovery_seconds": 0.2,
            "settle_seconds": 0,
            "still_seconds": 0.2,
            **logs,
        },
    }
    return scene.start(config)


def _log(scene: Scene, name: str = "job") -> Path:
    return scene.node.root / "logs" / f"{name}.log"


def _append(path: Path, text: str | bytes) -> None:
    raw = text.encode() if isinstance(text, str) else text
    with path.open("ab") as file:
        file.write(raw)


def _events(agent: AgentProcess) -> float:
    """Return how many of the warnings were understood."""
    found = agent.metrics().items()
    return sum(value for name, value in found if name.startswith(EVENTS))


def _reads_on(scene: Scene, path: Path) -> None:
    """Expect one more event from one more line."""
    agent = scene.agent
    before = _events(agent)
    _append(path, _warning(9000 + int(before)))
    scene.until(lambda: _events(agent) > before, "one more event")


def storm(scene: Scene) -> None:
    """Append 48 MiB of errors at once."""
    agent = _following(scene)
    log = _log(scene)
    _append(log, HEAD + _warning(0))
    scene.until(lambda: _events(agent) >= 1, "the first one is read")
    piece = "".join(map(_warning, range(1000)))
    _append(log, piece * (48 * MIB // len(piece)))
    scene.above("log_skipped_bytes_total", 16 * MIB)
    scene.goes_on()


def endless_line(scene: Scene) -> None:
    """Append a line of 100 MB, and a message after it."""
    agent = _following(scene, backlog_bytes=256 * MIB)
    log = _log(scene)
    _append(log, HEAD)
    scene.above("log_lines_total", 0)
    with log.open("ab") as file:
        for _ in range(100):
            file.write(b"x" * 1_000_000)
    _append(log, "\n")
    _reads_on(scene, log)
    assert (agent.metric("log_skipped_lines_total") or 0) >= 1


def truncated(scene: Scene) -> None:
    """Cut a log to zero and write less than was there."""
    agent = _following(scene)
    log = _log(scene)
    _append(log, HEAD * 50 + _warning(0))
    scene.until(lambda: _events(agent) >= 1, "it is read")
    os.truncate(log, 0)
    _append(log, HEAD)
    scene.above("log_rotations_total", 0)
    _reads_on(scene, log)


def rewritten(scene: Scene) -> None:
    """Write another content of more length into the same file."""
    agent = _following(scene)
    log = _log(scene)
    _append(log, HEAD + _warning(0))
    scene.until(lambda: _events(agent) >= 1, "it is read")
    before = _events(agent)
    other = "other:1:1 [0] NCCL INFO NCCL version 2.24.3\n" + _warning(77, "10.9.9.9")
    raw = (other + "gpu-7:4711:4711 [0] NCCL INFO x\n" * 40).encode()
    with log.open("r+b") as file:
        file.write(raw)
    scene.until(lambda: _events(agent) > before, "the other content is read")


def rotated(scene: Scene) -> None:
    agent = _following(scene)
    log = _log(scene)
    _append(log, HEAD + _warning(0))
    scene.until(lambda: _events(agent) >= 1, "it is read")
    old = log.with_name("job.log.1")
    log.rename(old)
    _append(old, _warning(1))
    scene.until(lambda: _events(agent) >= 2, "the rest of the old one is read")
    _append(log, HEAD + _warning(2))
    scene.until(lambda: _events(agent) >= 3, "the new one is read")


def deleted(scene: Scene) -> None:
    """Delete fifty logs: no descriptor keeps their blocks on the disk for long."""
    agent = _following(scene, quiet_seconds=0.5)
    logs = [_log(scene, f"job{n}") for n in range(50)]
    for log in logs:
        _append(log, HEAD)
    scene.value("log_files", 50)
    for log in logs:
        log.unlink()
    scene.until(lambda: not agent.metric("log_files"), "none is followed")


def too_many(scene: Scene) -> None:
    _following(scene, max_files=20, quiet_seconds=0.5)
    for number in range(300):
        _append(_log(scene, f"job{number}"), HEAD)
    scene.value("log_files_left_out", 280)
    scene.value("log_files", 20)


def binary(scene: Scene) -> None:
    """Append 4 MiB of random octets: NULs, escapes, and what is no UTF-8."""
    _following(scene)
    log = _log(scene)
    _append(log, HEAD)
    scene.above("log_lines_total", 0)
    _append(log, os.urandom(4 * MIB) + b"\n")
    _append(log, b"gpu-7:4711:4720 [0] x.cc:1 NCCL WARN \xff\xfe\x00\x80\n")
    scene.until(lambda: scene.agent.metric("log_unread_bytes") == 0, "all is read")
    _reads_on(scene, log)


HOSTILE = '\x1b]0;pwned\x07\u202e"&amp;'
RULE: Json = {
    "id": "OP1",
    "anchor": "BOOM",
    "pattern": "BOOM (?P<peer>.*)",
    "severity": "critical",
}


def hostile_text(scene: Scene) -> None:
    """Let a message name a peer with markup, terminal codes and an override."""
    port = free_port()
    (scene.node.root / "logs").mkdir()
    config: Json = {
        "periods": PERIODS,
        "logs": {
            "paths": ["/logs/*.log"],
            "discovery_seconds": 0.2,
            "settle_seconds": 0,
            "rules": [RULE],
        },
        "listen": {"page": f"{LOOPBACK}:{port}"},
    }
    agent = scene.start(config)
    line = f"gpu-7:4711:4720 [0] x.cc:1 NCCL WARN BOOM {HOSTILE}\n"
    _append(_log(scene), HEAD + line + _warning(1))
    scene.until(
        lambda: any("OP1" in str(f) for f in agent.findings("nccl_error")), "it is told"
    )
    for finding in agent.findings("nccl_error"):
        assert finding["summary"].isprintable()
    for text in (scene.page(port), agent.get("/metrics")):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert b"\x1b" not in agent.log_file.read_bytes()


def nul_hole(scene: Scene) -> None:
    """Cut a log under a writer that does not append: a hole longer than any line."""
    agent = _following(scene)
    log = _log(scene)
    with log.open("wb") as file:
        file.write((HEAD * 4000 + _warning(0)).encode())
        file.flush()
        scene.until(lambda: _events(agent) >= 1, "it is read")
        os.truncate(log, 0)
        file.write(_warning(1).encode())
        file.flush()
        scene.until(lambda: _events(agent) >= 2, "the line after the hole is read")


def no_log(scene: Scene) -> None:
    """Let a pipe, a folder and a link to a secret lie among the logs."""
    (scene.node.root / "logs").mkdir()
    secret = scene.folder / "secret"
    secret.write_text(HEAD + _warning(0))
    os.mkfifo(_log(scene, "pipe"))
    _log(scene, "folder").mkdir()
    _log(scene, "link").symlink_to(secret)
    later = time.time() + 1000
    for name in ("pipe", "folder", "link"):
        os.utime(_log(scene, name), (later, later), follow_symlinks=False)
    config: Json = {
        "periods": PERIODS,
        "logs": {
            "paths": ["/logs/*.log"],
            "discovery_seconds": 0.2,
            "settle_seconds": 0,
            "max_files": 1,
        },
    }
    agent = scene.start(config)
    log = _log(scene)
    _append(log, HEAD)
    scene.value("log_files", 1)
    _reads_on(scene, log)
    assert agent.metric("log_files") == 1


FAULTS = (
    Fault(
        "log-storm",
        "48 MiB of errors are appended to a log at once",
        "the newest 16 MiB are read, the rest counted as skipped; ports polled on",
        Guard(
            READING,
            "        if log.unread <= self.backlog_bytes:\n",
            "        if log.unread:\n",
        ),
        storm,
    ),
    Fault(
        "log-line-of-100-mb",
        "a log has a line of 100 MB",
        "passed over and counted, memory bounded, the next line understood",
        Guard(
            "parse/log_reader.py",
            "        if rest <= MOST_LINE_OCTETS or",
            "        if rest <= 1 << 40 or",
        ),
        endless_line,
    ),
    Fault(
        "log-truncated",
        "a log is cut to zero and written anew",
        "read from its start; counted as a rotation",
        Guard(
            READING,
            'return replace(log, offset=0, state=NEW_LOG, check=b"", torn=False)',
            "return replace(log, torn=False)",
        ),
        truncated,
    ),
    Fault(
        "log-rewritten",
        "a log has another content of more length",
        "read from its start",
        Guard(
            READING,
            "        if isinstance(data, bytes) and not data.startswith(log.check):\n",
            "        if isinstance(data, bytes) and False:\n",
        ),
        rewritten,
    ),
    Fault(
        "log-rotated",
        "a log is renamed, written on, and another takes its name",
        "both are read to their ends",
        Guard(
            "sources/nccl_log.py",
            "        return log.is_gone or log.touched or log.size != log.offset",
            "        return log.touched or log.size != log.offset",
        ),
        rotated,
    ),
    Fault(
        "logs-deleted",
        "fifty logs are deleted while they are followed",
        "let go of after logs.quiet_seconds",
        Guard(
            "sources/nccl_log.py",
            "                self._let_go(log)\n\n    def _read_one",
            "                pass\n\n    def _read_one",
        ),
        deleted,
    ),
    Fault(
        "logs-too-many",
        "there are 300 logs and logs.max_files is 20",
        "20 are followed, 280 counted",
        Guard(
            "sources/log_discovery.py",
            "    limit = config.logs.max_files\n",
            "    limit = config.logs.max_files * 100\n",
        ),
        too_many,
    ),
    Fault(
        "log-binary",
        "4 MiB of random octets are appended to a log",
        "passed over, the next line understood",
        Guard(
            "parse/log_messages.py",
            '        return raw.decode("utf-8", "surrogateescape")',
            "        raise",
        ),
        binary,
    ),
    Fault(
        "log-hostile-text",
        "a message names a peer with markup, terminal codes and an override of direction",
        "the finding is told, its summary printable; none of it in page, metrics, log",
        Guard("summaries.py", "    if not text.isprintable():\n", "    if not text:\n"),
        hostile_text,
    ),
    Fault(
        "log-hole",
        "a log is cut under a writer that does not append: a hole of NULs",
        "the line behind it is understood",
        Guard(
            READING,
            'passed = len(data) - len(data[passed:].lstrip(b"\\0"))',
            "passed = 0",
        ),
        nul_hole,
    ),
    Fault(
        "log-is-none",
        "a pipe, a folder and a link lie among the logs",
        "never opened, take no place; the log beside them is followed",
        Guard(
            "host/live_logs.py",
            "        if not stat.S_ISREG(seen.st_mode):\n            return _NOT_REGULAR",
            "        if not seen.st_mode:\n            return _NOT_REGULAR",
        ),
        no_log,
    ),
)
