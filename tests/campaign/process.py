"""What happens to the process itself: clocks, signals, outputs, limits, addresses."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import time
from pathlib import Path
from resource import RLIMIT_AS, RLIMIT_NOFILE, prlimit

import pytest

from fabricmon.config import Periods
from fabricmon.runtime.socket import NAME
from tests.campaign.row import Fault, Guard
from tests.campaign.scene import Scene, status_field
from tests.support.agent import AgentProcess, without_privileges
from tests.support.programs import MISSING, require
from tests.support.servers import LOOPBACK

HOUR = 3600


# Clocks


def _with_clock(scene: Scene) -> AgentProcess:
    """Start an agent whose wall clock is set by a file; its monotonic one is real."""
    program = require("faketime")
    libraries = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not libraries:
        pytest.skip(f"{MISSING}libfaketime (beside {program})")
    agent = scene.make()
    _set_clock(scene, 0)
    return scene.begin(
        agent,
        LD_PRELOAD=str(libraries[0]),
        FAKETIME_TIMESTAMP_FILE=str(scene.folder / "clock"),
        FAKETIME_NO_CACHE="1",
        FAKETIME_DONT_FAKE_MONOTONIC="1",
    )


def _set_clock(scene: Scene, seconds: int) -> None:
    new = scene.folder / "clock.new"
    new.write_text(f"{seconds:+d}")
    new.replace(scene.folder / "clock")


def _step(scene: Scene, seconds: int) -> None:
    agent = _with_clock(scene)
    scene.verdict("mlx5_0", "healthy")
    _set_clock(scene, seconds)
    scene.node.state("mlx5_0", "1: DOWN", "2: Polling")
    scene.finding("port_down", "mlx5_0")
    opened = [x for x in agent.lines("finding_open") if x["kind"] == "port_down"]
    assert len(opened) == 1
    scene.goes_on()
    scene.node.state("mlx5_0", "4: ACTIVE")
    scene.until(lambda: not agent.findings("port_down"), "it is resolved")
    assert agent.get("/healthz") == "ok\n"
    assert (agent.metric("snapshot_age_seconds") or 0) < 60


def clock_forward(scene: Scene) -> None:
    _step(scene, 2 * HOUR)


def clock_back(scene: Scene) -> None:
    _step(scene, -2 * HOUR)


def suspended(scene: Scene) -> None:
    """Stop the process for longer than any period, while counters go on."""
    agent = scene.begin()
    scene.verdict("mlx5_0", "healthy")
    scene.value('infiniband_symbol_error_total{device="mlx5_0",port="1"}', 0)
    agent.signal(signal.SIGSTOP)
    scene.node.put(scene.node.port("mlx5_0", "counters/symbol_error"), "41\n")
    scene.pause(2)
    agent.signal(signal.SIGCONT)
    scene.value('infiniband_symbol_error_total{device="mlx5_0",port="1"}', 41)
    scene.polls_on()
    assert scene.finding("telemetry_stale")["severity"] == "info"
    actions = {finding["action"] for finding in agent.check()["findings"]}
    assert actions == {"none"}


def starved(scene: Scene) -> None:
    """Stop the process for longer than its watchdog allows."""
    agent = scene.begin(WATCHDOG_USEC="800000")
    heard = agent.supervisor.times
    scene.until(lambda: len(heard("WATCHDOG=1")) >= 3, "it is fed")
    agent.signal(signal.SIGSTOP)
    scene.pause(4)
    before = len(heard("WATCHDOG=1"))
    agent.signal(signal.SIGCONT)
    scene.until(lambda: len(heard("WATCHDOG=1")) > before + 3, "it is fed again")
    first, *_, last = heard("WATCHDOG=1")[before : before + 4]
    assert last - first > 0.3, "missed signs of life are not made up for"


# Signals


def _catches(agent: AgentProcess, number: int) -> bool:
    text = Path(f"/proc/{agent.pid}/status").read_text()
    mask = next(line for line in text.splitlines() if line.startswith("SigCgt"))
    return bool(int(mask.split()[1], 16) >> (number - 1) & 1)


def term_during_start(scene: Scene) -> None:
    scene.node.hang("sys/class/infiniband/mlx5_0/node_guid")
    agent = scene.make({"deadlines": {"read_seconds": 60}})
    scene.begin(agent, ready=False)
    scene.until(lambda: _catches(agent, signal.SIGTERM), "it listens to signals")
    agent.signal(signal.SIGTERM)
    assert agent.wait(30) == 0
    assert agent.lines()[-1]["event"] == "agent_stopped"


def term_at_rest(scene: Scene) -> None:
    """SIGTERM while the next poll is a minute away."""
    minute = {
        "periods": dict.fromkeys(Periods.__struct_fields__, 60),
        "logs": {"discovery_seconds": 60},
    }
    agent = scene.start(minute)
    scene.value("state_saved", 1)
    assert agent.stop() < 5


def term_twice(scene: Scene) -> None:
    agent = scene.begin()
    agent.signal(signal.SIGSTOP)
    agent.signal(signal.SIGTERM)
    agent.signal(signal.SIGINT)
    agent.signal(signal.SIGCONT)
    assert agent.wait(30) == 0
    assert len(agent.lines("agent_stopping")) == 1


def hup_storm(scene: Scene) -> None:
    agent = scene.begin()
    scene.node.state("mlx5_0", "1: DOWN", "2: Polling")
    before = scene.finding("port_down", "mlx5_0")
    for _ in range(60):
        agent.signal(signal.SIGHUP)
        time.sleep(0.02)
    scene.until(lambda: len(agent.lines("configuration_loaded")) >= 3, "it reloads")
    scene.polls_on()
    assert scene.finding("port_down", "mlx5_0")["id"] == before["id"]
    opened = [x for x in agent.lines("finding_open") if x["kind"] == "port_down"]
    assert len(opened) == 1


def early_hup(scene: Scene) -> None:
    """SIGHUP before the agent can reload: systemd and logrotate send it any time."""
    agent = scene.make()
    scene.begin(agent, ready=False)
    scene.until(lambda: _ignores(agent, signal.SIGHUP), "Python runs our code")
    agent.signal(signal.SIGHUP)
    scene.until(lambda: agent.supervisor.times("READY=1"), "it is ready")


def _ignores(agent: AgentProcess, number: int) -> bool:
    text = Path(f"/proc/{agent.pid}/status").read_text()
    words = dict(line.split("\t", 1) for line in text.splitlines() if "\t" in line)
    ignored, caught = int(words["SigIgn:"], 16), int(words["SigCgt:"], 16)
    return bool((ignored | caught) >> (number - 1) & 1)


def broken_pipe(scene: Scene) -> None:
    """Let nobody read the log any more; the next line breaks the pipe."""
    agent = _logging_to(scene, "head -n 1 >/dev/null")
    agent.signal(signal.SIGPIPE)
    scene.node.state("mlx5_0", "1: DOWN", "2: Polling")
    scene.finding("port_down", "mlx5_0")
    scene.node.state("mlx5_0", "4: ACTIVE")
    scene.until(lambda: not agent.findings("port_down"), "it is resolved")


def _logging_to(scene: Scene, reader: str) -> AgentProcess:
    """Start an agent whose standard error is a pipe to a command."""
    pipe = scene.folder / "pipe"
    os.mkfifo(pipe)
    script = f'({reader}) <"{pipe}" & exec 2>"{pipe}"; exec "$@"'
    return scene.start(prefix=["sh", "-c", script, "sh"])


def silent_reader(scene: Scene) -> None:
    """Let the reader of the log hang: the pipe is full after a few lines."""
    agent = _logging_to(scene, "exec sleep 600")
    scene.closes.append(lambda: _kill_children(scene))
    end = os.open(scene.folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 4096)
    os.close(end)
    for number in range(60):
        # A configuration that is refused is a long line each time.
        agent.config_file.write_text(f"{'x' * 100}{number}: 1\n" + '"')
        scene.reload()
    scene.goes_on()
    agent.configure({})


def _kill_children(scene: Scene) -> None:
    """End the reader, which is not ours: it has the folder of this row open."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            held = os.readlink(process / "fd/0")  # noqa: PTH115 - as it stands
        except OSError:
            continue
        if held == str(scene.folder / "pipe"):
            os.kill(int(process.name), signal.SIGKILL)


