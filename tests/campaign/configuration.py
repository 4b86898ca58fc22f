"""What people and programs write for the agent: half, wrong, hostile, or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.campaign.row import Fault, Guard
from tests.campaign.scene import Scene
from tests.support.agent import AgentProcess
from tests.support.servers import LOOPBACK, free_port

LOADING = "config_load.py"
READING = "text_file.py"
TEXT = "yaml_text.py"
WINDOW = {"until": "2099-01-01T00:00:00Z", "ports": ["mlx5_0/1"]}
TOPOLOGY = "nodes:\n  node01:\n    rack: r1\n    ports: {mlx5_0/1: {leaf: leaf-1}}\n"


def _refused(scene: Scene, content: str | bytes | None, *said: str) -> None:
    """Start on a configuration: status 78 and one line."""
    agent = scene.make()
    _write(agent, content)
    scene.begin(agent, ready=False)
    assert agent.wait(60) == 78
    lines = agent.log_file.read_text().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("fabricmon: configuration: ")
    for word in (str(agent.config_file), *said):
        assert word in lines[0], lines


def _write(agent: AgentProcess, content: str | bytes | None) -> None:
    if content is None:
        agent.config_file.unlink()
        return
    raw = content.encode() if isinstance(content, str) else content
    agent.config_file.write_bytes(raw)


def _kept(scene: Scene, content: str | bytes | None, *said: str) -> None:
    """Reload a configuration: one line, and the old one stays in force."""
    agent = scene.begin()
    before = _hash(agent)
    _write(agent, content)
    scene.reload()
    line = scene.line("configuration_refused")
    for word in (str(agent.config_file), *said):
        assert word in line["err"], line
    assert "\n" not in line["err"]
    assert _hash(agent) == before
    scene.verdict("mlx5_0", "healthy")


def _hash(agent: AgentProcess) -> str:
    (series,) = [s for s in agent.metrics() if s.startswith("config_info")]
    return series


def half_at_start(scene: Scene) -> None:
    _refused(scene, 'periods: {state_seconds: 1,\nlisten: {metrics: "127', "not YAML")


def half_at_reload(scene: Scene) -> None:
    _kept(scene, 'periods: {state_seconds: 1,\nlisten: {metrics: "127', "not YAML")


def empty_octets(scene: Scene) -> None:
    """What a crash leaves of a file that was not synced: zero octets."""
    _kept(scene, b"\0" * 4096, "not YAML")


def unknown_key(scene: Scene) -> None:
    _kept(scene, "perods: {}\n", "perods", "periods")


def wrong_type(scene: Scene) -> None:
    _kept(scene, "periods: {state_seconds: often}\n", "periods.state_seconds")


def out_of_range(scene: Scene) -> None:
    _kept(scene, "listen: {metrics: nowhere}\n", "listen.metrics")


def removed(scene: Scene) -> None:
    _kept(scene, None, "No such file")


def not_utf8(scene: Scene) -> None:
    _kept(scene, b"node: 'caf\xe9'\n", "not UTF-8")


def huge(scene: Scene) -> None:
    _kept(scene, "# " + "x" * (3 << 20), "larger than")


def bomb(scene: Scene) -> None:
    """Let aliases expand to a billion values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for n in range(1, 10):
        inner = ", ".join([f"*a{n - 1}"] * 10)
        lines.append(f"a{n}: &a{n} [{inner}]")
    _kept(scene, "\n".join(lines), "more than")


def deep(scene: Scene) -> None:
    _kept(scene, "a: " + "[" * 20_000, "nested too deeply")


def folder(scene: Scene) -> None:
    agent = scene.begin()
    before = _hash(agent)
    agent.config_file.unlink()
    agent.config_file.mkdir()
    scene.reload()
    assert str(agent.config_file) in scene.line("configuration_refused")["err"]
    assert _hash(agent) == before


def unreadable_key(scene: Scene) -> None:
    """Reload with a TLS key that is not there."""
    agent = scene.begin()
    agent.configure({"listen": {"tls_certificate": "/no/c", "tls_key": "/no/k"}})
    scene.reload()
    assert "listen.tls_certificate" in scene.line("configuration_refused")["err"]


def _with_topology(scene: Scene) -> Path:
    file = scene.folder / "topology.yaml"
    file.write_text(TOPOLOGY)
    scene.start({"topology": str(file)})
    scene.value('node_info{nvlink_domain="",rack="r1",topology_cluster=""}', 1)
    return file


def topology_half(scene: Scene) -> None:
    file = _with_topology(scene)
    file.write_text(TOPOLOGY[:-20])
    scene.reload()
    assert str(file) in scene.line("configuration_refused")["err"]
    scene.value('node_info{nvlink_domain="",rack="r1",topology_cluster=""}', 1)


