"""The command `fabricmon logs`, as it is called."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fabricmon.cli import main
from fabricmon.cli.log_files import PIECE, Bar
from tests.story.told import retried, setting, started

DATA = Path(__file__).parent.parent / "data" / "nccl"
CASE = DATA / "07-ib-12-hca-named.log"
KEYS = {
    *("schema", "kind", "severity", "device", "port", "peer", "peer_port", "status"),
    *("cause", "rank", "comm", "pid", "host", "library", "library_version", "file"),
    *("line_number", "offset", "time", "count", "root", "fields", "rule", "job"),
}


def objects(
    capture: pytest.CaptureFixture[bytes], *arguments: str | Path, status: int = 0
) -> list[dict[str, Any]]:
    """Run the command and return the objects that it printed."""
    assert main(["logs", *map(str, arguments), "--format", "jsonl"]) == status
    return [json.loads(line) for line in capture.readouterr().out.splitlines()]


def test_every_event_is_one_object_with_all_keys(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """What the log does not say is null, not left out."""
    found = objects(capsysbinary, CASE)
    assert found
    assert all(event.keys() == KEYS for event in found)
    assert {event["schema"] for event in found} == {"fabricmon.logevent/1"}
    assert {event["severity"] for event in found} <= {
        "info",
        "warning",
        "error",
        "critical",
    }


def test_repeats_are_folded_and_roots_told(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """Two channels time out, the flush follows."""
    found = objects(capsysbinary, CASE)
    loud = {(one["status"], one["count"], one["root"]) for one in found if one["peer"]}
    assert loud == {(12, 2, True), (5, 1, False)}


def test_text_is_the_default(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """People get a report."""
    assert main(["logs", str(CASE)]) == 0
    assert b"Who failed first" in capsysbinary.readouterr().out


def test_folders_are_read_with_all_below(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Logs of a job lie in folders of folders."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "n1.log").write_text(retried("n1", 7, "10.0.0.2"))
    (tmp_path / "n2.log").write_text(retried("n2", 7, "10.0.0.2"))
    assert {one["host"] for one in objects(capsysbinary, tmp_path)} == {"n1", "n2"}


def test_compressed_logs_are_read(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Rotation compresses; several members are one file."""
    path = tmp_path / "n1.log.1.gz"
    parts = (retried("n1", 7, "10.0.0.2"), retried("n1", 7, "10.0.0.3"))
    path.write_bytes(b"".join(gzip.compress(part.encode()) for part in parts))
    assert len(objects(capsysbinary, path)) == 2


