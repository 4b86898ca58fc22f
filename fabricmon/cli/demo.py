"""``fabricmon demo``: the agent on an embedded node that breaks and heals.

The node is a recorded one with eight rails; it plays in time lapse, again and again,
through the agent that runs on real nodes.
"""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
import tempfile
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path

import msgspec

from fabricmon.agent import Agent, Settings
from fabricmon.cli import number_up_to
from fabricmon.cli.run import announce, load_for_agent, make_settings
from fabricmon.config_load import Loaded
from fabricmon.runtime.logging import make_logger
from fabricmon.timelapse import TimelapseDrive

TRACE = "demo.trace.jsonl.gz"
SPEED = 30.0
FASTEST = 1000.0


@dataclass(frozen=True, slots=True)
class Choice:
    """How to play: how fast, which trace, and whether to stop at its end."""

    speed: float = SPEED
    trace: Path | None = None
    once: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--speed",
        type=number_up_to(FASTEST),
        default=SPEED,
        metavar="N",
        help=f"times as fast as it was (default {SPEED:g})",
    )
    parser.add_argument("--trace", type=Path, metavar="FILE", help="trace to play")
    parser.add_argument("--once", action="store_true", help="end with the trace")
    parser.add_argument("--config", type=Path, metavar="FILE", help="file to read")


def run(options: argparse.Namespace) -> int:
    """Play until SIGTERM, or to the end of the trace."""
    return play(Choice(options.speed, options.trace, options.once), options.config)


def play(choice: Choice, file: Path | None) -> int:
    """Play the trace through the live agent."""
    with (
        as_file(files("fabricmon").joinpath(TRACE)) as shipped,
        tempfile.TemporaryDirectory(prefix="fabricmon-demo-") as folder,
    ):
        trace = choice.trace or shipped
        loaded = _in_folder(load_for_agent(file), folder)
        log = make_logger(loaded.config.log)
        drive = TimelapseDrive(trace, choice.speed)  # or there is nothing to announce
        announce(loaded)
        print(f"Check:   {_check_command(folder)}")
        print(_explain(choice), flush=True)
        while True:
            node = loaded.config.node or drive.host.header.node
            settings = make_settings(loaded, node, log, file)
            if asyncio.run(_play_once(settings, drive)) or choice.once:
                return 0
            for left in Path(folder).iterdir():
                left.unlink()
            drive = TimelapseDrive(trace, choice.speed)


async def _play_once(settings: Settings, drive: TimelapseDrive) -> bool:
    """Play to the end of the trace; True if the user ended it."""
    agent = Agent(settings, drive)
    drive.ended = agent.stop
    await agent.run()
    return agent.was_told_to_stop


def _explain(choice: Choice) -> str:
    end = "it ends by itself" if choice.once else "it starts again until Ctrl-C"
    return f"A node from a trace, {choice.speed:g} times as fast as it was: {end}."


def _check_command(folder: str) -> str:
    """Return what asks this agent, which has its socket in a folder of its own."""
    program = sys.argv[0] if Path(sys.argv[0]).name == "fabricmon" else "fabricmon"
    return f"FABRICMON_RUN_FOLDER={shlex.quote(folder)} {shlex.quote(program)} check"


def _in_folder(loaded: Loaded, folder: str) -> Loaded:
    """Keep state and socket of the demo out of the node's own folders."""
    config = msgspec.structs.replace(
        loaded.config, state_folder=folder, run_folder=folder
    )
    return replace(loaded, config=config)
