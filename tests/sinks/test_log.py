"""Log lines of findings and of what the agent can see: changes, not ticks."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabricmon.config import Config, Log, Redaction
from fabricmon.config_load import build
from fabricmon.model import Evidence, IncidentState, JobView, Severity, Subject
from fabricmon.redaction import Redactor
from fabricmon.runtime.heartbeat import Heartbeat
from fabricmon.runtime.logging import make_logger
from fabricmon.sinks import log as module
from fabricmon.sinks.log import MOST_EVIDENCE, LogSink
from tests.sinks import nodes

Json = dict[str, Any]


class Written:
    """A sink whose lines a test reads."""

    def __init__(self) -> None:
        self._stream = io.BytesIO()
        self.sink = LogSink(make_logger(Log(format="json"), self._stream))

    def publish(self, *changes: Any, **snapshot: Any) -> list[Json]:
        """Publish a snapshot; return the lines that it gave."""
        before = len(self._stream.getvalue())
        self.sink.publish(nodes.node(nodes.port(), **snapshot), changes)
        text = self._stream.getvalue()[before:]
        return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def written() -> Written:
    """Return a sink that has seen a healthy node."""
    made = Written()
    assert made.publish() == []
    return made


class TestFindings:
    @pytest.mark.parametrize("state", IncidentState)
    def test_each_change_is_one_line(
        self, written: Written, state: IncidentState
    ) -> None:
        """What, where, how bad, what to do, and the id that leads to the rest."""
        (line,) = written.publish(nodes.incident(state=state))
        assert line["event"] == f"finding_{state.value}"
        assert (line["kind"], line["severity"], line["action"]) == (
            *("port_down", "critical", "none"),
        )
        assert (line["device"], line["port"]) == ("mlx5_0", 1)
        assert line["evidence"] == ["state=DOWN"]
        assert line["id"] == "0123456789abcdef"

    def test_what_is_open_is_no_news(self, written: Written) -> None:
        """A finding that lasts is in every snapshot, and in one line."""
        assert written.publish(incidents=(nodes.incident(),)) == []

    @pytest.mark.parametrize(
        ("severity", "level"),
        [
            (Severity.INFO, "info"),
            (Severity.WARNING, "warning"),
            (Severity.CRITICAL, "warning"),
        ],
    )
    def test_level(self, written: Written, severity: Severity, level: str) -> None:
        """Information is no warning; an error is one of the agent's own."""
        finding = replace(nodes.incident().finding, severity=severity)
        (line,) = written.publish(nodes.incident(finding=finding))
        assert line["level"] == level

    def test_what_is_over_warns_nobody(self, written: Written) -> None:
        """However bad it was."""
        (line,) = written.publish(nodes.incident(state=IncidentState.RESOLVED))
        assert (line["severity"], line["level"]) == ("critical", "info")

    def test_the_summary_comes_first(self) -> None:
        """A person at a terminal reads the story before its parts."""
        stream = io.BytesIO()
        sink = LogSink(make_logger(Log(format="console"), stream))
        sink.publish(nodes.node(nodes.port()), (nodes.incident(),))
        line = stream.getvalue().decode()
        parts = ("finding_open", "summary=", "kind=", "severity=", "id=")
        assert sorted(parts, key=line.index) == list(parts)

    def test_about_the_node(self, written: Written) -> None:
        """What does not apply is not there."""
        finding = replace(nodes.incident().finding, subject=Subject())
        (line,) = written.publish(nodes.incident(finding=finding))
        assert not {"device", "port", "rail"} & line.keys()

    def test_much_evidence(self, written: Written) -> None:
        """The line is bounded; the rest is in the finding."""
        many = tuple(Evidence(f"s{n}", n, "", "x") for n in range(20))
        finding = replace(nodes.incident().finding, evidence=many)
        (line,) = written.publish(nodes.incident(finding=finding))
        assert line["evidence"] == [f"s{n}={n}" for n in range(MOST_EVIDENCE)]


