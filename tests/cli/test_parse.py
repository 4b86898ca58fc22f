"""The command `fabricmon parse`, as it is called."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fabricmon.cli import main

DATA = Path(__file__).parent.parent / "data" / "fabric"
IBSTAT = str(DATA / "ibstat-split-200g.txt")


def test_json_is_one_object(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Standard output holds the document and nothing else."""
    status = main(["parse", "ibstat", IBSTAT, "--format", "json"])
    document = json.loads(capsysbinary.readouterr().out)
    assert document["schema"] == "fabricmon.check/1"
    assert (document["verdict"], status) == ("down", 2)


def test_text_is_the_default(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """People get lines."""
    main(["parse", "ibstat", IBSTAT])
    assert capsysbinary.readouterr().out.startswith(b"verdict: down\n")


def test_both_streams_and_the_status_are_taken(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """The failure of a device stands on standard error."""
    name = str(DATA / "ibstat-einval-rate")
    arguments = ["parse", "ibstat", f"{name}.txt", "--stderr", f"{name}.stderr.txt"]
    status = main([*arguments, "--exit", "255", "--format", "json"])
    document = json.loads(capsysbinary.readouterr().out)
    assert [error["device"] for error in document["errors"]] == ["mlx5_1"]
    assert status == 3


def test_a_dash_reads_standard_input() -> None:
    """It can stand behind a pipe."""
    command = [sys.executable, "-m", "fabricmon", "parse", "ibstat", "-"]
    done = subprocess.run(
        command, input=Path(IBSTAT).read_bytes(), capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"mlx5_10/1" in done.stdout


def test_bytes_that_are_no_text_do_not_matter(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The output is UTF-8 whatever the input is."""
    path = tmp_path / "broken"
    path.write_bytes(b"CA 'x\xff'\n\tPort 1:\n\t\tState: Active\n")
    main(["parse", "ibstat", str(path), "--format", "json"])
    document = json.loads(capsysbinary.readouterr().out.decode("utf-8"))
    assert document["ports"][0]["device"] == "x\ufffd"


@pytest.mark.parametrize(
    "arguments",
    [
        ["parse", "ibfoo", IBSTAT],
        ["parse", "ibstat", "/nonexistent"],
        ["parse", "ibstat", IBSTAT, "--stderr", "/nonexistent"],
    ],
)
def test_wrong_usage_is_64_and_prints_no_document(
    arguments: list[str], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Scripts can tell it from every verdict."""
    assert main(arguments) == 64
    captured = capsysbinary.readouterr()
    assert captured.out == b""
    assert captured.err.startswith(b"fabricmon parse: ")


def test_a_dash_in_a_kind_is_taken(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """The tool is called `rdma link`, the kind rdma_link."""
    name = str(DATA / "rdmalink-spark-two-down.txt")
    assert main(["parse", "rdma-link", name]) == 2
    assert b"rocep1s0f0/1" in capsysbinary.readouterr().out
