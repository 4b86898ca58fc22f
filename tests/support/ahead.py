"""What takes minutes and serves many tests is begun before the first of them runs.

Virtual machines wait most of their time, and packages are built for all processes: a
test process that waited for them would run no other test meanwhile.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from uuid import uuid4

import pytest

from tests.support.image import image
from tests.support.packages import FOLDER, ROOT, packages
from tests.support.programs import find
from tests.vm import boots

RUN = pytest.StashKey[str]()
"""What tells this run from others, in all its processes."""

_NAMES = (*boots.MACHINES, "packages", "image")
"""Fixtures that wait for it."""

_PROGRAM = """\
import sys
sys.path.append(sys.argv[1]) # behind the installed package, which is tested
from tests.support.ahead import main
main(*sys.argv[2:])
"""


@contextmanager
def ahead(session: pytest.Session) -> Iterator[None]:
    """Prepare meanwhile what the tests of this session will ask for.

    One process of a run does so for all, in a child: tests bend what is global in
    their own process, such as the environment and the clock.
    """
    worker = getattr(session.config, "workerinput", {})
    run = worker.get("testrunuid") or uuid4().hex
    session.config.stash[RUN] = run
    wanted = _wanted(session.items)
    idle = session.config.option.collectonly or not wanted
    if idle or worker.get("workerid", "gw0") != "gw0":
        yield
        return
    child = _begin(run, wanted)
    try:
        yield
    except BaseException:  # a run that is broken off needs none of it
        child.terminate()
        raise
    finally:
        child.wait()


def main(run: str, *names: str) -> None:
    """Prepare these side by side; a test that asks finds again what went wrong."""
    with ThreadPoolExecutor(len(names)) as pool:
        for name in names:
            pool.submit(_prepare, run, name)


def _wanted(items: Iterable[pytest.Item]) -> list[str]:
    asked = {name for item in items for name in getattr(item, "fixturenames", ())}
    return [name for name in _NAMES if name in asked]


def _begin(run: str, names: Iterable[str]) -> subprocess.Popen[bytes]:
    # The kernel ends the child should the test process die before it.
    setpriv = find("setpriv")
    guard = [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []
    log = FOLDER.parent / "ahead.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("wb") as output:
        return subprocess.Popen(
            [*guard, sys.executable, "-c", _PROGRAM, str(ROOT), run, *names],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )


def _prepare(run: str, name: str) -> None:
    with suppress(pytest.skip.Exception):
        if name in boots.MACHINES:
            boots.outcome(name, run)
        elif name == "image":
            image(packages())
        else:
            packages()