def closed_outputs(scene: Scene) -> None:
    agent = scene.start(prefix=["sh", "-c", 'exec "$@" >&- 2>&-', "sh"])
    scene.node.state("mlx5_0", "1: DOWN", "2: Polling")
    scene.finding("port_down", "mlx5_0")
    assert agent.stop() < 5


def full_log(scene: Scene) -> None:
    scene.start(prefix=["sh", "-c", 'exec "$@" 2>/dev/full', "sh"])
    scene.node.state("mlx5_0", "1: DOWN", "2: Polling")
    scene.finding("port_down", "mlx5_0")


# Limits


def no_descriptors(scene: Scene) -> None:
    agent = scene.begin()
    scene.value("state_saved", 1)
    scene.allowed.add("loop_failed")
    opened = [int(each.name) for each in Path(f"/proc/{agent.pid}/fd").iterdir()]
    before = prlimit(agent.pid, RLIMIT_NOFILE)
    prlimit(agent.pid, RLIMIT_NOFILE, (min(opened), before[1]))
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(agent.run_folder / NAME))
        scene.until(lambda: agent.lines("loop_failed"), "it is told")
        scene.pause(1)
        prlimit(agent.pid, RLIMIT_NOFILE, before)
    scene.goes_on()
    assert len(agent.lines("loop_failed")) == 1
    assert agent.lines("source_quarantined") == []
    assert not any("device_quarantined" in s for s in agent.metrics())


