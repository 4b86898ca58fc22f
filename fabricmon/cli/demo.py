"""``fabricmon demo``: the agent on an embedded node that breaks and heals.

The node is a recorded one with eight rails, or a simulated one out of a scenario; it
plays in time lapse, again and again, through the agent that runs on real nodes.
"""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path

import msgspec

from fabricmon.agent import Agent, Settings
from fabricmon.cli import number_up_to
from fabricmon.cli.run import announce, load_for_agent, make_settings
from fabricmon.config import Config
from fabricmon.config_load import Loaded
from fabricmon.host.replay import ReplayHost
from fabricmon.host.trace import Header
from fabricmon.runtime.logging import make_logger
from fabricmon.timelapse import TimelapseDrive

TRACE = "demo.trace.jsonl.gz"
SPEED = 30.0
FASTEST = 1000.0


@dataclass(frozen=True, slots=True)
class Choice:
    """How to play: how fast, which trace or scenario, whether to stop at its end."""

    speed: float = SPEED
    trace: Path | None = None
    once: bool = False
    scenario: str | None = None
    seed: int = 1
    node: int | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--speed",
        type=number_up_to(FASTEST),
        default=SPEED,
        metavar="N",
        help=f"times as fast as it was (default {SPEED:g})",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--trace", type=Path, metavar="FILE", help="trace to play")
    what.add_argument(
        "--scenario", metavar="NAME|FILE", help="simulate this (see simulate --list)"
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="of the scenario (default 1)"
    )
    parser.add_argument(
        "--node",
        type=int,
        metavar="K",
        help="node of the scenario, from 0 (default: where the first fault is)",
    )
    parser.add_argument("--once", action="store_true", help="end with the trace")
    parser.add_argument("--config", type=Path, metavar="FILE", help="file to read")


def run(options: argparse.Namespace) -> int:
    """Play until SIGTERM, or to the end of the trace."""
    choice = Choice(
        options.speed,
        options.trace,
        options.once,
        options.scenario,
        options.seed,
        options.node,
    )
    return play(choice, options.config)


def play(choice: Choice, file: Path | None) -> int:
    """Play the trace through the live agent."""
    with (
        as_file(files("fabricmon").joinpath(TRACE)) as shipped,
        tempfile.TemporaryDirectory(prefix="fabricmon-demo-") as folder,
    ):
        source = _source(choice, shipped)
        configured = load_for_agent(file)
        log = make_logger(configured.config.log)
        # or there is nothing to announce
        drive = TimelapseDrive(source.make(), choice.speed)
        header = drive.host.header
        loaded = _of_node(configured, header, folder)
        announce(loaded)
        print(f"Check:   {_check_command(folder)}")
        print(f"{_explain(choice, header.node)}{source.story}", flush=True)
        settings = replace(
            make_settings(loaded, loaded.config.node or header.node, log, file),
            reload=lambda: _of_node(load_for_agent(file), header, folder),
            socket_folder=folder,
        )
        while True:
            if asyncio.run(_play_once(settings, drive)) or choice.once:
                return 0
            for left in Path(folder).iterdir():
                left.unlink()
            drive = TimelapseDrive(source.make(), choice.speed)


@dataclass(frozen=True, slots=True)
class _Source:
    """What opens the trace, or simulates the node anew, and what will happen."""

    make: Callable[[], Path | ReplayHost]
    story: str = ""


def _source(choice: Choice, shipped: Path) -> _Source:
    trace = choice.trace or shipped
    if choice.scenario is None:
        return _Source(lambda: trace)
    # The model is loaded only by who asks for it.
    from fabricmon.sim.host import (  # noqa: PLC0415
        node_to_watch,
        simulated_host,
        stage_of,
    )

    stage = stage_of(choice.scenario, choice.seed)
    node = node_to_watch(stage, choice.node)
    story = f"\nWhat happens: {stage.scenario.summary}"
    return _Source(lambda: simulated_host(stage, node), story)


async def _play_once(settings: Settings, drive: TimelapseDrive) -> bool:
    """Play to the end of the trace; True if the user ended it."""
    agent = Agent(settings, drive)
    drive.ended = agent.stop
    await agent.run()
    return agent.was_told_to_stop


def _explain(choice: Choice, node: str) -> str:
    end = "it ends by itself" if choice.once else "it starts again until Ctrl-C"
    what = "a trace" if choice.scenario is None else f"scenario {choice.scenario}"
    return f"{node} of {what}, {choice.speed:g} times as fast as it was: {end}."


def _check_command(folder: str) -> str:
    """Return what asks this agent, which has its socket in a folder of its own."""
    program = sys.argv[0] if Path(sys.argv[0]).name == "fabricmon" else "fabricmon"
    return f"FABRICMON_RUN_FOLDER={shlex.quote(folder)} {shlex.quote(program)} check"


def _of_node(loaded: Loaded, header: Header, folder: str) -> Loaded:
    """Keep the state out of this node's folder, and read the run folder of that one."""
    told = (header.config or {}).get("run_folder")
    run_folder = told if isinstance(told, str) else Config().run_folder
    usual = Config()  # an embedded node is told to nobody who might act on it
    config = msgspec.structs.replace(
        loaded.config,
        state_folder=folder,
        run_folder=run_folder,
        mqtt=usual.mqtt,
        kubernetes=usual.kubernetes,
        textfile=usual.textfile,
    )
    return replace(loaded, config=config)