class TestSight:
    def test_the_class(self, written: Written) -> None:
        """That it cannot be read is said once, and again for another reason."""
        (line,) = written.publish(class_error="ENOENT")
        assert (line["event"], line["err"]) == ("devices_unreadable", "ENOENT")
        assert written.publish(class_error="ENOENT") == []
        (line,) = written.publish(class_error="EACCES")
        assert line["err"] == "EACCES"
        assert written.publish() == []

    def test_the_maintenance_file(self, written: Written) -> None:
        """That it is ignored is said once."""
        (line,) = written.publish(maintenance_error="x: no list")
        assert (line["event"], line["err"]) == ("maintenance_ignored", "x: no list")
        assert written.publish(maintenance_error="x: no list") == []

    def test_a_source_that_fails(self, written: Written) -> None:
        """Said when it begins and when it ends, whatever it counts meanwhile."""
        failing = nodes.failing("identity", "mlx5_0", ("EACCES", 1))
        (line,) = written.publish(health=(failing,))
        assert (line["event"], line["source"], line["device"]) == (
            *("source_failed", "identity", "mlx5_0"),
        )
        assert "EACCES" in line["err"]
        assert written.publish(health=(failing, nodes.health("state"))) == []
        again = nodes.failing("identity", "mlx5_0", ("EACCES", 2))
        assert written.publish(health=(again,)) == []
        well = nodes.health("identity", "mlx5_0")
        (line,) = written.publish(health=(well,))
        assert (line["event"], line["level"]) == ("source_recovered", "info")
        assert written.publish(health=(well,)) == []

    def test_a_source_that_is_put_aside(self, written: Written) -> None:
        """With the reason, and when it is read again."""
        aside = nodes.health("errors", "mlx5_0", quarantined="EINVAL")
        (line,) = written.publish(health=(aside,))
        assert (line["event"], line["err"]) == ("source_quarantined", "EINVAL")
        (line,) = written.publish(health=(nodes.health("errors", "mlx5_0"),))
        assert line["event"] == "source_recovered"


def test_there_always_is_one() -> None:
    """No configuration silences the agent's own log."""
    logger = make_logger(Log(), io.BytesIO())
    assert isinstance(module.make(Config(), Heartbeat(), logger), LogSink)


class TestJobs:
    def test_what_hides_logs_and_jobs_is_said_once(self, written: Written) -> None:
        """It stays so until somebody grants the right; twice would be noise."""
        hidden = JobView(problems=("/l: no right",))
        both = JobView(problems=("/l: no right", "/m: no right"))
        (line,) = written.publish(job=hidden)
        assert (line["event"], line["err"]) == ("jobs_unseen", "/l: no right")
        assert written.publish(job=hidden) == []
        assert written.publish(job=JobView()) == []
        assert [each["err"] for each in written.publish(job=both)] == ["/m: no right"]


SECRETS = ("secret-node", "secret-job", "alice", "10.1.2.3", "of a log")


def accusation() -> Any:
    """Return a finding that names a peer, a job and a user, and quotes a log."""
    base = nodes.incident("peer_suspect")
    finding = replace(
        base.finding,
        subject=Subject(peer="secret-node", job="secret-job"),
        evidence=(Evidence("text", "words of a log", "", "nccl_log"),),
        summary="3 towards secret-node in secret-job of /home/alice/x: words of a log",
    )
    return replace(base, finding=finding)


def said(tmp_path: Path, **redact: Any) -> str:
    """Return all that a sink with this policy writes of a node with such names."""
    stream = io.BytesIO()
    tree = {"state_folder": str(tmp_path), "log": {"redact": redact}}
    sink = module.make(
        build(tree, (), ()).config,
        Heartbeat(),
        make_logger(Log(format="json"), stream),
    )
    assert sink is not None
    problem = "/home/alice/x: no right to read it; told of by 10.1.2.3"
    job = JobView(problems=(problem,))
    found = accusation()
    sink.publish(nodes.node(nodes.port(), job=job, incidents=(found,)), (found,))
    return stream.getvalue().decode()


class TestNames:
    def test_all_is_told(self, tmp_path: Path) -> None:
        """By default: a node's journal is its own."""
        text = said(tmp_path)
        assert all(word in text for word in SECRETS)

    def test_hidden(self, tmp_path: Path) -> None:
        """Where lines are collected no name need leave the node, nor words of a log."""
        text = said(
            tmp_path,
            **dict.fromkeys(("jobs", "peers", "users"), "pseudonym"),
            log_text="remove",
        )
        assert [word for word in SECRETS if word in text] == []
        assert '"kind":"peer_suspect"' in text
        assert "jobs_unseen" in text

    def test_one_key(self, tmp_path: Path) -> None:
        """Codes are those of every other sink with the same key."""
        key = tmp_path / "key"
        key.write_text("0123456789abcdef")
        text = said(tmp_path, peers="pseudonym", key_file=str(key))
        policy = Redaction(peers="pseudonym")
        assert str(Redactor(policy, b"0123456789abcdef").peer("secret-node")) in text
