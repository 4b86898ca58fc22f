import fcntl
import io
import json
import os
import pty
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.config import Log
from fabricmon.model import PortId, Severity
from fabricmon.parse.words import PortState
from fabricmon.runtime.logging import (
    MOST_CHARACTERS,
    Changes,
    _Unbreakable,
    make_logger,
    printable,
)

HOSTILE = "a\x1b]0;owned\x07\n\u202eb\udcff"
ESCAPED = r"a\x1b]0;owned\x07\n\u202eb\udcff"


def log_json(**values: object) -> dict[str, object]:
    """Return the JSON line that these values give."""
    stream = io.BytesIO()
    make_logger(Log(format="json"), stream).info("port_changed", **values)
    (line,) = stream.getvalue().splitlines()
    parsed = json.loads(line)
    assert isinstance(parsed, dict)
    return parsed


class TestJson:
    def test_line(self) -> None:
        """A line is one JSON object, time and event first."""
        stream = io.BytesIO()
        log = make_logger(Log(format="json"), stream)

        log.bind(device="mlx5_0").warning("port_changed", port=1)

        line = stream.getvalue()
        assert line.endswith(b"}\n")
        assert line.startswith(b'{"timestamp":"20')
        parsed = json.loads(line)
        assert list(parsed)[:3] == ["timestamp", "level", "event"]
        assert parsed["timestamp"].endswith("Z")
        del parsed["timestamp"]
        assert parsed == {
            "level": "warning",
            "event": "port_changed",
            "device": "mlx5_0",
            "port": 1,
        }

    def test_values(self) -> None:
        """Numbers stay numbers; what JSON does not know becomes text."""
        logged = log_json(
            port=PortId("mlx5_0", 1),
            state=PortState.ACTIVE,
            severity=Severity.CRITICAL,
            rate=12.5,
            lid=None,
            up=True,
            huge=2**70,
            err=OSError(5, "Input/output error"),
            ports=("a", 1),
            raw=b"\xffx",
        )

        assert logged["port"] == "mlx5_0/1"
        assert logged["state"] == PortState.ACTIVE.value
        assert logged["severity"] == 2
        assert (logged["rate"], logged["lid"], logged["up"]) == (12.5, None, True)
        assert logged["huge"] == str(2**70)
        assert logged["err"] == "[Errno 5] Input/output error"
        assert logged["ports"] == ["a", 1]
        assert logged["raw"] == r"\xffx"

    def test_exception(self) -> None:
        """A traceback is one value of one line."""
        stream = io.BytesIO()
        log = make_logger(Log(format="json"), stream)

        log.error("poll_crashed", exc_info=ValueError(HOSTILE))

        (line,) = stream.getvalue().splitlines()
        assert "ValueError" in json.loads(line)["exception"]
        assert b"\x1b" not in line

    def test_long_value(self) -> None:
        """A value of any length gives a line of bounded length."""
        assert log_json(err="x" * 10**6)["err"] == "x" * MOST_CHARACTERS

    @given(st.text(st.characters(exclude_categories=())) | st.binary() | st.integers())
    def test_any_value(self, value: object) -> None:
        """No value breaks the line or the logger."""
        assert "value" in log_json(value=value)


class TestConsole:
    def test_line(self) -> None:
        """A line for humans has the event and its values, and no colours in a file."""
        stream = io.BytesIO()

        make_logger(Log(format="console"), stream).info("port_changed", device="mlx5_0")

        line = stream.getvalue().decode()
        assert "port_changed" in line
        assert "device=mlx5_0" in line
        assert "\x1b" not in line

    def test_hostile_text(self) -> None:
        """Text from anywhere cannot command the terminal or forge a line."""
        stream = io.BytesIO()

        make_logger(Log(format="console"), stream).info(HOSTILE, device=HOSTILE)

        (line,) = stream.getvalue().decode().splitlines()
        assert line.isprintable()
        assert line.count(ESCAPED) == 2

    def test_auto(self) -> None:
        """Automatic means colours on a terminal and JSON elsewhere."""
        ours, theirs = pty.openpty()
        with os.fdopen(theirs, "wb") as terminal:
            make_logger(Log(), terminal).info("agent_started")
        shown = os.read(ours, 4096)
        os.close(ours)
        stream = io.BytesIO()
        make_logger(Log(), stream).info("agent_started")

        assert b"\x1b[" in shown
        assert json.loads(stream.getvalue())["event"] == "agent_started"