def test_a_large_compressed_log_is_read_in_pieces(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Also where its content does not fit one piece."""
    path = tmp_path / "n1.log.gz"
    filler = "nothing of interest\n" * (3 * PIECE // 20)
    path.write_bytes(gzip.compress((filler + retried("n1", 7, "10.0.0.2")).encode()))
    (event,) = objects(capsysbinary, path)
    assert event["line_number"] == 3 * PIECE // 20 + 1


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data[:-9], b"breaks off"),
        (lambda data: data[:5000] + b"\xff" * 4000, b"damaged gzip"),
        (lambda data: data + b"trailing text", b"behind the gzip data"),
    ],
)
def test_damaged_gzip_is_one_line_and_the_rest_goes_on(
    damage: Any,
    reason: bytes,
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """What was packed before the damage counts, the next file too."""
    packed = gzip.compress(b"".join(b"x%d\n" % n for n in range(20_000)))
    (tmp_path / "a.gz").write_bytes(damage(packed))
    (tmp_path / "b.log").write_text(retried("n1", 7, "10.0.0.2"))
    assert main(["logs", str(tmp_path), "--format", "jsonl"]) == 0
    done = capsysbinary.readouterr()
    assert len(done.out.splitlines()) == 1
    (line,) = done.err.splitlines()
    assert reason in line
    assert b"a.gz" in line


def test_a_path_that_is_not_there_is_one_line(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The others are read; alone it is a usage error with nothing on standard output."""
    missing = str(tmp_path / "missing.log")
    assert main(["logs", missing, str(CASE)]) == 0
    done = capsysbinary.readouterr()
    assert missing.encode() in done.err
    assert done.out.startswith(b"Read 1 log:")
    assert main(["logs", missing]) == 64
    done = capsysbinary.readouterr()
    assert not done.out
    assert len(done.err.splitlines()) == 1


def test_a_file_that_cannot_be_opened_is_one_line(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A link that leads to itself; the other log is read."""
    loop = tmp_path / "loop.log"
    loop.symlink_to(loop)
    assert objects(capsysbinary, loop, CASE)
    main(["logs", str(loop), str(CASE)])
    (line,) = capsysbinary.readouterr().err.decode().splitlines()
    assert "loop.log" in line


def test_an_empty_log_is_no_error(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """NCCL opens its file even if nothing is logged."""
    path = tmp_path / "empty.log"
    path.touch()
    assert objects(capsysbinary, path) == []


def test_a_folder_without_logs_is_said(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A path that was mistyped is no healthy job; another one given is read."""
    (tmp_path / "below").mkdir()
    assert main(["logs", str(tmp_path)]) == 64
    done = capsysbinary.readouterr()
    assert not done.out
    assert done.err.decode() == f"fabricmon logs: {tmp_path}: no log there\n"
    assert main(["logs", str(tmp_path), str(CASE)]) == 0
    assert b"no log there" in capsysbinary.readouterr().err


def test_a_log_of_something_else_is_said(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Nobody can say that nothing failed who was not heard."""
    other = tmp_path / "syslog"
    other.write_text("Jan  1 00:00:00 n1 systemd[1]: Started Session 1.\n")
    assert main(["logs", str(other)]) == 0
    out = capsysbinary.readouterr().out
    assert b"No line of a collective library is in these logs." in out
    assert b"No failure" not in out
    main(["logs", str(other), str(CASE)])
    text = capsysbinary.readouterr().out.decode()
    assert f"Without a line of a collective library: {other}\n" in text
    well = tmp_path / "well.log"
    well.write_text("n1:7:8 [0] NCCL INFO a line that no row knows\n")
    main(["logs", str(well), str(tmp_path / "missing")])
    assert b"No failure is in these logs." in capsysbinary.readouterr().out


def test_logs_that_have_nothing_in_common_are_several_jobs(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Their settings do not disagree; those of one folder given do."""
    paths = [tmp_path / f"{host}.log" for host in ("n1", "n2")]
    for path, value in zip(paths, ("18", "22"), strict=True):
        path.write_text(setting(path.stem, 7, "NCCL_IB_TIMEOUT", value))
    main(["logs", *map(str, paths)])
    out = capsysbinary.readouterr().out.decode()
    assert "ranks disagree" not in out
    for host in ("n1", "n2"):
        assert f"unnamed on {host}: 1 process heard" in out
    main(["logs", str(tmp_path)])
    out = capsysbinary.readouterr().out.decode()
    assert "ranks disagree: NCCL_IB_TIMEOUT" in out
    assert "unnamed on n1, n2: 2 processes heard" in out


def test_who_names_no_job_is_of_the_one_that_its_log_names(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A log given beside it is another matter."""
    named, other = tmp_path / "named.log", tmp_path / "other.log"
    stamp = "2026-04-14 10:00:00"
    named.write_text(started("n1", 7, 3, stamp) + setting("n2", 7, "NCCL_IB_TC", "106"))
    other.write_text(setting("n3", 7, "NCCL_IB_TC", "0"))
    main(["logs", str(named), str(other)])
    out = capsysbinary.readouterr().out.decode()
    assert "0x65e0bd6ee7449db4: 2 processes heard" in out
    assert "unnamed on n3: 1 process heard" in out


def test_a_dash_reads_standard_input() -> None:
    """It can stand behind a pipe."""
    command = [sys.executable, "-m", "fabricmon", "logs", "-", "--format", "jsonl"]
    done = subprocess.run(
        command, input=gzip.compress(CASE.read_bytes()), capture_output=True, check=True
    )
    assert {json.loads(line)["status"] for line in done.stdout.splitlines()} >= {12, 5}
    assert not done.stderr


def test_rules_of_the_operator_count(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A row of the configuration finds what the table does not know."""
    config = tmp_path / "fabricmon.yaml"
    config.write_text(
        "logs:\n  rules:\n    - id: site1\n      anchor: 'PLUGIN BROKE'\n"
        "      pattern: 'PLUGIN BROKE on (?P<device>\\w+)'\n      severity: critical\n"
    )
    log = tmp_path / "n1.log"
    log.write_text("n1:7:8 [0] x.cc:1 NCCL WARN PLUGIN BROKE on mlx5_9\n")
    found = objects(capsysbinary, log, "--config", config)
    assert ("site1", "mlx5_9") in {(one["rule"], one["device"]) for one in found}


def test_json_is_strict_whatever_the_log_holds(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """No half surrogates, no NaN: any reader takes it."""
    path = tmp_path / "n1.log"
    line = retried("n1", 7, "PEER").encode().replace(b"PEER", b"\xff\xed\xa0\x80x")
    path.write_bytes(line.replace(b"status=12", b"status=" + b"9" * 30) + line)
    main(["logs", str(path), "--format", "jsonl"])
    out = capsysbinary.readouterr().out.decode("utf-8")
    for text in out.splitlines():
        json.dumps(json.loads(text), ensure_ascii=False, allow_nan=False).encode()
    assert out


def test_a_bar_grows_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Logs of a service hold no bars."""
    with Bar(100 << 20) as bar:
        bar.advance(50 << 20)
    assert not capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Bar(100 << 20) as bar:
        bar.advance(50 << 20)
    assert " 50% 52/105 MB" in capsys.readouterr().err


def test_a_saved_report_of_ras(
    capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    """NCCL writes it in JSON: it is read as a whole, not line by line."""
    dead = {
        "rank": 3,
        "host": "10.0.0.3",
        "pid": 7,
        "status": {"unresponsive": True, "considered_dead": True},
    }
    told = {"hash": "0x1", "size": 4, "ranks": [], "missing_ranks": [dead]}
    path = tmp_path / "ras.json"
    path.write_text(json.dumps({"communicators": [told], "ras": {}}, indent=2))
    found = objects(capsysbinary, path)
    assert any(event["kind"].startswith("ras_") for event in found)
    assert all(event["file"] == str(path) for event in found)


def test_rows_without_a_rare_literal_are_found_in_small_logs(
    capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    """Every line of a log of some megabytes is judged."""
    path = tmp_path / "init.log"
    path.write_text("gpu1:10:11 [0] NCCL INFO Connected all rings\n")
    assert "rings_connected" in {e["kind"] for e in objects(capsysbinary, path)}
