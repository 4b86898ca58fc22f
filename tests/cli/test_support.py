"""`fabricmon support`: one bundle, read back file by file and replayed."""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest

from fabricmon.cli import main, support
from fabricmon.config_load import build
from fabricmon.errors import TraceError
from fabricmon.host.trace import Header, Module, TraceRecord
from fabricmon.host.trace_write import TraceWriter
from fabricmon.support.anonymise import Anonymiser
from fabricmon.support.bundle import (
    FOLDER,
    MANIFEST,
    MOST_PART_BYTES,
    TRACE,
    Bundle,
    Content,
    trace_in,
)
from fabricmon.support.joining import JoinedTraces, Source
from fabricmon.support.parts import Parts
from fabricmon.support.pseudonyms import Pseudonyms
from fabricmon.support.trace import names_of, rewrite
from tests.deploy.cluster import answering, finding
from tests.support.agent import FAST, Node, merged
from tests.traces import START

Json = dict[str, Any]
Files = dict[str, bytes]

HOST, CLUSTER, JOB, PEER, USER = "gpu17", "athena", "train-4711", "gpu99", "wilma"
GUID = "a088:c203:00aa:0001"
SERIAL = "MT2349X01234"
HOT = (
    "mlx5_core 0000:1a:00.0: Port module event[error]: module 0, Cable error, "
    "High Temperature"
)
NAMES = (
    HOST,
    CLUSTER,
    JOB,
    PEER,
    USER,
    GUID,
    GUID.replace(":", ""),
    SERIAL,
    "11.2.3.4",
)


