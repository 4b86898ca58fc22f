"""``fabricmon config check|show|schema``: the configuration, and who set what."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import msgspec

from fabricmon.config_load import Loaded, check_files, load
from fabricmon.config_manual import keys, schema


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "what",
        choices=("check", "show", "schema"),
        help="check: is it right; show: every key, its value and who set it; "
        "schema: a JSON schema for editors",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="file to read")


def run(options: argparse.Namespace) -> int:
    """Print what is asked for; a wrong configuration is an error of one line."""
    if options.what == "schema":
        print(json.dumps(schema(), indent=2))
        return 0
    loaded = load(options.config, os.environ)
    if options.what == "check":
        check_files(loaded)
        read = ", ".join(loaded.files) or "no file, defaults"
        print(f"configuration is right: {read}; hash {loaded.hash}")
        return 0
    print("\n".join(_show(loaded)))
    return 0


def _show(loaded: Loaded) -> list[str]:
    """List every key that can be set, its value, and who set it."""
    lines = [f"# hash {loaded.hash}", *(f"# read {file}" for file in loaded.files)]
    for key in keys():
        value = _value(loaded, key.path)
        origin = loaded.origin(key.path)
        shown = json.dumps(value, ensure_ascii=False)
        lines.append(f"{key.path}: {shown}  # {origin or 'default'}")
    return lines


def _value(loaded: Loaded, path: str) -> object:
    value: object = loaded.config
    for part in path.split("."):
        value = getattr(value, part)
    return msgspec.to_builtins(value)
