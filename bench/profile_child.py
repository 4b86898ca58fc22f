"""Started by profile_agent.py: an agent that tells what its memory is made of.

``imports`` loads what the agent loads and says by how much each module made the process
grow; ``heap SECONDS CONFIG`` runs an agent for so long, traces every allocation and
says what lives.
"""

from __future__ import annotations

import gc
import importlib.abc
import json
import os
import signal
import sys
import threading
import time
import tracemalloc
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

_PAGE = os.sysconf("SC_PAGESIZE")


def main() -> None:
    """Do what the first argument says and print JSON."""
    if sys.argv[1] == "imports":
        _imports()
    else:
        _heap(float(sys.argv[2]), Path(sys.argv[3]))


def resident() -> int:
    """Return octets of this process that are in memory."""
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - adds next to nothing
        return int(file.read().split()[1]) * _PAGE


class _Watched(importlib.abc.Loader):
    """Loads a module by its own loader, and notes growth without that of others."""

    def __init__(self, loader: importlib.abc.Loader, ledger: _Ledger) -> None:
        self._loader = loader
        self._ledger = ledger

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return what the loader makes."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code and note what that cost."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._ledger.enter(module.__name__)
        try:
            self._loader.exec_module(module)
        finally:
            self._ledger.leave()


class _Ledger(importlib.abc.MetaPathFinder):
    """Finds modules as usual and gives them a loader that is watched."""

    def __init__(self) -> None:
        self.grown: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._stack: list[str] = ["(start)"]
        self._at = (resident(), time.process_time())

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Ask the other finders."""
        for finder in sys.meta_path:
            if finder is self:
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Watched(spec.loader, self)
                return spec
        return None

    def enter(self, name: str) -> None:
        """Charge what came before to who imports."""
        self._charge()
        self._stack.append(name)

    def leave(self) -> None:
        """Charge the rest to the module that ends."""
        self._charge()
        self._stack.pop()

    def _charge(self) -> None:
        now = (resident(), time.process_time())
        self.grown[self._stack[-1]] += now[0] - self._at[0]
        self.seconds[self._stack[-1]] += now[1] - self._at[1]
        self._at = now


def _imports() -> None:
    before = resident()
    ledger = _Ledger()
    sys.meta_path.insert(0, ledger)
    import fabricmon.cli.run  # noqa: F401, PLC0415 - this is what is measured

    after_import = resident()
    told = {
        "before": before,
        "after": after_import,
        "modules": len(sys.modules),
        "grown": dict(ledger.grown),
        "seconds": dict(ledger.seconds),
    }
    print(json.dumps(told))


def _heap(seconds: float, config: Path) -> None:
    tracemalloc.start(1)
    from fabricmon.cli import run  # noqa: PLC0415 - to be traced

    def tell() -> None:
        time.sleep(seconds)
        snapshot = tracemalloc.take_snapshot()
        files = {
            stat.traceback[0].filename: (stat.size, stat.count)
            for stat in snapshot.statistics("filename")
        }
        lines = {
            f"{stat.traceback[0].filename}:{stat.traceback[0].lineno}": (
                stat.size,
                stat.count,
            )
            for stat in snapshot.statistics("lineno")[:80]
        }
        sizes: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        for each in _reachable():
            name = f"{type(each).__module__}.{type(each).__qualname__}"
            sizes[name] += sys.getsizeof(each)
            counts[name] += 1
        told = {
            "traced": tracemalloc.get_traced_memory()[0],
            "overhead": tracemalloc.get_tracemalloc_memory(),
            "resident": resident(),
            "files": files,
            "lines": lines,
            "types": {n: (s, counts[n]) for n, s in sizes.most_common(60)},
            "modules": sorted(sys.modules),
        }
        print(json.dumps(told), flush=True)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=tell, daemon=True).start()
    run.run(Namespace(config=config, or_demo=False))


def _reachable() -> list[object]:
    """Return every object once, those included that the collector does not track."""
    gc.unfreeze()
    found: dict[int, object] = {}
    waiting: list[object] = list(gc.get_objects())
    while waiting:
        each = waiting.pop()
        if id(each) not in found:
            found[id(each)] = each
            waiting.extend(gc.get_referents(each))
    return list(found.values())


if __name__ == "__main__":
    main()