class Support:
    """The command on a node's files."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.node = Node(folder)
        self.run_folder = folder / "run"
        self.run_folder.mkdir()
        self.config = folder / "fabricmon.yaml"
        self.out = folder / "bundle.tar.gz"
        self._capsys = capsys
        self.configure({})

    def configure(self, config: Json) -> None:
        """Write the configuration."""
        base = {
            "node": HOST,
            "cluster": CLUSTER,
            "root": str(self.node.root),
            "run_folder": str(self.run_folder),
        }
        self.config.write_text(json.dumps(merged(FAST, base, config)))

    def run(self, *words: str) -> tuple[int, str]:
        """Return the status and all that was said."""
        own = ["--config", str(self.config), "--seconds", "0.5"]
        status = main(["support", str(self.out), *own, *words])
        shown = self._capsys.readouterr()
        return status, shown.out + shown.err

    def files(self, *words: str) -> Files:
        """Return what is in the bundle."""
        status, said = self.run(*words)
        assert status == 0, said
        return unpacked(self.out)


def unpacked(path: Path) -> Files:
    """Return the files of a bundle; the trace as it is before compression."""
    found: Files = {}
    with tarfile.open(path) as archive:
        for entry in archive:
            assert entry.mode == 0o600
            stream = archive.extractfile(entry)
            assert stream is not None
            data = stream.read()
            name = entry.name.removeprefix(f"{FOLDER}/")
            found[name] = gzip.decompress(data) if name == TRACE else data
    return found


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Support:
    """Return the command on a node whose ports are all well."""
    return Support(tmp_path, capsys)


def document() -> bytes:
    """Return what an agent answers that has found something."""
    subject = {"node": HOST, "device": "mlx5_0", "port": 1, "job": JOB, "peer": PEER}
    summary = f"{PEER} (11.2.3.4) does not answer {HOST}, job {JOB}"
    return json.dumps(
        {
            "schema": "fabricmon.check/1",
            "node": HOST,
            "source": "agent",
            "verdict": "degraded",
            "ports": [
                {"device": "mlx5_0", "port": 1, "guid": GUID.replace(":", ""),
                 "node_guid": f"0x{GUID.replace(':', '')}", "fw": "28.41.1000",
                 "hca_type": "MT4129"}
            ],
            "findings": [finding(subject=subject, summary=summary)],
            "errors": [{"device": None, "port": None, "file": f"/home/{USER}/x",
                        "errno": "EACCES", "message": "cannot be read"}],
            "jobs": [{"job": JOB, "ports": []}],
        }
    ).encode()  # fmt: skip


def manifest(files: Files) -> dict[str, Json]:
    """Return the parts of the manifest by name."""
    return {part["name"]: part for part in json.loads(files[MANIFEST])["parts"]}


class TestBundle:
    def test_has_all_parts(self, command: Support) -> None:
        """And the manifest says of each what became of it."""
        with answering(command.run_folder, document()):
            files = command.files()
        parts = manifest(files)
        wanted = {"trace", "configuration", "check", "findings", "errors", "log",
                  "versions", "unit"}  # fmt: skip
        assert set(parts) == wanted
        assert {p["file"] for p in parts.values() if "file" in p} == set(files) - {
            MANIFEST
        }
        assert json.loads(files["check.json"]) == json.loads(document())
        (found,) = map(json.loads, files["findings.jsonl"].splitlines())
        assert found["kind"] == "port_flapping"
        assert json.loads(files["errors.json"])[0]["errno"] == "EACCES"

    def test_only_the_owner_reads_it(self, command: Support) -> None:
        """Also not somebody with an open umask."""
        command.files()
        assert stat.S_IMODE(command.out.stat().st_mode) == 0o600
        assert [path.name for path in command.folder.glob("*.part")] == []

    def test_a_bundle_that_is_there_stays(self, command: Support) -> None:
        """Unless it is said."""
        command.out.write_text("mine")
        status, said = command.run()
        assert (status, command.out.read_text()) == (70, "mine")
        assert "--force" in said
        command.files("--force")

    def test_no_history_is_said(self, command: Support) -> None:
        """Who reads it must know that the trace begins after the trouble."""
        note = manifest(command.files())["trace"]["note"]
        assert "no history is kept" in note

    def test_neither_history_nor_recording(self, command: Support) -> None:
        """A bundle without a trace says why; the last `--seconds` counts."""
        part = manifest(command.files("--seconds", "0"))["trace"]
        assert part["error"] == "no history is kept (history.minutes)"

    def test_without_an_agent_a_sample_is_taken(self, command: Support) -> None:
        """And said to be one."""
        files = command.files()
        assert json.loads(files["check.json"])["source"] == "sample"
        assert "one sample" in manifest(files)["check"]["note"]

    def test_replay_reads_it(
        self, command: Support, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """As it is, beside traces."""
        command.files()
        assert main(["replay", str(command.out), "--findings", "-"]) == 0
        shown = capsys.readouterr()
        assert shown.err == ""

    def test_secrets_are_hidden(self, command: Support) -> None:
        """In the configuration and in the head of the trace."""
        key = command.folder / "client.key"
        command.configure(
            {"listen": {"tls_key": str(key), "tls_certificate": "/c.pem"}}
        )
        files = command.files()
        assert str(key).encode() in files["config.yaml"]
        key.write_text("hunter2")
        assert not any(b"hunter2" in data for data in command.files("--force").values())

    def test_versions_of_drivers(self, command: Support) -> None:
        """What is loaded, and the firmware."""
        command.node.put("sys/module/mlx5_core/version", "24.10-0.7.0\n")
        versions = json.loads(command.files()["versions.json"])
        assert versions["drivers"] == {"mlx5_core": {"version": "24.10-0.7.0"}}
        assert versions["firmware"]["mlx5_1"]["fw"] == "28.41.1000"

    def test_unit_and_drop_ins(self, command: Support) -> None:
        """With what a site changed, and without its secrets."""
        command.node.put("etc/systemd/system/fabricmon.service", "[Service]\nNice=10\n")
        drop_in = "etc/systemd/system/fabricmon.service.d/site.conf"
        command.node.put(drop_in, "Environment=FABRICMON_X__PASSWORD=hunter2\n")
        root = ("--root", str(command.node.root))
        text = command.files(*root)["unit.txt"].decode()
        assert "Nice=10" in text
        assert f"# /{drop_in}" in text
        assert "hunter2" not in text


def bundle_on_full_disk(path: Path, size: int) -> None:
    """Make a bundle with so much in it where nothing can be written any more."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Bundle(path) as bundle, Path("/dev/full").open("wb") as full:
        os.dup2(full.fileno(), bundle._stream.fileno())
        bundle.add("log", "log.txt", lambda: Content(os.urandom(size)))
        bundle.finish(b"{}")


