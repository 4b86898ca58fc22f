"""How often Python looks for garbage, and what the C library keeps."""

import gc
import os
import platform
import subprocess
import sys
from collections.abc import Iterator

import pytest

from fabricmon.runtime import memory


class Ring:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.itself = self
        self.load = bytearray(1)


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    """Leave Python as it was."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


class TestSettle:
    def test_what_is_there_is_left_out(self) -> None:
        """And new objects are looked through less often."""
        memory.settle()
        assert gc.get_freeze_count() > 1000
        assert gc.get_threshold() == (20_000, 20, 50)

    def test_what_was_left_out_is_freed_once_it_is_garbage(self) -> None:
        """A configuration that was replaced does not stay for ever."""
        ring = Ring()
        memory.settle()
        del ring
        memory.settle()
        assert not any(type(item) is Ring for item in gc.get_objects())


HEAPS = """
import ctypes, threading
from fabricmon.runtime import memory
{call}
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
ready, done = threading.Barrier(5), threading.Event()
def take():
    libc.malloc(1000)
    ready.wait()
    done.wait()
for _ in range(4):
    threading.Thread(target=take).start()
ready.wait()
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(b"/proc/self/fd/1", b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
done.set()
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only glibc has heaps of threads"
)
class TestKeepLittleFree:
    def test_threads_share_one_heap(self) -> None:
        """As glibc itself says of a process with four of them."""
        assert heaps("") > 1
        assert heaps("memory.keep_little_free()") == 1


def heaps(call: str) -> int:
    """Return how many heaps a process has that begins with this call."""
    command = [sys.executable, "-c", HEAPS.format(call=call)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment
    )
    return done.stdout.count("<heap nr=")
