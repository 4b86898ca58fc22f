"""What the scenarios in a machine share: steps, samples, and the agent's log.

Runs in the machine, on the standard library alone. Nothing is judged here: everything
goes to /out as it was, and the tests on the host judge it.
"""

import errno
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CLASS = Path("/sys/class/infiniband")
OUT = Path("/out")
METRICS = "http://127.0.0.1:9879"
LOOK_EVERY = 0.25
"""Seconds between two looks at the log while something is waited for."""

_DEVICE_FILES = ("node_guid", "fw_ver", "hca_type", "board_id")
_PORT_FILES = ("state", "phys_state", "rate", "link_layer", "lid", "sm_lid")

Event = dict[str, Any]


def shell(command: str, seconds: float = 300) -> str:
    """Run a command line and return all that it printed."""
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
    )
    return done.stdout


class Lab:
    """Writes down what was done and when, and what everything showed then."""

    def __init__(self, log: Path) -> None:
        """Follow the agent's log lines in a file."""
        self._log = log
        self._offset = 0
        self._events: list[Event] = []
        self._steps: list[Event] = []
        self._samples: dict[str, Event] = {}

    def step(self, name: str, what: str, *devices: str, **notes: Any) -> None:
        """Note what is about to be done, and to which devices."""
        self._steps.append(
            {
                "name": name,
                "what": what,
                "devices": devices,
                "at": time.time(),
                "notes": notes,
            }
        )
        self.save()

    def look(self, name: str, *, skip: str = "", alone: bool = False) -> None:
        """Sample what the kernel, `fabricmon check` and the agent's HTTP side show.

        Args:
            name: Name of the sample.
            skip: A device about which the kernel is not asked: it takes minutes.
            alone: Whether `check` also takes a sample itself, without the agent.
        """
        at = time.time()
        self._samples[name] = {
            "at": at,
            "check": check(),
            "sample": check("--sample") if alone else None,
            "metrics": get("/metrics"),
            "healthz": get("/healthz"),
            "sysfs": dict(sysfs(skip)),
            "seconds": time.time() - at,
        }
        self.save()

    def wait(
        self, *wanted: tuple[str, str, str], seconds: float, since: str = ""
    ) -> bool:
        """Wait until the log has these since a step; tell whether it has.

        Args:
            wanted: Event, kind and device of each, such as
                ``("finding_open", "port_down", "rxe0")``; empty is any.
            seconds: How long to wait at most.
            since: Name of a step, by default the last.
        """
        start = next(
            step["at"] for step in reversed(self._steps) if since in {"", step["name"]}
        )

        def found() -> bool:
            events = [event for event in self.events() if event["seen_at"] >= start]
            return all(any(_is(event, row) for event in events) for row in wanted)

        return self.until(found, seconds)

    def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until a condition holds, or for so long; tell whether it holds."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(LOOK_EVERY)
        return True

    def events(self) -> list[Event]:
        """Return the agent's log lines so far."""
        if not self._log.exists():
            return self._events
        with self._log.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                event = {"event": "text", "text": line}
            event["seen_at"] = time.time()
            self._events.append(event)
        return self._events

    def save(self) -> None:
        """Write all of it to /out; done after each step, so that a crash shows."""
        result = {
            "steps": self._steps,
            "samples": self._samples,
            "events": self.events(),
        }
        (OUT / "result.json").write_text(json.dumps(result, indent=1))


def check(*words: str) -> Event:
    """Run `fabricmon check`; return what it printed and its exit status."""
    done = subprocess.run(
        ["fabricmon", "check", "--format", "json", *words],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    return {"out": done.stdout, "err": done.stderr, "exit": done.returncode}


def get(path: str) -> Event:
    """GET from the agent; status 0 if there is no answer."""
    try:
        with urllib.request.urlopen(METRICS + path, timeout=10) as reply:
            return {"status": reply.status, "body": reply.read().decode()}
    except urllib.error.HTTPError as error:
        return {"status": error.code, "body": error.read().decode()}
    except OSError as error:
        return {"status": 0, "body": str(error)}


def sysfs(skip: str) -> Iterator[tuple[str, str]]:
    """Yield what the kernel says of each device; an error is ``!`` and its name."""
    for device in sorted(CLASS.iterdir()):
        if device.name == skip:
            continue
        port = device / "ports" / "1"
        paths = [device / name for name in _DEVICE_FILES]
        paths += [port / name for name in _PORT_FILES]
        for folder in ("counters", "hw_counters"):
            if (port / folder).is_dir():
                paths += sorted((port / folder).iterdir())
        for path in paths:
            yield str(path.relative_to(CLASS)), _read(path)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        return f"!{errno.errorcode.get(error.errno or 0, '?')}"


def _is(event: Event, wanted: tuple[str, str, str]) -> bool:
    names = (event.get("event"), event.get("kind"), event.get("device"))
    return all(
        not want or want == have for want, have in zip(wanted, names, strict=True)
    )


def install() -> None:
    """Put the agent where a package would put it."""
    version = ".".join(map(str, sys.version_info[:2]))
    packages = f"/usr/local/lib/python{version}/dist-packages"
    # With their times, or nothing that was compiled before is valid.
    copy = f"cp -r --preserve=timestamps /share/site/. {packages}"
    shell(f"mkdir -p {packages} && {copy}", seconds=300)
    write(
        "/usr/bin/fabricmon",
        "#!/usr/bin/python3\nimport sys\n\nfrom fabricmon.cli import main\n\n"
        "sys.exit(main())\n",
    )
    Path("/usr/bin/fabricmon").chmod(0o755)


def write(path: str, text: str) -> None:
    """Write a file, with its folder."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
