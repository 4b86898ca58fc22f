"""On which cores the agent runs: with real affinities, in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fabricmon.config_load import build
from fabricmon.errors import ConfigError

_SCRIPT = """
import json, os, sys, threading
from structlog.testing import capture_logs
import structlog
from fabricmon.config_load import build
from fabricmon.runtime.cores import settle_on_cores

cores, root = sys.argv[1:]
tree = {"isolation": {"cores": cores}, "root": root}
with capture_logs() as lines:
    settle_on_cores(build(tree, (), ()).config, structlog.get_logger())
later = []
thread = threading.Thread(target=lambda: later.extend(os.sched_getaffinity(0)))
thread.start()
thread.join()
print(json.dumps({"cores": sorted(later), "lines": lines}))
"""
ALL = sorted(os.sched_getaffinity(0))


def _settle(root: Path, cores: str, **files: str) -> dict[str, Any]:
    """Return the cores of a thread that was started after, and what was logged."""
    folder = root / "sys/devices/system/cpu"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, cores, str(root)],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(autouse=True)
def several_cores() -> None:
    """Skip where there is nothing to choose from."""
    if len(ALL) == 1:
        pytest.skip("MISSING a second core")


@pytest.mark.parametrize("name", ["isolated", "nohz_full"])
def test_avoids_isolated_cores(tmp_path: Path, name: str) -> None:
    """Cores that the kernel keeps for jobs are left to them, and one line says so."""
    found = _settle(tmp_path, "auto", **{name: f"{ALL[0]}\n"})

    assert found["cores"] == ALL[1:]
    (line,) = found["lines"]
    assert (line["event"], line["isolated"]) == ("cores_chosen", str(ALL[0]))


def test_nothing_isolated(tmp_path: Path) -> None:
    """Where no core is isolated nothing changes and nothing is said."""
    found = _settle(tmp_path, "auto", isolated="\n", nohz_full="(null)\n")

    assert found == {"cores": ALL, "lines": []}


def test_unknown(tmp_path: Path) -> None:
    """Nor where the kernel does not say."""
    assert _settle(tmp_path, "auto") == {"cores": ALL, "lines": []}


def test_everything_isolated(tmp_path: Path) -> None:
    """Where every core is isolated the agent runs all the same, and says it."""
    found = _settle(tmp_path, "auto", isolated="0-1023\n")

    assert found["cores"] == ALL
    (line,) = found["lines"]
    assert (line["log_level"], line["event"]) == ("warning", "cores_unchanged")


def test_listed(tmp_path: Path) -> None:
    """A list decides, whatever the kernel isolates."""
    found = _settle(tmp_path, str(ALL[-1]), isolated=f"{ALL[-1]}\n")

    assert found["cores"] == ALL[-1:]


def test_off(tmp_path: Path) -> None:
    """Off leaves it where it was started."""
    found = _settle(tmp_path, "off", isolated=f"{ALL[0]}\n")

    assert found == {"cores": ALL, "lines": []}


def test_cores_that_are_not_there(tmp_path: Path) -> None:
    """A list without any core of this node is said, and costs nothing else."""
    found = _settle(tmp_path, "60000")

    assert found["cores"] == ALL
    assert found["lines"][0]["event"] == "cores_unchanged"


@pytest.mark.parametrize("cores", ["x", "3-1", ""])
def test_a_wrong_list(cores: str) -> None:
    """What is no list is an error of the configuration that names the key."""
    with pytest.raises(ConfigError, match=r"isolation\.cores"):
        build({"isolation": {"cores": cores}}, (), ())