class TestTrouble:
    def test_a_part_that_fails_costs_only_itself(
        self, command: Support, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is in the manifest, and the rest is there."""

        def fail(_self: Parts) -> Content:
            raise RuntimeError("a table\nwithout legs")

        monkeypatch.setattr(Parts, "_versions", fail)
        files = command.files()
        assert manifest(files)["versions"] == {
            "name": "versions",
            "error": "a table without legs",
        }
        assert "check.json" in files

    def test_a_recording_that_fails(
        self, command: Support, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A full disk leaves the documents."""

        def fail(*_: object) -> None:
            raise TraceError("cannot be written: No space left on device", path="x")

        monkeypatch.setattr(support, "RecordingHost", fail)
        files = command.files()
        assert "No space left" in manifest(files)["trace"]["error"]
        assert TRACE not in files
        assert main(["replay", str(command.out), "--findings", "-"]) == 70

    @pytest.mark.parametrize(
        "words",
        [
            ("--anonymise", "--with-logs"),
            ("--key-file", "/etc/hostname"),
            ("--seconds", "-1"),
            ("--seconds", "1e9"),
        ],
    )
    def test_wrong_usage(self, command: Support, words: tuple[str, ...]) -> None:
        """64, and no file."""
        try:
            status = command.run(*words)[0]
        except SystemExit as error:
            status = int(error.code or 0)
        assert status == 64
        assert not command.out.exists()

    def test_a_key_that_is_too_short(self, command: Support) -> None:
        """Who has the bundle could try names."""
        key = command.folder / "key"
        key.write_text("short")
        status, said = command.run("--anonymise", "--key-file", str(key))
        assert status == 70
        assert "16 bytes" in said
        assert not command.out.exists()

    @pytest.mark.parametrize("size", [10, 1 << 20], ids=["at its end", "midway"])
    def test_a_disk_that_is_full(self, tmp_path: Path, size: int) -> None:
        """No half of a bundle is left to fill it further."""
        with pytest.raises(OSError, match="No space left"):
            bundle_on_full_disk(tmp_path / "b.tar.gz", size)
        assert list(tmp_path.iterdir()) == []

    def test_a_long_part_is_cut_at_its_beginning(self, tmp_path: Path) -> None:
        """The end of a log is what matters."""
        path = tmp_path / "b.tar.gz"
        with Bundle(path) as bundle:
            text = b"a" * 10 + b"z" * MOST_PART_BYTES
            bundle.add("log", "log.txt", lambda: Content(text))
            bundle.finish(b"{}")
        assert bundle.parts[0].note == (
            f"only the last {MOST_PART_BYTES} of {MOST_PART_BYTES + 10} bytes"
        )
        assert unpacked(path)["log.txt"] == b"z" * MOST_PART_BYTES


class TestLogs:
    @pytest.fixture(autouse=True)
    def log(self, command: Support) -> None:
        """Let a job of the node write a log."""
        line = f"{HOST}:1:1 [0] NCCL WARN the secret of {USER}\n"
        command.node.put("var/log/nccl/x.log", line)
        paths = ["/var/log/nccl/*.log"]
        command.configure({"logs": {"paths": paths}})

    def test_are_left_out(self, command: Support) -> None:
        """Users did not ask to be read by a vendor."""
        assert b"NCCL WARN" not in b"".join(command.files().values())

    def test_are_there_when_asked_for(self, command: Support) -> None:
        """Then the whole of them is in the trace."""
        assert b"NCCL WARN the secret" in command.files("--with-logs")[TRACE]


def trace(folder: Path) -> Path:
    """Return a recording with everything that names somebody."""
    path = folder / "raw.jsonl"
    header = Header(
        node=HOST,
        start=START,
        peers={"11.2.3.4": PEER},
        topology={"rack": "rack-b12", "ports": {"mlx5_0/1": {"leaf": "leaf-a7"}}},
        config={"node": HOST, "cluster": CLUSTER},
    )
    with TraceWriter(path, header) as writer:
        writer.write(
            TraceRecord(
                t=0,
                set={
                    "/sys/class/infiniband/mlx5_0/node_guid": f"{GUID}\n",
                    "/proc/77/environ": f"USER={USER}",
                    "/run/fabricmon/jobs/1.json": '{"command": "finetune"}',
                    "/sys/class/infiniband/mlx5_0/ports/1/counters/x": "4711\n",
                },
                module={"mlx5_0/1": Module(serial=SERIAL)},
                append={"/var/log/nccl/x.log": f"{HOST}: NCCL WARN {USER}\n"},
                kmsg=[
                    HOT,
                    f"nfs: server {PEER} not responding, {USER}",
                ],
            )
        )
        writer.write(TraceRecord(t=5))
    return path


class TestTrace:
    def rewritten(self, folder: Path, anonymiser: Anonymiser | None) -> str:
        """Return a trace after it was rewritten."""
        raw = trace(folder)
        if anonymiser is not None:
            names_of(raw, anonymiser)
        target = folder / "clean.jsonl"
        source = JoinedTraces([Source(raw)])
        rewrite(
            source,
            target,
            with_logs=False,
            anonymiser=anonymiser,
            most_bytes=1 << 20,
            job_paths=["/run/fabricmon/jobs"],
        )
        return target.read_text()

    def test_no_log_and_no_environment(self, tmp_path: Path) -> None:
        """Whoever recorded them."""
        told = self.rewritten(tmp_path, None)
        assert "NCCL WARN" not in told
        assert "environ" not in told
        assert "finetune" in told
        assert "4711" in told

    def test_no_name(self, tmp_path: Path) -> None:
        """And of the kernel's lines only those that are about RDMA."""
        told = self.rewritten(tmp_path, Anonymiser(Pseudonyms(b"k" * 16)))
        assert [name for name in (*NAMES, "rack-b12", "leaf-a7") if name in told] == []
        assert "finetune" not in told
        assert HOT in told
        assert "nfs" not in told
        assert '"4711\\n"' in told

    def test_ends_where_the_room_does(self, tmp_path: Path) -> None:
        """And says so."""
        raw, target = tmp_path / "long.jsonl", tmp_path / "clean.jsonl"
        with TraceWriter(raw, Header(node=HOST, start=START)) as writer:
            for t in range(5000):
                writer.write(TraceRecord(t=t, set={"/x": str(t) * 100}))
        source = JoinedTraces([Source(raw)])
        kept = rewrite(
            source, target, with_logs=True, anonymiser=None, most_bytes=300_000
        )
        assert kept.is_cut
        assert target.stat().st_size < 1_000_000


class TestAnonymised:
    def test_no_name_in_any_file(self, command: Support) -> None:
        """Of the node, the job, the peer, the user, nor of what they own."""
        command.node.put("sys/class/infiniband/mlx5_0/node_guid", f"{GUID}\n")
        with answering(command.run_folder, document()):
            files = command.files("--anonymise")
        left = [
            (file, name)
            for file, data in files.items()
            for name in NAMES
            if name in data.decode()
        ]
        assert left == []

    def test_no_name_in_a_note(self, command: Support, tmp_path: Path) -> None:
        """A recording that ended too early says where it lay."""
        with TraceWriter(tmp_path / "x", Header(node=HOST, start=START)):
            pass
        with Bundle(tmp_path / "b.tar.gz") as bundle:
            note = f"60 s, from when the command began; /home/{USER}/x: no room"
            bundle.add_file("trace", TRACE, tmp_path / "x", note)
            wish = support._Wish(1, False, Anonymiser(Pseudonyms(b"k" * 16)), None)
            (part,) = support._shown(bundle, wish)
        assert USER not in part.note
        assert part.note.startswith("60 s, from when the command began; /home/user-")
        assert part.error is None

    def test_joins_still_work(self, command: Support) -> None:
        """The node is one and the same in every file, and so is a GUID."""
        command.node.put("sys/class/infiniband/mlx5_0/node_guid", f"{GUID}\n")
        with answering(command.run_folder, document()):
            files = command.files("--anonymise")
        content = json.loads(files["check.json"])
        header = json.loads(files[TRACE].splitlines()[0])
        (found,) = content["findings"]
        node = json.loads(files[MANIFEST])["node"]
        assert {content["node"], header["node"], found["subject"]["node"]} == {node}
        assert found["subject"]["job"] == content["jobs"][0]["job"]
        assert found["subject"]["peer"] in found["summary"]
        guid = content["ports"][0]["guid"]
        with_colons = ":".join(guid[at : at + 4] for at in range(0, 16, 4))
        assert with_colons.encode() in files[TRACE]

    def test_one_key_joins_bundles(self, command: Support) -> None:
        """Those of several nodes; without it no two bundles agree."""
        key = command.folder / "key"
        key.write_bytes(b"0123456789abcdef")
        words = ("--anonymise", "--force")
        keyed = [
            json.loads(command.files(*words, "--key-file", str(key))[MANIFEST])["node"]
            for _ in range(2)
        ]
        own = json.loads(command.files(*words)[MANIFEST])["node"]
        assert keyed[0] == keyed[1] != own

    def test_replay_finds_the_same(self, command: Support, tmp_path: Path) -> None:
        """Codes have the shape of what they stand for."""
        command.node.state("mlx5_0", "1: DOWN", "2: Polling")
        command.configure({"expect": [{"ports": ["mlx5_0/1"], "up": True}]})
        kinds = []
        for words in ((), ("--anonymise", "--force")):
            command.files(*words, "--seconds", "2")
            out = tmp_path / "found.jsonl"
            assert main(["replay", str(command.out), "--findings", str(out)]) == 0
            found = map(json.loads, out.read_text().splitlines())
            kinds.append(sorted((f["kind"], f["subject"]["device"]) for f in found))
        assert kinds[0] == kinds[1]
        assert ("port_down", "mlx5_0") in kinds[0]

    def test_the_agent_s_log(self, tmp_path: Path) -> None:
        """Its lines are JSON after a time, or the words of systemd."""
        anonymiser = Anonymiser(Pseudonyms(b"k" * 16))
        anonymiser.learn("host", [HOST])
        parts = Parts(build({}, (), ()), {}, anonymiser)
        line = f'2026-01-01T00:00:00 fabricmon[7]: {{"event": "x", "peer": "{PEER}"}}'
        told = parts._line(line)
        assert PEER not in told
        assert told.startswith('2026-01-01T00:00:00 fabricmon[7]: {"event":"x"')
        assert HOST not in parts._line(f"Started {HOST} password=hunter2")
        assert "hunter2" not in parts._line("Started password=hunter2")

    @pytest.mark.parametrize(
        "line",
        [
            '{"event": "x", "url": "mqtt://me:hunter2@broker:1883"}',
            '{"event": "x", "err": "refused: password=hunter2"}',
            '{"event": "x", "more": [{"api_token": "hunter2"}]}',
            "{broken password=hunter2",
        ],
    )
    def test_no_secret_in_the_log(self, line: str) -> None:
        """With names or without."""
        for anonymiser in (None, Anonymiser(Pseudonyms(b"k" * 16))):
            parts = Parts(build({}, (), ()), {}, anonymiser)
            told = parts._line(f"2026-01-01T00:00:00 fabricmon[7]: {line}")
            assert "hunter2" not in told

    def test_who_works_on_what(self, command: Support) -> None:
        """Of maintenance there is when and where, without reasons and other nodes."""
        until = "2099-01-01T00:00:00Z"
        plan = [
            {"until": until, "nodes": [HOST, "zebra42"], "ports": ["mlx5_0/1"],
             "reason": "wombat mends xray-77"},
            {"until": until, "nodes": ["zebra43"], "reason": "wombat"},
        ]  # fmt: skip
        (command.run_folder / "maintenance.json").write_text(json.dumps(plan))
        trace = command.files("--anonymise")[TRACE].decode()
        names = ("zebra42", "zebra43", "wombat", "xray-77", HOST)
        assert [name for name in names if name in trace] == []
        sets = [json.loads(line).get("set", {}) for line in trace.splitlines()]
        (told,) = [v for each in sets for p, v in each.items() if "maintenance" in p]
        assert json.loads(told) == [{"until": until, "ports": ["mlx5_0/1"]}]


class TestTraceIn:
    def test_what_is_no_bundle(self, tmp_path: Path) -> None:
        """A trace is left to its own reader, compressed or not."""
        plain, zipped = tmp_path / "a.jsonl", tmp_path / "a.jsonl.gz"
        plain.write_text("{}\n")
        zipped.write_bytes(gzip.compress(b"{}\n" * 1000))
        assert trace_in(plain, tmp_path) is None
        assert trace_in(zipped, tmp_path) is None

    def test_nothing_else_is_taken_out(self, tmp_path: Path) -> None:
        """An archive may name any path and any link."""
        path, folder = tmp_path / "evil.tar.gz", tmp_path / "out"
        folder.mkdir()
        with tarfile.open(path, "w:gz") as archive:
            for name in ("../evil", "/tmp/evil", f"{FOLDER}/../../evil"):
                entry = tarfile.TarInfo(name)
                entry.size = 1
                archive.addfile(entry, io.BytesIO(b"x"))
            link = tarfile.TarInfo(f"{FOLDER}/{TRACE}")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(link)
        with pytest.raises(OSError, match="no recording"):
            trace_in(path, folder)
        assert list(folder.iterdir()) == []

    def test_a_damaged_bundle(self, command: Support) -> None:
        """One line that names it."""
        command.files()
        whole = command.out.read_bytes()
        command.out.write_bytes(whole[: len(whole) // 3])
        assert main(["replay", str(command.out), "--findings", "-"]) == 70
