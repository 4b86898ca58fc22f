import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import ahead

Process = subprocess.Popen[bytes]


class Began:
    """Stands for what prepares: keeps what it was asked for, and runs a program."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *command: str) -> None:
        self.asked: list[tuple[str, list[str]]] = []
        self.processes: list[Process] = []
        self._command = command
        monkeypatch.setattr(ahead, "_begin", self._begin)

    def _begin(self, run: str, names: list[str]) -> Process:
        self.asked.append((run, names))
        self.processes.append(subprocess.Popen(self._command))
        return self.processes[-1]


def session(*asked: str, collect: bool = False, **worker: str) -> Any:
    """Return the session of a process whose tests ask for fixtures."""
    config = SimpleNamespace(
        stash=pytest.Stash(), option=SimpleNamespace(collectonly=collect)
    )
    if worker:
        config.workerinput = worker
    items = [SimpleNamespace(fixturenames=(name,)) for name in asked]
    return SimpleNamespace(config=config, items=items)


class TestAhead:
    def test_what_is_asked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What tests ask for is prepared by the end of the run, and nothing else."""
        began = Began(monkeypatch, "true")
        own = session("tmp_path", "image", "rxe", "rxe")

        with ahead.ahead(own):
            pass

        assert began.asked == [(own.config.stash[ahead.RUN], ["rxe", "image"])]
        assert began.processes[0].returncode == 0

    def test_first_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The first of several processes begins, under the name of the whole run."""
        began = Began(monkeypatch, "true")

        for number in range(3):
            with ahead.ahead(
                session("fakeib", workerid=f"gw{number}", testrunuid="r1")
            ):
                pass

        assert began.asked == [("r1", ["fakeib"])]

    @pytest.mark.parametrize(
        "own",
        [session("tmp_path"), session("rxe", collect=True)],
        ids=["unasked", "collected"],
    )
    def test_nothing(self, monkeypatch: pytest.MonkeyPatch, own: Any) -> None:
        """Nothing is begun where no test asks for it, or none is run."""
        began = Began(monkeypatch, "true")

        with ahead.ahead(own):
            pass

        assert not began.asked

    def test_broken_off(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A run that is broken off ends what it began, and waits for nothing."""
        began = Began(monkeypatch, "sleep", "600")

        with pytest.raises(KeyboardInterrupt), ahead.ahead(session("rxe")):
            raise KeyboardInterrupt

        assert began.processes[0].returncode == -15
