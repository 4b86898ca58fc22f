"""The command line: one file per command, each with `add_arguments` and `run`.

Exit status: 0 fine, 64 wrong usage, 78 wrong configuration; commands that judge the
node document their own.
"""

from __future__ import annotations

import argparse
import errno
import gc
import importlib
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf, nan
from pathlib import Path
from typing import Any, NoReturn

from fabricmon import __version__
from fabricmon.errors import AbsentError, ConfigError, FabricmonError

USAGE_ERROR = 64
CONFIG_ERROR = 78
FAILED = 70
CLASS_FOLDER = "sys/class/infiniband"


@dataclass(frozen=True, slots=True)
class Command:
    """One command and the module that has it, loaded only when it is called."""

    name: str
    help: str

    @property
    def module(self) -> str:
        """Where the command lives."""
        return f"fabricmon.cli.{self.name}"


COMMANDS: tuple[Command, ...] = (
    Command("run", "watch this node and serve metrics, findings and the status page"),
    Command("demo", "watch an embedded node that breaks and heals, in time lapse"),
    Command("check", "judge this node once, for people, Slurm, Nagios and scripts"),
    Command("maintenance", "say that a port or the node is being worked on"),
    Command("record", "write what this node shows over time to a trace"),
    Command("replay", "run recorded traces through the agent and write its findings"),
    Command("support", "gather all that somebody who was not there needs to know"),
    Command("simulate", "make traces of a fleet that breaks on purpose"),
    Command("score", "say how right the findings of a simulated fleet are"),
    Command("events", "print what the nodes say to the MQTT broker, live"),
    Command("config", "check, show or describe the configuration"),
    Command("explain", "say what a kind of finding means and what decides it"),
    Command("logs", "say who failed first in the NCCL logs of a dead job"),
    Command("rules", "print the fleet's rules for Prometheus, for one site"),
    Command("gate", "hand few findings of the cluster, one by one, to a script"),
    Command("parse", "read the output of ibstat and other tools"),
)


AGENTS = frozenset({"run", "demo"})
"""Commands that SIGHUP must not end, not even before they can reload."""


class _Parser(argparse.ArgumentParser):
    """Argument parser that says one line and exits with 64."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is."""
        self.exit(USAGE_ERROR, f"{self.prog}: {message} (see {self.prog} --help)\n")


def number_up_to(most: float, *, zero: bool = False) -> Callable[[str], float]:
    """Return an argument type: a number above zero, or ``zero``, ``most`` at most."""

    def convert(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = nan
        if not 0 < number <= most and not (zero and number == 0):
            limit = f", {most:g} at most" if most < inf else ""
            least = "from 0" if zero else "above 0"
            raise argparse.ArgumentTypeError(f"{text!r} is no number {least}{limit}")
        return abs(number)  # -0.0

    return convert


def folder(text: str) -> str:
    """Return a folder that is there, as an argument type."""
    path = Path(text).absolute()
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{path}: there is no such folder")
    return str(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    _open_outputs()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if _command_in(words) in AGENTS:
        with suppress(ValueError):  # not the main thread: signals are not ours
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        gc.disable()  # what is made now stays: an agent that is ready looks, and rarely
    try:
        return _main(words)
    finally:
        gc.enable()


def _main(words: list[str]) -> int:
    parser = _parser(words)
    options, rest = parser.parse_known_args(words)
    if rest:
        parser.error(_stray(rest))
    if options.command is None:
        parser.print_help(sys.stderr)
        return USAGE_ERROR
    module = importlib.import_module(f"fabricmon.cli.{options.command}")
    return _run(module.run, options)


def _open_outputs() -> None:
    """Give a command that was started without its outputs (``>&-``) ones to nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # The lowest numbers are free: no file of ours may get those of outputs.
            setattr(sys, name, open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115, PTH123


def _stray(rest: Sequence[str]) -> str:
    """Say what belongs nowhere; the values of an option may not stand apart from it."""
    apart = any(not word.startswith("-") for word in rest)
    remedy = ": write what belongs to an option right after it" if apart else ""
    return f"unrecognized arguments: {' '.join(rest)}{remedy}"


def _run(command: Callable[[argparse.Namespace], int], options: Any) -> int:
    try:
        status = command(options)
        sys.stdout.flush()
    except ConfigError as error:
        return _fail(f"configuration: {error}", CONFIG_ERROR)
    except FabricmonError as error:
        absent = isinstance(error, AbsentError)
        return _fail(str(error), USAGE_ERROR if absent else FAILED)
    except BrokenPipeError:
        return _end_quietly(0)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return _end_quietly(_fail(f"cannot write: {error.strerror}", FAILED))
    except KeyboardInterrupt:
        return 130
    return status


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="fabricmon",
        description="Watch the RDMA fabric of this node.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    wanted = _command_in(words)
    for command in COMMANDS:
        sub = commands.add_parser(
            command.name, help=command.help, description=command.help
        )
        sub.allow_abbrev = False
        if command.name == wanted:
            importlib.import_module(command.module).add_arguments(sub)
    return parser


def _command_in(words: Sequence[str]) -> str | None:
    return next((word for word in words if not word.startswith("-")), None)


def _fail(message: str, status: int) -> int:
    print(f"fabricmon: {message}", file=sys.stderr)
    return status


def _end_quietly(status: int) -> int:
    """Keep the interpreter from complaining about an output that takes no more."""
    sys.stdout = open("/dev/null", "w", encoding="utf-8")  # noqa: SIM115, PTH123
    return status
