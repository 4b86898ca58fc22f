"""The example script for Slurm, against what it asks of Slurm."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fabricmon.gate.script import call_of
from tests.gate.gates import report
from tests.support.programs import require

SCRIPT = Path(__file__).parents[2] / "deploy" / "gate" / "drain-slurm.sh"
REASON = "fabricmon: mlx5_0/1 DOWN"

_SINFO = """\
printf '%s\\n' "$*" >>{folder}/sinfo.calls
[[ -e {folder}/sinfo.fails ]] && echo no controller && exit 1
cat {folder}/state
"""
_SCONTROL = """\
printf '%s|' "$@" >>{folder}/scontrol.calls
[[ -e {folder}/scontrol.fails ]] && echo denied >&2 && exit 1
exit 0
"""


@pytest.fixture
def slurm(tmp_path: Path) -> Path:
    """Make stand-ins for the commands of Slurm; the node is idle."""
    for name, text in (("sinfo", _SINFO), ("scontrol", _SCONTROL)):
        file = tmp_path / name
        file.write_text(f"#!{require('bash')}\n{text.format(folder=tmp_path)}")
        file.chmod(0o755)
    (tmp_path / "state").write_text("idle|none\n")
    return tmp_path


def run(
    slurm: Path, *arguments: str, drain: str = "yes"
) -> subprocess.CompletedProcess[str]:
    """Run the script as the gate does, by default with its switch on."""
    path = f"{slurm}:{os.environ['PATH']}"
    return subprocess.run(
        [SCRIPT, *arguments],
        env={"PATH": path, "LC_ALL": "C", "FABRICMON_DRAIN": drain},
        input="{}\n",
        capture_output=True,
        text=True,
        check=False,
    )


def calls(slurm: Path) -> str:
    """Return what was asked of `scontrol`."""
    file = slurm / "scontrol.calls"
    return file.read_text() if file.exists() else ""


def test_drains(slurm: Path) -> None:
    """The node is drained for the reason, and the journal can say so."""
    ran = run(slurm, "gpu17", REASON)

    assert ran.returncode == 0
    assert calls(slurm) == f"update|nodename=gpu17|state=drain|reason={REASON}|"
    assert ran.stdout == f"drained gpu17: {REASON}\n"


@pytest.mark.parametrize("drain", ["", "no", "1", "YES"])
def test_dry_run_is_the_default(slurm: Path, drain: str) -> None:
    """Short of its switch it only says what it would do, and that the node is in."""
    ran = run(slurm, "gpu17", REASON, drain=drain)

    assert ran.returncode == 75
    assert ran.stdout.startswith(f"dry run: would drain gpu17: {REASON}")
    assert (slurm / "sinfo.calls").exists()
    assert not calls(slurm)


def test_takes_what_the_gate_gives(slurm: Path) -> None:
    """The gate's own arguments are right for it."""
    _, *arguments = call_of(str(SCRIPT), report("gpu17")).arguments

    assert run(slurm, *arguments).returncode == 0


@pytest.mark.parametrize("state", ["drained", "draining*", "down*", "failing"])
def test_a_node_that_is_out(slurm: Path, state: str) -> None:
    """Whoever took it out, the reason stays; it is out, so the gate may count it."""
    (slurm / "state").write_text(f"{state}|INC-4711\n")
    ran = run(slurm, "gpu17", REASON)

    assert ran.returncode == 0
    assert "its reason stays" in ran.stdout
    assert not calls(slurm)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("gpu17",),
        ("gpu17", "INC-4711"),
        ("gpu17", "x fabricmon: y"),
        ("gpu17", f"{REASON}\nstate=resume"),
        ("gpu[1-99]", REASON),
        ("gpu17,gpu18", REASON),
        ("-h", REASON),
        ("$(id)", REASON),
        ("", REASON),
    ],
    ids=str,
)
def test_what_the_gate_would_not_say(slurm: Path, arguments: tuple[str, ...]) -> None:
    """Other reasons, and names that stand for many nodes, are refused."""
    ran = run(slurm, *arguments)

    assert ran.returncode == 64
    assert not calls(slurm)
    assert not (slurm / "sinfo.calls").exists()


@pytest.mark.parametrize("trouble", ["sinfo", "scontrol"])
def test_a_controller_that_is_away(slurm: Path, trouble: str) -> None:
    """It fails, and says what Slurm said."""
    (slurm / f"{trouble}.fails").touch()
    ran = run(slurm, "gpu17", REASON)

    assert ran.returncode == 1
    assert ran.stdout.startswith(f"{trouble}: ")


def test_a_node_that_slurm_does_not_know(slurm: Path) -> None:
    """Nothing is done where the state is not known."""
    (slurm / "state").write_text("")
    ran = run(slurm, "gpu17", REASON)

    assert ran.returncode == 1
    assert not calls(slurm)


def test_shellcheck() -> None:
    """Nothing in it surprises a shell."""
    ran = subprocess.run(
        [require("shellcheck"), SCRIPT], capture_output=True, text=True, check=False
    )

    assert ran.stdout == ""