def few_descriptors(scene: Scene) -> None:
    """Start with far fewer descriptors than there are files."""
    agent = scene.start(prefix=["sh", "-c", 'ulimit -n 64; exec "$@"', "sh"])
    scene.verdict("mlx5_0", "healthy")
    scene.value('infiniband_symbol_error_total{device="mlx5_0",port="1"}', 0)
    scene.polls_on()
    scene.polls_while(lambda: len(os.listdir(f"/proc/{agent.pid}/fd")) < 56)  # noqa: PTH208


def no_threads(scene: Scene) -> None:
    """Forbid new threads (RLIMIT_AS), then hang a read that needs another one."""
    agent = scene.begin()
    scene.value("state_saved", 1)
    size = status_field(agent.pid, "VmSize") * 1024
    prlimit(agent.pid, RLIMIT_AS, (size + (6 << 20), -1))
    scene.node.hang(scene.node.port("mlx5_0", "counters/symbol_error"))
    scene.until(lambda: agent.get("/healthz"), "it answers")
    scene.pause(1.5)
    assert agent.get("/healthz") == "ok\n"
    prlimit(agent.pid, RLIMIT_AS, (-1, -1))
    scene.error("mlx5_0", "ETIMEDOUT")


def no_threads_for_clients(scene: Scene) -> None:
    """Forbid new threads, then let more clients come than there are threads."""
    agent = scene.begin()
    scene.value("state_saved", 1)
    size = status_field(agent.pid, "VmSize") * 1024
    prlimit(agent.pid, RLIMIT_AS, (size + (6 << 20), -1))
    clients = [socket.create_connection((LOOPBACK, agent.port)) for _ in range(12)]
    answers = []
    for client in clients[1:]:
        client.settimeout(5)
        answers.append(client.recv(100))
    for client in clients:
        client.close()
    prlimit(agent.pid, RLIMIT_AS, (-1, -1))
    assert any(answer.startswith(b"HTTP/1.1 503") for answer in answers)
    scene.until(lambda: agent.get("/healthz") == "ok\n", "it serves again")


# Addresses and folders


def _refused_start(scene: Scene, agent: AgentProcess, status: int, *said: str) -> None:
    scene.begin(agent, ready=False)
    assert agent.wait(60) == status
    last = agent.log_file.read_text().splitlines()[-1]
    assert last.startswith("fabricmon: ")
    assert all(word in last for word in said), last
    assert agent.supervisor.times("READY=1") == []
    scene.last_look(agent)


def port_in_use(scene: Scene) -> None:
    agent = scene.make()
    with socket.create_server((LOOPBACK, agent.port)):
        _refused_start(scene, agent, 70, str(agent.port), "Address already in use")


def port_forbidden(scene: Scene) -> None:
    limit = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()
    if int(limit) <= 81:
        pytest.skip(f"{MISSING}a port that needs a right")
    config = {"listen": {"metrics": f"{LOOPBACK}:81"}}
    prefix = [require("setpriv"), "--bounding-set=-net_bind_service", "--"]
    agent = scene.make(config, prefix)
    _refused_start(scene, agent, 70, "81", "Permission denied")


def address_elsewhere(scene: Scene) -> None:
    agent = scene.make({"listen": {"page": "192.0.2.1:9880"}})
    _refused_start(scene, agent, 70, "192.0.2.1", "listen.page")


def second_agent(scene: Scene) -> None:
    first = scene.begin()
    second = scene.make({"run_folder": str(first.run_folder)}, name="second")
    scene.begin(second)
    assert "another agent answers here" in second.lines("socket_unavailable")[0]["err"]
    second.stop()
    scene.verdict("mlx5_0", "healthy")


