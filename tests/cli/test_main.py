"""The command line as a whole: usage, errors, and outputs that take no more."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fabricmon import __version__
from fabricmon.cli import COMMANDS, main

NAMES = [command.name for command in COMMANDS]
WRONG = [
    ["unknown"],
    ["--unknown"],
    ["check", "--unknown"],
    ["check", "surplus"],
    ["check", "--format", "xml"],
    ["check", "--int", "5"],
    *(["check", "--interval", text] for text in ("x", "0", "-1", "nan", "4000")),
    ["check", "--ibstat-exit", "x"],
    ["config"],
    ["config", "mend"],
    ["explain", "no_such_kind"],
    ["maintenance"],
    ["parse", "ibstat"],
    ["record"],
    ["check", "--root", "/nonexistent"],
    ["record", "x", "--for", "0"],
    ["record", "x", "--for", "-2"],
    ["record", "x", "--root", "/nonexistent"],
    ["replay", "x"],
    ["demo", "--speed", "0"],
]


def run(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the program."""
    command = [sys.executable, "-m", "fabricmon", *words]
    return subprocess.run(command, check=False, text=True, **options)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Status 64, one line that says what is wrong and where help is, no output."""
    with pytest.raises(SystemExit) as error:
        main(words)
    assert error.value.code == 64
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.fullmatch(r"fabricmon[^\n]*: [^\n]+ \(see [^\n]+ --help\)\n", shown.err)


def test_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    """The help is shown, but not where a program would read a result."""
    assert main([]) == 64
    shown = capsys.readouterr()
    assert shown.out == ""
    assert all(name in shown.err for name in NAMES)


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever asks gets it on standard output."""
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    shown = capsys.readouterr().out
    assert all(f"    {name}" in shown for name in NAMES)


def test_a_root_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    """The folder is named as it was looked for, not taken for a node without RDMA."""
    with pytest.raises(SystemExit):
        main(["check", "--root", "nonexistent"])
    place = Path.cwd() / "nonexistent"
    assert f"{place}: there is no such folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("check", "0 healthy, 1 degraded, 2 down, 3 unknown"),
        ("config", "show: every key"),
        ("explain", "without one every kind is listed"),
    ],
)
def test_help_says_what_words_mean(
    name: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever writes a script or types a word need not read the source."""
    with pytest.raises(SystemExit):
        main([name, "--help"])
    assert said in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", NAMES)
def test_every_command_explains_itself(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each has its own help, with its arguments."""
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    assert f"usage: fabricmon {name}" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """One line with nothing else."""
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"{__version__}\n"


@pytest.mark.parametrize("command", ["check", "run", "config check"])
def test_wrong_configuration(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 78 and one line with file, line and key; nothing is started."""
    file = tmp_path / "wrong.yaml"
    file.write_text("log:\n  levle: info\n")
    assert main([*command.split(), "--config", str(file)]) == 78
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    assert f"{file}:2" in line
    assert "log.levle" in line
    assert "level" in line


def test_an_absent_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that was named must be there."""
    path = str(tmp_path / "none.yaml")
    assert main(["check", "--config", path]) == 78
    assert path in capsys.readouterr().err


def test_environment(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A variable sets a key, also for commands."""
    monkeypatch.setenv("FABRICMON_ROOT", str(tmp_path))
    main(["config", "show"])
    (line,) = (x for x in capsys.readouterr().out.splitlines() if x[:5] == "root:")
    assert str(tmp_path) in line
    assert "$FABRICMON_ROOT" in line


LOUD = [["explain"], ["explain", "port_down"], ["config", "show"], ["config", "schema"]]


@pytest.mark.parametrize("words", LOUD, ids=" ".join)
def test_a_reader_that_has_seen_enough(words: list[str]) -> None:
    """`| head` ends a command without a word, however little it had to say."""
    readable, writable = os.pipe()
    os.close(readable)
    try:
        done = run(*words, stdout=writable, stderr=subprocess.PIPE)
    finally:
        os.close(writable)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_disk_that_is_full() -> None:
    """One line says so, and the status."""
    with Path("/dev/full").open("w") as full:
        done = run("explain", stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 70
    assert done.stderr == "fabricmon: cannot write: No space left on device\n"


def test_one_command_loads_no_other() -> None:
    """A check that a scheduler runs every minute must not load the agent."""
    script = (
        "import sys; from fabricmon.cli import main; main(['explain']);"
        "print(*(m for m in sys.modules if m.startswith('fabricmon.')),"
        " file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    loaded = done.stderr.split()
    assert "fabricmon.cli.explain" in loaded
    assert not {"fabricmon.agent", "fabricmon.cli.run"} & set(loaded)


def test_an_agent_loads_no_sink_that_is_off(tmp_path: Path) -> None:
    """Each is a megabyte, on every node."""
    config = tmp_path / "fabricmon.yaml"
    config.write_text(
        f"root: {tmp_path}\nstate_folder: {tmp_path}\n"
        f"listen: {{metrics: null, page: null}}\n",
        "utf-8",
    )
    script = (
        "import sys\n"
        "from fabricmon.cli import run\n"
        "from fabricmon.sinks.registry import SINKS\n"
        f"config = run.load_for_agent(run.Path({str(config)!r})).config\n"
        "made = [make(config, None, None) for make in SINKS]\n"
        "[sink.open() for sink in made if sink is not None]\n"
        "print(*(m for m in sys.modules if m.startswith('fabricmon.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    loaded = set(done.stdout.split())
    assert "fabricmon.sinks.mqtt" in loaded
    assert not loaded & {
        "fabricmon.cli.answers",
        "fabricmon.sinks.kubernetes_courier",
        "fabricmon.sinks.mqtt_courier",
        "fabricmon.sinks.page",
    }


@pytest.mark.parametrize("command", ["run", "demo"])
def test_an_early_reload_ends_no_agent(command: str) -> None:
    """SIGHUP is ignored from the first moment on until the agent can take it."""
    program = (
        "import signal; from fabricmon.cli import main; "
        f"main(['{command}', '--config', '/nope']); "
        "print(signal.getsignal(signal.SIGHUP).name)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, text=True
    )
    assert done.stdout.split()[-1] == "SIG_IGN"
