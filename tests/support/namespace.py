"""Run a test's code in a network of its own, with a /sys that shows it."""

import ctypes
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import TypeVar

import pytest

from tests.support.programs import MISSING, require

Result = TypeVar("Result")

_CLONE_NEWNS = 0x00020000
_CLONE_NEWNET = 0x40000000
_MS_REC_PRIVATE = 0x4000 | 0x40000
_SECONDS = 60


def apart(function: Callable[[Path], Result], root: Path) -> Result:
    """Return what `function(root)` returns in a thread with a network of its own.

    Below `root` lies a /sys of that network. All of it goes when the thread ends.
    Skips the test where this process may not do that.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            _enter(root / "sys")
            results.append(function(root))
        except BaseException as error:  # noqa: BLE001 -- raised in the test's thread
            errors.append(error)

    thread = Thread(target=work, daemon=True)
    thread.start()
    thread.join(_SECONDS)
    assert not thread.is_alive(), f"not done in {_SECONDS} s"
    for error in errors:
        raise error
    return results[0]


def ip(*words: str) -> None:
    """Run `ip` in the network of the calling thread."""
    subprocess.run([require("ip"), *words], check=True, capture_output=True)


def _enter(mount_point: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS | _CLONE_NEWNET):
        reason = os.strerror(ctypes.get_errno())
        pytest.skip(f"{MISSING}right to make a network namespace ({reason})")
    mount_point.mkdir()
    target = os.fsencode(mount_point)
    for arguments in (
        (b"none", b"/", None, _MS_REC_PRIVATE, None),
        (b"sysfs", target, b"sysfs", 0, None),
    ):
        if libc.mount(*arguments):
            raise OSError(ctypes.get_errno(), "mount")
