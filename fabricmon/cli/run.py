"""``fabricmon run``: the agent of this node."""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from fabricmon.agent import Agent, Settings
from fabricmon.cli import CLASS_FOLDER
from fabricmon.config import Config
from fabricmon.config_load import Loaded, check_files, load
from fabricmon.driving import LiveDrive
from fabricmon.host.live_descriptors import raise_descriptor_limit
from fabricmon.pipeline import Pipeline
from fabricmon.runtime import memory
from fabricmon.runtime.cores import settle_on_cores
from fabricmon.runtime.logging import make_logger
from fabricmon.schedule import phase_of
from fabricmon.topology_load import load_topology

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="file to read")
    parser.add_argument(
        "--or-demo",
        action="store_true",
        help="where there is no RDMA device, watch the embedded node instead",
    )


def run(options: argparse.Namespace) -> int:
    """Watch until SIGTERM; raises `ConfigError`, `HostError`."""
    memory.keep_little_free()
    loaded = load_for_agent(options.config)
    if options.or_demo and not has_devices(loaded.config.root):
        from fabricmon.cli import demo  # noqa: PLC0415 - only where it is needed

        print("No RDMA device on this node: watching the embedded one.", flush=True)
        return demo.play(demo.Choice(), options.config)
    log = make_logger(loaded.config.log)
    raise_descriptor_limit()
    settle_on_cores(loaded.config, log)
    drive = LiveDrive(loaded.config)
    if drive.link_error is not None:
        log.warning("link_events_unavailable", err=str(drive.link_error))
    node = loaded.config.node or socket.gethostname()
    if loaded.config.history.minutes:
        keep_history(drive, loaded.config, node)
    made = make_settings(loaded, node, log, options.config)
    settings = replace(made, phase=phase_of(node))
    if sys.stderr.isatty():
        announce(loaded)
    asyncio.run(_serve(settings, drive))
    return 0


def load_for_agent(file: Path | None) -> Loaded:
    """Read the configuration, and see that the files it names can be read."""
    loaded = load(file, os.environ)
    check_files(loaded)
    if loaded.config.topology is not None:
        load_topology(loaded.config.topology, loaded.config.node or "")
    return loaded


def keep_history(drive: LiveDrive, config: Config, node: str) -> None:
    """Keep the last minutes, headed by a configuration without secrets."""
    from fabricmon.support.secrets import without_secrets  # noqa: PLC0415 - rare

    drive.keep_history(config, node, without_secrets(msgspec.to_builtins(config)))


def has_devices(root: str) -> bool:
    """Tell whether the RDMA class has a device."""
    try:
        return any(Path(root, CLASS_FOLDER).iterdir())
    except OSError:
        return False


def make_settings(
    loaded: Loaded, node: str, log: FilteringBoundLogger, file: Path | None
) -> Settings:
    """Return what an agent is started with."""
    return Settings(
        loaded=loaded,
        node=node,
        environment=os.environ,
        log=log,
        reload=lambda: load_for_agent(file),
        answer=answer,
    )


def answer(pipeline: Pipeline, request: dict[str, object]) -> bytes:
    """Answer ``fabricmon check`` over the socket."""
    if request.get("ask") != "check":
        return b'{"error": "asks nothing that is known"}'
    # Loaded by the first one who asks: most agents are never asked.
    from fabricmon.cli.answers import from_pipeline  # noqa: PLC0415
    from fabricmon.cli.document import dump  # noqa: PLC0415

    return dump(from_pipeline(pipeline))


def announce(loaded: Loaded) -> None:
    """Say on a terminal where the page and the metrics are."""
    listen = loaded.config.listen
    if listen.page is not None:
        print(f"Page:    http://{listen.page}/", flush=True)
    if listen.metrics is not None:
        scheme = "https" if listen.tls_certificate else "http"
        print(f"Metrics: {scheme}://{listen.metrics}/metrics", flush=True)


async def _serve(settings: Settings, drive: LiveDrive) -> None:
    await Agent(settings, drive).run()
