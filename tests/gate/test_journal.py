"""The journal on disk: what survives, what is bounded, what others may read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabricmon.errors import HostError
from fabricmon.gate.decision import Known, Out, Outcome
from fabricmon.gate.journal import FILE, Ended, Entry, Journal, Nodes, read_entries
from tests.gate.gates import NOW, report


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """A journal in a folder that is made for it."""
    made = Journal(str(tmp_path / "state"))
    yield made
    made.close()


def again(folder: Path) -> Journal:
    """Open it a second time, as after a restart."""
    return Journal(str(folder / "state"))


def test_what_is_known_survives(journal: Journal, tmp_path: Path) -> None:
    """Findings, nodes that are out and cool-downs are there after a restart."""
    known = Known(report(rail="r", leaf="l1"), NOW, NOW + 1, NOW + 2, NOW + 3)
    nodes = Nodes((Out("n1", NOW, Outcome.DONE, {"a", "b"}, None),), (("n2", NOW),))
    journal.note((), (known,), (), nodes)
    journal.close()
    restored = again(tmp_path).restored()

    assert restored.known == (known,)
    assert restored.nodes == nodes


def test_what_is_gone_is_gone(journal: Journal) -> None:
    """A finding that is forgotten leaves the file."""
    journal.note((), (Known(report(), NOW, NOW, NOW),))
    journal.note((), (), ("alert:n1",))

    assert journal.restored().known == ()


def test_an_action_without_an_end(journal: Journal, tmp_path: Path) -> None:
    """What was begun and has no outcome is known as that after a crash."""
    number = journal.begin(report(), NOW, Nodes())
    journal.close()
    fresh = again(tmp_path)

    (left,) = fresh.unfinished()
    assert (left.number, left.at, left.report) == (number, NOW, report())
    fresh.end(number, report(), Ended(Outcome.UNKNOWN), NOW + 9, Nodes())
    assert fresh.unfinished() == ()
    (attempt,) = fresh.restored().attempts
    assert (attempt.node, attempt.at, attempt.is_dry) == ("n1", NOW, False)


def test_rehearsal(journal: Journal) -> None:
    """What was only said is no action left open, and can be forgotten."""
    journal.rehearse(report(), NOW, Nodes())

    assert journal.unfinished() == ()
    assert [each.is_dry for each in journal.restored().attempts] == [True]
    journal.forget_rehearsal()
    assert journal.restored().attempts == ()


def test_entries_are_read_beside_the_gate(journal: Journal, tmp_path: Path) -> None:
    """A reader sees the lines in order, also the last ones only."""
    lines = [Entry(time=NOW + n, what="taken", detail=str(n)) for n in range(5)]
    journal.note(lines)

    assert list(read_entries(str(tmp_path / "state"))) == lines
    assert list(read_entries(str(tmp_path / "state"), 2)) == lines[-2:]


def test_bounded_by_age_and_number(journal: Journal, tmp_path: Path) -> None:
    """Old lines go, and the oldest of too many."""
    journal.note([Entry(time=NOW + n, what="taken") for n in range(100)])
    journal.prune(NOW + 10, 1000)
    folder = str(tmp_path / "state")
    assert next(read_entries(folder)).time == NOW + 10

    journal.prune(NOW, 20)
    assert len(list(read_entries(folder))) == 20


def test_an_open_action_outlives_its_age(journal: Journal) -> None:
    """What nobody saw end is never forgotten."""
    journal.begin(report(), NOW, Nodes())
    journal.prune(NOW + 1e9, 1000)

    assert len(journal.unfinished()) == 1


def test_release_is_asked_for_once(journal: Journal, tmp_path: Path) -> None:
    """A command's wish waits for the gate, and is done once."""
    again(tmp_path).ask_release("n1", "somebody", NOW)
    (release,) = journal.releases()

    assert (release.node, release.who) == ("n1", "somebody")
    journal.taken(release, Nodes())
    assert journal.releases() == ()


def test_newer_layout(journal: Journal, tmp_path: Path) -> None:
    """A file of a newer version is not touched."""
    journal.close()
    with sqlite3.connect(tmp_path / "state" / FILE) as base:
        base.execute("PRAGMA user_version = 9")
    base.close()

    with pytest.raises(HostError, match="newer version"):
        again(tmp_path)


def test_damaged(tmp_path: Path) -> None:
    """A file that is no journal is said to be none; nothing is overwritten."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / FILE).write_bytes(b"no journal" * 1000)

    with pytest.raises(HostError, match="cannot be used"):
        again(tmp_path)
    assert (tmp_path / "state" / FILE).read_bytes().startswith(b"no journal")


def test_none_to_read(tmp_path: Path) -> None:
    """Whoever reads where there is none is told so, and makes none."""
    with pytest.raises(HostError, match="cannot be read"):
        list(read_entries(str(tmp_path)))
    assert not (tmp_path / FILE).exists()