def topology_not_utf8(scene: Scene) -> None:
    file = _with_topology(scene)
    file.write_bytes(b"nodes: {x: {rack: '\xff'}}\n")
    scene.reload()
    assert "UTF-8" in scene.line("configuration_refused")["err"]


def topology_nonsense(scene: Scene) -> None:
    """Let every value of the topology be of another type than it should be."""
    file = _with_topology(scene)
    file.write_text(
        "nodes:\n  node01: {rack: [1], addresses: {a: 1}, ports: [x]}\n"
        "  5: null\n  other: {ports: {mlx5_0/1: 7}}\nrails: {a: 1}\n"
    )
    scene.reload()
    scene.verdict("mlx5_0", "healthy")
    scene.polls_on()


def topology_gone_between(scene: Scene) -> None:
    file = _with_topology(scene)
    file.unlink()
    scene.reload()
    assert str(file) in scene.line("configuration_refused")["err"]


def _maintenance(scene: Scene, content: bytes) -> None:
    """Expect the file to be told as wrong, and nothing to be silenced by it."""
    agent = scene.begin()
    place = scene.folder / "new"
    place.write_bytes(content)
    place.replace(agent.run_folder / "maintenance.json")
    scene.line("maintenance_ignored")
    scene.node.state("mlx5_0", "1: DOWN", "2: Polling")
    scene.finding("port_down", "mlx5_0")


def maintenance_garbage(scene: Scene) -> None:
    _maintenance(scene, b"until tomorrow\xff")


def maintenance_deep(scene: Scene) -> None:
    _maintenance(scene, b"[" * 60_000)


def maintenance_huge(scene: Scene) -> None:
    _maintenance(scene, json.dumps([WINDOW] * 10_000).encode())


def maintenance_mixed(scene: Scene) -> None:
    """Let one entry of two be wrong: the other one holds."""
    agent = scene.begin()
    wrong = {"until": "soon", "ports": ["mlx5_1/1"]}
    (agent.run_folder / "maintenance.json").write_text(json.dumps([wrong, WINDOW]))
    scene.value('maintenance{device="mlx5_0",port="1"}', 1)
    assert "entry 1" in scene.line("maintenance_ignored")["err"]


def maintenance_pipe(scene: Scene) -> None:
    agent = scene.begin()
    os.mkfifo(agent.run_folder / "maintenance.json")
    scene.line("maintenance_ignored")
    scene.polls_on()
    assert not any(
        "source_in_flight" in s and "maintenance" in s for s in agent.metrics()
    )


def _with_jobs(scene: Scene, **files: bytes) -> AgentProcess:
    port = free_port()
    agent = scene.make(
        {
            "periods": {"jobs_seconds": 0.2, "nccl_log_seconds": 0.2},
            "logs": {"discovery_seconds": 0.2},
            "listen": {"page": f"{LOOPBACK}:{port}"},
        }
    )
    jobs = agent.run_folder / "jobs"
    jobs.mkdir()
    for name, content in files.items():
        (jobs / f"{name}.json").write_bytes(content)
    agent.page_port = port  # type: ignore[attr-defined]
    return agent


GOOD = b'[{"job": "4711"}]'


def _known(scene: Scene, job: str) -> None:
    scene.until(
        lambda: f'job="{job}"' in scene.agent.get("/metrics"), f"job {job} is known"
    )


def job_garbage(scene: Scene) -> None:
    agent = _with_jobs(
        scene, a=b"\xff\xfe", b=b"[" * 60_000, c=b'[{"job": {}}, 7]', d=b"", good=GOOD
    )
    scene.begin(agent)
    _known(scene, "4711")


def job_pipe(scene: Scene) -> None:
    agent = _with_jobs(scene, good=GOOD)
    os.mkfifo(agent.run_folder / "jobs" / "a.json")
    (agent.run_folder / "jobs" / "b.json").mkdir()
    (agent.run_folder / "jobs" / "c.json").symlink_to("c.json")
    scene.begin(agent)
    _known(scene, "4711")


def job_huge(scene: Scene) -> None:
    agent = _with_jobs(scene, a=b" " * (4 << 20) + GOOD, good=GOOD)
    scene.begin(agent)
    _known(scene, "4711")


def job_storm(scene: Scene) -> None:
    """Leave 1,000 files of ended jobs."""
    files = {f"n{n:04}": f'[{{"job": "j{n}"}}]'.encode() for n in range(1000)}
    agent = _with_jobs(scene, **files)
    scene.begin(agent)
    _known(scene, "j0")
    scene.polls_on()
    jobs = {s for s in agent.metrics() if s.startswith("job_info")}
    assert len(jobs) <= 40


JOB = 'x"}\n<script>alert(1)</script>\x1b[2J'


