"""Which programs an agent runs, and when: one, at its start and hourly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.security.system_calls import RUNNING, read
from tests.security.whole_life import wait_for_the_trace
from tests.support.agent import AgentProcess
from tests.support.programs import require

SCRAPES = 20
TOOL = "#!/bin/sh\necho ran >>{folder}/ran\n"


@pytest.mark.slow
def test_scrapes_run_nothing(tmp_path: Path) -> None:
    """The one tool runs at the start; whoever asks afterwards starts no program."""
    root, tools, out = tmp_path / "root", tmp_path / "tools", tmp_path / "calls"
    for folder in (root, tools):
        folder.mkdir()
    (root / "sys").symlink_to("/sys")  # of this node, so that tools may tell of it
    tool = tools / "ibstat"
    tool.write_text(TOOL.format(folder=tmp_path))
    tool.chmod(0o755)
    prefix = [require("strace"), "-D", "-f", "-o", str(out)]
    prefix += ["-e", f"trace={','.join(RUNNING)}"]
    agent = AgentProcess(tmp_path, prefix=prefix)
    try:
        agent.start(PATH=str(tools))
        agent.until((tmp_path / "ran").exists, "the tool has run")
        for path in ("/metrics", "/healthz", "/readyz", "/nothing") * SCRAPES:
            try:
                agent.get(path)
            except OSError:
                assert path == "/nothing"
        agent.check()
        agent.stop()
        pid = int(out.read_text().split(maxsplit=1)[0])
        wait_for_the_trace(out, pid)
    finally:
        agent.close()
    programs = [Path(call.paths[0]).name for call in read(out) if "= 0" in call.text]
    agents = [name for name in programs if name.startswith("python")]
    assert sorted(set(programs) - set(agents)) == ["ibstat"]
    assert (tmp_path / "ran").read_text() == "ran\n"