class TestLogger:
    @pytest.mark.parametrize(
        ("level", "lines"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)]
    )
    def test_level(self, level: str, lines: int) -> None:
        """What is below the level is not written."""
        stream = io.BytesIO()
        log = make_logger(Log(format="json", level=level), stream)  # type: ignore[arg-type]

        for method in (log.debug, log.info, log.warning, log.error):
            method("port_changed")

        assert len(stream.getvalue().splitlines()) == lines

    def test_two_agents(self) -> None:
        """Two loggers in one process know nothing of each other."""
        first, second = io.BytesIO(), io.BytesIO()
        make_logger(Log(format="json", level="error"), first)
        make_logger(Log(format="json"), second).info("agent_started")

        assert not first.getvalue()
        assert second.getvalue()

    def test_nobody_reads(self) -> None:
        """A closed pipe or stream ends no agent."""
        reading, writing = os.pipe()
        os.close(reading)
        with os.fdopen(writing, "wb", buffering=0) as pipe:
            make_logger(Log(format="json"), pipe).info("agent_started")
        make_logger(Log(format="json"), pipe).info("agent_started")

    def test_standard_error(self, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
        """Lines go to standard error; standard output is for results."""
        make_logger(Log(format="json")).info("agent_started")

        captured = capfdbinary.readouterr()
        assert json.loads(captured.err)["event"] == "agent_started"
        assert not captured.out

    def test_imported_late(self) -> None:
        """Who logs nothing does not pay for structlog's import."""
        program = (
            "import sys, fabricmon.runtime.logging; "
            "print([name for name in ('structlog', 'rich') if name in sys.modules])"
        )

        printed = subprocess.check_output([sys.executable, "-c", program])

        assert printed == b"[]\n"

    def test_takes_nothing_along(self) -> None:
        """A library that structlog likes to use is left where it is, and stays usable."""
        program = (
            "import sys; from fabricmon.config import Log; "
            "from fabricmon.runtime.logging import make_logger; "
            "sys.path.insert(0, sys.argv[1]); make_logger(Log()); "
            "print('rich' in sys.modules); import rich; print(rich.found)"
        )
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "rich.py").write_text("found = True\n", "ascii")
            command = [sys.executable, "-c", program, folder]

            printed = subprocess.check_output(command)

        assert printed == b"False\nTrue\n"


class TestPrintable:
    def test_plain(self) -> None:
        """Ordinary text of any language stays as it is."""
        assert printable("Straße 400 Gb/s ✓ 計算") == "Straße 400 Gb/s ✓ 計算"

    def test_hostile(self) -> None:
        """What would command a terminal becomes readable."""
        assert printable(HOSTILE) == ESCAPED

    @given(st.text(st.characters(exclude_categories=())))
    def test_always_printable(self, text: str) -> None:
        """Any text becomes one printable piece that can be encoded."""
        assert printable(text).isprintable()
        printable(text).encode()


class TestChanges:
    def test_news(self) -> None:
        """The first value and each new one is news; a repeated one is not."""
        changes = Changes()

        news = [
            changes.note("mlx5_0", state) for state in ("up", "up", None, None, "up")
        ]

        assert news == [True, False, True, False, True]

    def test_none_is_a_value(self) -> None:
        """A first None is news, too."""
        assert Changes().note("mlx5_0", None)

    def test_keys(self) -> None:
        """Each key has its own last value."""
        changes = Changes()

        assert changes.note(("errors", "mlx5_0"), "EIO")
        assert changes.note(("errors", "mlx5_1"), "EIO")

    def test_bounded(self) -> None:
        """Of too many keys the one untouched for longest is forgotten."""
        changes = Changes(limit=2)
        for key in ("a", "b", "a", "c"):
            changes.note(key, 1)

        assert not changes.note("a", 1)
        assert changes.note("b", 1)


class TestReader:
    def test_one_that_hangs_holds_up_nobody(self) -> None:
        """What a full pipe does not take is dropped, and counted once it takes more."""
        reading, writing = os.pipe()
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
        with os.fdopen(reading, "rb", 0) as reader, os.fdopen(writing, "wb") as stream:
            log = make_logger(Log(format="json"), stream)
            for number in range(100):
                log.info("port_changed", number=number, text="x" * 500)
            taken = reader.read(4096).splitlines()
            taken_at = json.loads(taken[0])["timestamp"]
            log.info("agent_ready")
            dropped, last = map(json.loads, reader.read(4096).splitlines())
        assert (dropped["event"], dropped["level"]) == ("lines_dropped", "warning")
        assert dropped["count"] == 100 - len(taken)
        assert last["event"] == "agent_ready"
        assert list(dropped)[:3] == ["timestamp", "level", "event"]
        assert taken_at < dropped["timestamp"]

    def test_terminal_words(self) -> None:
        """Where lines are for people, so is the one that counts what was dropped."""
        reading, writing = os.pipe()
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
        with os.fdopen(reading, "rb", 0) as reader, os.fdopen(writing, "wb") as stream:
            log = make_logger(Log(format="console"), stream)
            for _ in range(20):
                log.info("port_changed", text="x" * 500)
            reader.read(4096)
            log.info("agent_ready")
            dropped, _ = reader.read(4096).splitlines()
        assert b" [warning  ] lines_dropped" in dropped
        assert b"count=" in dropped

    def test_long_line_into_a_small_room(self) -> None:
        """It is torn, not waited for; the next line stands alone."""
        reading, writing = os.pipe()
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
        with os.fdopen(reading, "rb", 0) as reader, os.fdopen(writing, "wb") as stream:
            log = make_logger(Log(format="json"), stream)
            log.info("port_changed", err="\u202e" * 2000)
            assert len(reader.read(4096)) == 4096
            log.info("agent_ready")
            torn, *whole = reader.read(4096).split(b"\n")
        assert torn == b""
        assert [json.loads(line)["event"] for line in whole if line] == [
            "lines_dropped",
            "agent_ready",
        ]

    def test_threads_take_turns(self) -> None:
        """One pipe is asked by one thread at a time: none raises, every line is whole."""
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb") as reader, ThreadPoolExecutor(5) as pool:
            taken = pool.submit(reader.read)
            with os.fdopen(writing, "wb") as stream:
                shared = _Unbreakable(stream, lambda n: b'{"event":"%d"}\n' % n)

                def many() -> None:
                    for _ in range(20_000):
                        shared.write(b'{"event":"x"}\n')

                for each in [pool.submit(many) for _ in range(4)]:
                    each.result()
            assert all(
                json.loads(line)["event"] for line in taken.result().splitlines()
            )