def no_run_folder(scene: Scene) -> None:
    agent = scene.start({"run_folder": "/proc/none"})
    assert "/proc/none" in scene.line("socket_unavailable")["err"]
    scene.until(lambda: agent.metric("node_verdict") == 0, "it watches")


def run_folder_removed(scene: Scene) -> None:
    """Take the run folder away with all in it, as an eager cleaner does."""
    agent = scene.begin()
    scene.verdict("mlx5_0", "healthy")
    scene.take_away(agent.run_folder)
    scene.goes_on()
    assert agent.stop() < 5


def textfile_forbidden(scene: Scene) -> None:
    folder = scene.folder / "textfiles"
    folder.mkdir(mode=0o555)
    config = {"textfile": {"path": str(folder / "fabric.prom")}}
    agent = scene.make(config, without_privileges())
    _refused_start(scene, agent, 70, str(folder), "cannot be written to")


def textfile_folder_removed(scene: Scene) -> None:
    folder = scene.folder / "textfiles"
    folder.mkdir()
    path = folder / "fabric.prom"
    agent = scene.start({"textfile": {"path": str(path), "period_seconds": 0.1}})
    scene.until(path.exists, "it is written")
    scene.take_away(folder)
    scene.until(lambda: agent.lines("textfile_unwritten"), "it is told")
    folder.mkdir()
    scene.until(path.exists, "it is written again")
    assert len(agent.lines("textfile_unwritten")) == 1
    agent.stop()
    assert not path.exists()


