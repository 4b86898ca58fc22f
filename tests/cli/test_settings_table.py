"""`fabricmon check --settings`: the table for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fabricmon.cli import main
from tests.manifest import SYSFS, lay_out

Json = dict[str, Any]
GIDS = "sys/class/infiniband/mlx5_0/ports/1"
BAD = ("NCCL_IB_GID_INDEX=0", "NCCL_IB_TIMEOUT=14", "NCCL_IB_HCA==mlx5_0")


class Check:
    """The command on a copied node with one RoCE port."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = folder / "node"
        self.run_folder = folder / "run"
        (self.run_folder / "jobs").mkdir(parents=True)
        lay_out(SYSFS / "sysfs-roce-retrans-heavy.manifest", self.root)
        self.file = folder / "check.yaml"
        config = {"root": str(self.root), "run_folder": str(self.run_folder)}
        self.file.write_text(json.dumps(config))
        self.capsys = capsys

    def write(self, path: str, text: str) -> None:
        """Let a file of the node hold this."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def run(self, *words: str) -> tuple[int, str]:
        """Return the status and what was printed."""
        status = main(["check", "--config", str(self.file), *words])
        return status, self.capsys.readouterr().out

    def table(self, *settings: str) -> list[Json]:
        """Return the rows that the table has as JSON."""
        _, out = self.run("--format", "json", "--settings", *settings)
        document = json.loads(out)
        assert document["schema"] == "fabricmon.check/1"
        rows: list[Json] = document["settings"]
        return rows


@pytest.fixture(name="check")
def _check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Check:
    return Check(tmp_path, capsys)


class TestGiven:
    def test_as_json(self, check: Check) -> None:
        """Each row: variable, value, origin, what shows, verdict, advice, and where."""
        rows = {row["variable"]: row for row in check.table(*BAD)}
        assert rows["NCCL_IB_GID_INDEX"] == {
            "variable": "NCCL_IB_GID_INDEX",
            "value": "0",
            "origin": "command line",
            "device": "mlx5_0",
            "port": 1,
            "shows": "mlx5_0/1: fe80:0000:0000:0000:9ab4:48ff:fef4:56b0 IB/RoCE v1",
            "verdict": "mismatch",
            "advice": "-1 (NCCL 2.21 and newer chooses)",
        }
        assert rows["NCCL_IB_TIMEOUT"]["advice"] == "20"
        assert rows["NCCL_IB_HCA"]["verdict"] == "ok"

    def test_for_people(self, check: Check) -> None:
        """What does not fit comes first; what does is there as well."""
        status, out = check.run("--settings", *BAD)
        lines = [line.split() for line in out.splitlines()]
        names = [words[0] for words in lines if words[:1] and "NCCL_" in words[0]]
        assert names == ["NCCL_IB_GID_INDEX", "NCCL_IB_TIMEOUT", "NCCL_IB_HCA"]
        assert "fabric shows" in out
        assert status == 1

    def test_a_mismatch_degrades(self, check: Check) -> None:
        """The status tells it, as that of any finding."""
        sound = check.root.parent / "sound"
        lay_out(SYSFS / "sysfs-gb300-names-xdr.manifest", sound)
        before, _ = check.run("--root", str(sound))
        fitting, _ = check.run("--root", str(sound), "--settings", "NCCL_IB_TIMEOUT=22")
        wrong, _ = check.run("--root", str(sound), "--settings", "NCCL_IB_TIMEOUT=14")
        assert (before, fitting, wrong) == (0, 0, 1)

    def test_text_that_would_move_the_cursor(self, check: Check) -> None:
        """A value is a user's: what a terminal would obey is not printed."""
        _, out = check.run("--settings", "NCCL_IB_TIMEOUT=\x1b[2J")
        assert "\x1b" not in out

    @pytest.mark.parametrize("word", ["NCCL_IB_HCA", "PATH=/bin", "=1"])
    def test_what_is_no_setting(self, check: Check, word: str) -> None:
        """It is a usage error that says how one is written."""
        with pytest.raises(SystemExit) as caught:
            check.run("--settings", word)
        assert caught.value.code == 64

    @pytest.mark.parametrize("variable", ["NCCL_IB_HCA=mlx5_9", "NCCL_IB_TIMEOUT=14"])
    def test_a_node_without_rdma(self, check: Check, variable: str) -> None:
        """Nothing there proves a setting right or wrong."""
        bare = check.root.parent / "bare"
        (bare / "sys").mkdir(parents=True)
        words = ("--root", str(bare), "--format", "json", "--settings", variable)
        (row,) = json.loads(check.run(*words)[1])["settings"]
        assert row["verdict"] == "unknown"
        assert "RDMA port" in row["shows"]

    def test_given_in_two_places(self, check: Check) -> None:
        """The option may come again: none of its values is lost."""
        words = ("--settings", BAD[0], "--format", "json", "--settings", BAD[1])
        rows = json.loads(check.run(*words)[1])["settings"]
        assert [row["variable"] for row in rows] == [
            "NCCL_IB_GID_INDEX",
            "NCCL_IB_TIMEOUT",
        ]

    def test_apart_from_the_option(self, check: Check) -> None:
        """A value that another option keeps apart is an error that says so."""
        with pytest.raises(SystemExit) as caught:
            check.run("--settings", "--format", "reason", BAD[0])
        assert caught.value.code == 64
        assert "right after it" in check.capsys.readouterr().err


class TestFound:
    def test_nothing(self, check: Check) -> None:
        """Without any setting the table says where they would come from."""
        _, out = check.run("--settings")
        assert "no setting of NCCL is known here" in out
        assert check.table() == []

    def test_the_file_of_the_site(self, check: Check) -> None:
        """/etc/nccl.conf holds for every job."""
        check.write("etc/nccl.conf", "# site\nNCCL_IB_TIMEOUT=14\nPATH=/x\n")
        (row,) = check.table()
        assert (row["origin"], row["verdict"]) == ("/etc/nccl.conf", "mismatch")

    def test_the_file_of_the_site_and_what_is_given(self, check: Check) -> None:
        """What is given replaces what the site has."""
        check.write("etc/nccl.conf", "NCCL_IB_TIMEOUT=14\n")
        (row,) = check.table("NCCL_IB_TIMEOUT=22")
        assert (row["origin"], row["verdict"]) == ("command line", "ok")

    def test_a_job_file(self, check: Check) -> None:
        """What a prolog announces of its job."""
        drop = [{"job": "4711", "settings": {"NCCL_IB_GID_INDEX": 0}}]
        (check.run_folder / "jobs" / "4711.json").write_text(json.dumps(drop))
        (row,) = check.table()
        assert (row["variable"], row["origin"]) == ("NCCL_IB_GID_INDEX", "job")


def test_without_the_option(check: Check) -> None:
    """The document is as it was."""
    _, out = check.run("--format", "json", "--sample")
    assert "settings" not in json.loads(out)