def job_hostile(scene: Scene) -> None:
    content = json.dumps([{"job": JOB, "logs": ["/logs/\n*"]}]).encode()
    agent = _with_jobs(scene, a=content, good=GOOD)
    scene.begin(agent)
    _known(scene, "4711")
    scene.until(lambda: "alert(1)" in agent.get("/metrics"), "it is exported")
    text = agent.get("/metrics")
    from prometheus_client.parser import (  # noqa: PLC0415
        text_string_to_metric_families,
    )

    jobs = {
        sample.labels["job"]
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if "job" in sample.labels
    }
    assert "4711" in jobs
    assert not any("\n" in job or "\x1b" in job for job in jobs)
    page = scene.page(agent.page_port)  # type: ignore[attr-defined]
    assert "<script>alert" not in page
    assert "\x1b" not in json.dumps(agent.check(), ensure_ascii=False)


def _reload_row(
    name: str, done: str, expected: str, guard: Guard, play: object
) -> Fault:
    return Fault(name, f"SIGHUP: {done}", expected, guard, play)  # type: ignore[arg-type]


KEPT = "one line that names file and place, the old configuration stays in force"
FAULTS = (
    Fault(
        "config-half-at-start",
        "the configuration ends in the middle",
        "status 78 and one line that names file and line",
        Guard(
            TEXT,
            "    except yaml.YAMLError as error:\n        raise _readable(error, file) from"
            " None\n    except RecursionError:",
            "    except RecursionError:",
        ),
        half_at_start,
    ),
    _reload_row(
        "config-half-at-reload",
        "the configuration ends in the middle",
        KEPT,
        Guard(
            "agent.py",
            "        except ConfigError as error:\n            self._log.error("
            '"configuration_refused"',
            "        except KeyError as error:\n            self._log.error("
            '"configuration_refused"',
        ),
        half_at_reload,
    ),
    _reload_row(
        "config-nul-octets",
        "the configuration is 4 KiB of zero octets",
        KEPT,
        Guard(
            TEXT,
            "    except yaml.YAMLError as error:  # characters that YAML does not allow",
            "    except KeyError as error:  # characters that YAML does not allow",
        ),
        empty_octets,
    ),
    _reload_row(
        "config-unknown-key",
        "the configuration has a key that there is not",
        f"{KEPT}; the right key is named",
        Guard("config/words.py", "forbid_unknown_fields=True", "omit_defaults=False"),
        unknown_key,
    ),
    _reload_row(
        "config-wrong-type",
        "a number of the configuration is a word",
        KEPT,
        Guard(
            LOADING,
            "    except msgspec.ValidationError as error:\n        raise _explain",
            "    except KeyError as error:\n        raise _explain",
        ),
        wrong_type,
    ),
    _reload_row(
        "config-wrong-value",
        "an address of the configuration is none",
        KEPT,
        Guard(LOADING, "        check_rules(config)\n", "        pass\n"),
        out_of_range,
    ),
    _reload_row(
        "config-removed",
        "the configuration is gone",
        KEPT,
        Guard(
            LOADING,
            "files = [main] if file is not None or main.is_file() else []",
            "files = [main] if main.is_file() else []",
        ),
        removed,
    ),
    _reload_row(
        "config-not-utf8",
        "the configuration is in Latin-1",
        KEPT,
        Guard(
            READING,
            "    except UnicodeDecodeError as error:\n        line =",
            "    except KeyError as error:\n        line =",
        ),
        not_utf8,
    ),
    _reload_row(
        "config-huge",
        "the configuration is 3 MiB long",
        KEPT,
        Guard(READING, "    if len(data) > most_bytes:\n", "    if not data:\n"),
        huge,
    ),
    _reload_row(
        "config-alias-bomb",
        "aliases of the configuration expand to a billion values",
        KEPT,
        Guard(TEXT, "        if self._count > MAX_NODES:", "        if False:"),
        bomb,
    ),
    _reload_row(
        "config-nested",
        "the configuration opens 20,000 brackets",
        KEPT,
        Guard(
            TEXT,
            "    except yaml.YAMLError as error:\n        raise _readable(error, file) from"
            " None\n    except RecursionError:",
            "    except KeyError:",
        ),
        deep,
    ),
    _reload_row(
        "config-is-folder",
        "a folder lies in the place of the configuration",
        KEPT,
        Guard(
            READING,
            "    except (OSError, ValueError) as error:",
            "    except KeyError as error:",
        ),
        folder,
    ),
    _reload_row(
        "config-key-file-absent",
        "the configuration names a certificate that is not there",
        KEPT,
        Guard("cli/run.py", "    check_files(loaded)\n", ""),
        unreadable_key,
    ),
    _reload_row(
        "topology-half",
        "the topology file ends in the middle",
        f"{KEPT}, the rack too",
        Guard(
            "cli/run.py",
            '        load_topology(loaded.config.topology, loaded.config.node or "")\n',
            "        pass\n",
        ),
        topology_half,
    ),
    _reload_row(
        "topology-not-utf8",
        "the topology file is no UTF-8",
        KEPT,
        Guard(
            READING,
            "    except UnicodeDecodeError as error:",
            "    except KeyError as error:",
        ),
        topology_not_utf8,
    ),
    _reload_row(
        "topology-of-wrong-types",
        "every value of the topology is of another type",
        "what can be used is taken, no crash",
        Guard(
            "topology.py",
            "for port, place in ports.items() if isinstance(ports, Mapping) else ():",
            "for port, place in ports.items() if ports else ():",
        ),
        topology_nonsense,
    ),
    _reload_row(
        "topology-removed",
        "the topology file is gone",
        KEPT,
        Guard(
            READING,
            "    except (OSError, ValueError) as error:",
            "    except KeyError as error:",
        ),
        topology_gone_between,
    ),
    Fault(
        "maintenance-garbage",
        "the maintenance file holds no JSON",
        "one line; nothing is silenced by it",
        Guard(
            "sources/maintenance.py",
            "    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:\n"
            '        return MaintenancePlan(at, error=f"{path}: {error}: {_SHAPE}")',
            "    except KeyError as error:\n"
            '        return MaintenancePlan(at, error=f"{path}: {error}: {_SHAPE}")',
        ),
        maintenance_garbage,
    ),
    Fault(
        "maintenance-nested",
        "the maintenance file opens 60,000 brackets",
        "one line; nothing is silenced by it",
        Guard(
            "sources/maintenance.py",
            "    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:\n"
            '        return MaintenancePlan(at, error=f"{path}: {error}: {_SHAPE}")',
            "    except (msgspec.ValidationError, UnicodeDecodeError) as error:\n"
            '        return MaintenancePlan(at, error=f"{path}: {error}: {_SHAPE}")',
        ),
        maintenance_deep,
    ),
    Fault(
        "maintenance-huge",
        "the maintenance file is above 64 KiB",
        "one line; nothing is silenced by it",
        Guard(
            "sources/maintenance.py",
            '        error = f"{path}: {raw.errno}: make it readable for fabricmon or'
            ' remove it"\n',
            "        error = None\n",
        ),
        maintenance_huge,
    ),
    Fault(
        "maintenance-half-wrong",
        "one of two maintenance windows is wrong",
        "the other one holds, one line names the entry",
        Guard(
            "sources/maintenance.py",
            '            first_error = first_error or f"{path}: entry {number}: {error}:'
            ' {_SHAPE}"\n            continue',
            "            return MaintenancePlan(at, error=str(error))",
        ),
        maintenance_mixed,
    ),
    Fault(
        "maintenance-is-pipe",
        "a pipe lies in the place of the maintenance file",
        "one line; it is never waited for",
        Guard(
            "host/live_files.py",
            "os.open(path, _FLAGS_AT_ONCE if written else _FLAGS)",
            "os.open(path, _FLAGS)",
        ),
        maintenance_pipe,
    ),
    Fault(
        "jobs-garbage",
        "files of the job folder hold no JSON, wrong types, nothing",
        "the good one beside them counts",
        Guard(
            "sources/job_files.py",
            "_DAMAGE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)",
            "_DAMAGE = (msgspec.ValidationError,)",
        ),
        job_garbage,
    ),
    Fault(
        "jobs-pipe-folder-loop",
        "a pipe, a folder and a link to itself lie in the job folder",
        "the good one beside them counts",
        Guard(
            "host/live_files.py",
            "os.open(path, _FLAGS_AT_ONCE if written else _FLAGS)",
            "os.open(path, _FLAGS)",
        ),
        job_pipe,
    ),
    Fault(
        "jobs-huge",
        "a file of the job folder is 4 MiB long",
        "not read; the good one beside it counts",
        Guard(
            "sources/job_files.py",
            "        if isinstance(raw, ReadError):\n            if raw.errno !=",
            "        if isinstance(raw, ReadError):\n            break\n"
            "            if raw.errno !=",
        ),
        job_huge,
    ),
    Fault(
        "jobs-storm",
        "the job folder has 1,000 files",
        "256 of them are read, 32 jobs exported by name",
        Guard("sinks/job_measures.py", "MOST_JOBS = 32", "MOST_JOBS = 100_000"),
        job_storm,
    ),
    Fault(
        "jobs-hostile-name",
        "a job is named with quotes, newlines, markup and terminal codes",
        "/metrics is read by Prometheus' parser; text on the page and in check",
        Guard(
            "sinks/template.py",
            "return text if text.isprintable() else printable(text)",
            "return text",
        ),
        job_hostile,
    ),
)