FAULTS = (
    Fault(
        "clock-forward",
        "the wall clock steps two hours ahead",
        "one finding for one outage, resolved as usual; /healthz ok",
        Guard(
            "runtime/heartbeat.py",
            "return time.monotonic() - self._at",
            "return time.time() - self._at",
        ),
        clock_forward,
    ),
    Fault(
        "clock-back",
        "the wall clock steps two hours back",
        "polled and judged on without a pause",
        Guard("host/live.py", "return time.monotonic()", "return time.time()"),
        clock_back,
    ),
    Fault(
        "suspended",
        "the process is stopped for ten periods (SIGSTOP), counters go on",
        "the next value is exported, the gap told as information, nothing called down",
        Guard(
            "pipeline.py",
            "            self._gap = late\n",
            "            self._gap = None\n",
        ),
        suspended,
    ),
    Fault(
        "starved-beyond-watchdog",
        "the process does not run for ten times its watchdog",
        "fed again at its rhythm, missed signs of life are not made up for",
        Guard("runtime/ticker.py", "self._count += 1 + missed", "self._count += 1"),
        starved,
    ),
    Fault(
        "sigterm-during-start",
        "SIGTERM while a device hangs and READY was not said",
        "exit status 0, agent_stopped logged",
        Guard("agent.py", "            signal.SIGTERM: self._stop_for_good,\n", ""),
        term_during_start,
    ),
    Fault(
        "sigterm-at-rest",
        "SIGTERM while the next poll is a minute away",
        "it ends at once",
        Guard(
            "agent.py",
            "        self._stop.set()\n        self._drive.ring()\n",
            "        self._stop.set()\n",
        ),
        term_at_rest,
    ),
    Fault(
        "sigterm-twice",
        "SIGTERM and SIGINT at once",
        "one orderly end",
        Guard(
            "agent.py",
            "        if not self._stop.is_set():\n            self._notify",
            "        if self._stop:\n            self._notify",
        ),
        term_twice,
    ),
    Fault(
        "sighup-storm",
        "60 SIGHUPs within a second, with a finding open",
        "it keeps its id and is not told again; threads and memory bounded",
        Guard("agent.py", "        self._pipeline.inherit(previous)\n", ""),
        hup_storm,
    ),
    Fault(
        "sighup-during-start",
        "SIGHUP before the configuration was read",
        "the start goes on",
        Guard(
            "cli/__init__.py",
            "            signal.signal(signal.SIGHUP, signal.SIG_IGN)",
            "            signal.signal(signal.SIGHUP, lambda *_: sys.exit(1))",
        ),
        early_hup,
    ),
    Fault(
        "log-reader-gone",
        "standard error is a pipe that nobody reads any more; SIGPIPE",
        "findings are made and served",
        Guard(
            "runtime/logging.py",
            "(OSError, ValueError):  # nobody reads, disk full, closed",
            "KeyError:",
        ),
        broken_pipe,
    ),
    Fault(
        "log-reader-hangs",
        "standard error is a full pipe whose reader hangs",
        "the loop does not wait for it: lines are dropped",
        Guard("runtime/logging.py", "if not self._takes():", "if False:"),
        silent_reader,
    ),
    Fault(
        "outputs-closed",
        "it is started without standard output and error",
        "it runs, finds, and ends with status 0",
        Guard(
            "cli/__init__.py",
            "    _open_outputs()\n    words",
            "    words",
        ),
        closed_outputs,
    ),
    Fault(
        "log-disk-full",
        "standard error answers ENOSPC (/dev/full)",
        "findings are made and served",
        Guard(
            "runtime/logging.py",
            "                self._write(data)\n"
            "            except (OSError, ValueError):",
            "                self._write(data)\n"
            "            except (BrokenPipeError, ValueError):",
        ),
        full_log,
    ),
    Fault(
        "descriptors-none",
        "RLIMIT_NOFILE falls below what is open",
        "one line; no device is put aside for it; all is well once there are some",
        Guard(
            "quarantine.py",
            'OURS = frozenset({"EMFILE", "ENFILE"})',
            "OURS: frozenset[str] = frozenset()",
        ),
        no_descriptors,
    ),
    Fault(
        "descriptors-few",
        "it is started with 64 descriptors",
        "everything is read, some files the slow way",
        Guard(
            "host/live_descriptors.py",
            "            if self._kept < self._limit:\n",
            "            if self._kept >= 0:\n",
        ),
        few_descriptors,
    ),
    Fault(
        "threads-none-for-reads",
        "no thread can be started (RLIMIT_AS) when a read hangs",
        "it lives and answers; the hang is told once threads can be had",
        Guard(
            "runtime/reader.py",
            "            except RuntimeError:  # out of threads: the next call",
            "            except KeyError:  # out of threads: the next call",
        ),
        no_threads,
    ),
    Fault(
        "threads-none-for-clients",
        "no thread can be started when clients come",
        "503 for them, served again afterwards",
        Guard(
            "sinks/http.py",
            "        except RuntimeError:  # out of threads",
            "        except KeyError:",
        ),
        no_threads_for_clients,
    ),
    Fault(
        "port-in-use",
        "another program listens on the metrics address",
        "status 70 and one line that names it, no READY",
        Guard(
            "sinks/http.py",
            "    except OSError as error:\n        name = errno.errorcode",
            "    except KeyError as error:\n        name = errno.errorcode",
        ),
        port_in_use,
    ),
    Fault(
        "port-forbidden",
        "the metrics address is a port below 1024, without the right",
        "status 70 and one line that names it",
        Guard(
            "sinks/http.py",
            "        place = (host, port) if both else address[:2]\n",
            "        place = (host, port) if both else (host, 0)\n",
        ),
        port_forbidden,
    ),
    Fault(
        "address-of-elsewhere",
        "the page's address is not one of this machine",
        "status 70 and one line that names address and key",
        Guard(
            "cli/__init__.py",
            "        return _fail(str(error), USAGE_ERROR if absent else FAILED)",
            "        raise",
        ),
        address_elsewhere,
    ),
    Fault(
        "two-agents-one-run-folder",
        "a second agent is started on the same run folder",
        "the socket stays with the first one; the second one says so and runs",
        Guard("runtime/socket.py", "        _check_free(path)\n", ""),
        second_agent,
    ),
    Fault(
        "run-folder-impossible",
        "the run folder cannot be made",
        "one line; watched and exported all the same",
        Guard(
            "agent.py",
            '        except HostError as error:\n            self._log.warning("socket_un',
            '        except KeyError as error:\n            self._log.warning("socket_un',
        ),
        no_run_folder,
    ),
    Fault(
        "run-folder-removed",
        "the run folder is removed while the agent runs",
        "it goes on, and ends with status 0",
        Guard(
            "runtime/socket.py",
            "        self._listener.close()\n        with suppress(OSError):",
            "        self._listener.close()\n        with suppress(KeyError):",
        ),
        run_folder_removed,
    ),
    Fault(
        "textfile-forbidden",
        "the textfile folder may not be written to",
        "status 70 and one line that names it",
        Guard(
            "sinks/textfile.py",
            "if not os.access(folder, os.W_OK | os.X_OK):",
            "if False:",
        ),
        textfile_forbidden,
    ),
    Fault(
        "textfile-folder-removed",
        "the textfile folder is removed while the agent runs, and comes back",
        "one line, written again, gone after the end",
        Guard(
            "sinks/textfile.py",
            "            self._new.replace(self._path)\n        except OSError as error:",
            "            self._new.replace(self._path)\n        except KeyError as error:",
        ),
        textfile_folder_removed,
    ),
)
