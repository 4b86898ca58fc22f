"""Read scenario files: of the package, or of one's own."""

from __future__ import annotations

import difflib
import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from fabricmon.errors import ConfigError
from fabricmon.sim import faults
from fabricmon.sim.profiles import PROFILES
from fabricmon.sim.scenario import Injection, JobPlan, Part, Scenario
from fabricmon.text_file import read_text
from fabricmon.yaml_text import Document, parse, placed

MAX_BYTES = 1 << 20
"""Size of one file."""

SUFFIXES = (".yaml", ".yml")
_PATH = re.compile(r" - at `\$\.?(?P<path>[^`]{0,200})`$")
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]{0,200})`")


def shipped() -> tuple[str, ...]:
    """Return the names of the scenarios of the package, sorted."""
    folder = _folder()
    if not folder.is_dir():
        return ()
    return tuple(
        sorted(
            each.name.removesuffix(".yaml")
            for each in folder.iterdir()
            if each.name.endswith(".yaml")
        )
    )


def load(name: str) -> Scenario:
    """Return a scenario by its name, or by the path of its file.

    Raises:
        ConfigError: There is none, or it cannot be used; says where and what to do.
    """
    if "/" in name or name.endswith(SUFFIXES):
        return load_file(Path(name))
    if name not in shipped():
        close = difflib.get_close_matches(name, shipped(), n=3)
        known = f"did you mean {' or '.join(close)}?" if close else "see --list"
        raise ConfigError(f"no scenario is called {name!r:.80}", remedy=known)
    file = _folder() / f"{name}.yaml"
    return read(file.read_text("utf-8"), f"{name}.yaml")


def load_file(path: Path) -> Scenario:
    """Return the scenario in a file; raises `ConfigError`."""
    text = read_text(path, MAX_BYTES, "name a file that can be read")
    return read(text, str(path))


def read(text: str, file: str) -> Scenario:
    """Return the scenario that a text describes; raises `ConfigError`."""
    document = parse(text, file)
    try:
        scenario = msgspec.convert(document.tree, Scenario)
        check(scenario)
    except msgspec.ValidationError as error:
        raise _explain(str(error), document, file) from None
    except ConfigError as error:
        raise placed(error, document, file) from None
    return scenario


def check(scenario: Scenario) -> None:
    """Raise `ConfigError` for what the types alone do not tell."""
    if scenario.profile not in PROFILES:
        raise ConfigError(
            f"{scenario.profile!r:.80} is no profile",
            key="profile",
            remedy=f"write {', '.join(PROFILES)}",
        )
    if not 0 < scenario.duration <= _LONGEST:
        raise ConfigError(
            f"{scenario.duration:g} is no duration",
            key="duration",
            remedy=f"write seconds, {_LONGEST:g} at most",
        )
    seen: set[str] = set()
    for number, job in enumerate(scenario.jobs):
        _check_job(scenario, job, f"jobs[{number}]")
        if job.id in seen:
            raise ConfigError("stands twice", key=f"jobs[{number}].id")
        seen.add(job.id)
    for number, injection in enumerate(scenario.inject):
        _check_injection(scenario, injection, f"inject[{number}]")
    faults.check(scenario)


_LONGEST = 400 * 86400.0  # more than a year is no scenario, but a slip


def _check_job(scenario: Scenario, job: JobPlan, key: str) -> None:
    profile = PROFILES[scenario.profile]
    rails = sum(len(slot.used) for slot in profile.compute)
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", job.id):
        remedy = "use letters, digits, dots and hyphens: it names the job's log"
        raise ConfigError(f"{job.id!r:.80} is no id", key=f"{key}.id", remedy=remedy)
    for name, numbers, many in (
        ("nodes", job.nodes, scenario.nodes),
        ("rails", job.rails, rails),
    ):
        if numbers is None:
            continue
        _check_numbers(f"{key}.{name}", numbers, many)
        if not numbers:
            raise ConfigError("is empty", key=f"{key}.{name}", remedy="leave it out")
        if len(set(numbers)) < len(numbers):
            raise ConfigError("names one twice", key=f"{key}.{name}")
    if not 0 <= job.start <= _LONGEST:
        raise ConfigError("cannot be before 0", key=f"{key}.start")
    if not (1 <= job.timeout <= _MOST_TIMEOUT and 1 <= job.retries <= _MOST_RETRIES):
        message = "timeout goes from 1 to 31 and retries from 1 to 7, as in NCCL"
        raise ConfigError(message, key=f"{key}.timeout")
    _check_magnitudes(job, key)


_MOST_TIMEOUT, _MOST_RETRIES = 31, 7  # five and three bits in a queue pair


def _check_magnitudes(job: JobPlan, key: str) -> None:
    most = {"communication": 0.95, "load": 1.0}
    for name in ("init", "step", "communication", "load", "checkpoint", "pause",
                 "checkpoint_every", "pauses_every"):  # fmt: skip
        value = getattr(job, name)
        if value is None:
            continue
        ends = value if isinstance(value, tuple) else (value, value)
        limit = most.get(name, _LONGEST)
        if not 0 < ends[0] <= ends[1] <= limit:
            raise ConfigError(
                f"{list(ends)} is no range of {name}",
                key=f"{key}.{name}",
                remedy=f"write a number above 0, {limit:g} at most, or two, small first",
            )


def _check_injection(scenario: Scenario, injection: Injection, key: str) -> None:
    given = [each for each in (injection.node, injection.peer) if each is not None]
    _check_numbers(f"{key}.node", (*given, *(injection.nodes or ())), scenario.nodes)
    if injection.rail is not None:
        profile = PROFILES[scenario.profile]
        rails = sum(len(slot.used) for slot in profile.compute)
        _check_numbers(f"{key}.rail", (injection.rail,), rails)
    devices = [slot.device for slot in PROFILES[scenario.profile].slots]
    if injection.device is not None and injection.device not in devices:
        raise ConfigError(
            f"{injection.device!r:.80} is no device of {scenario.profile}",
            key=f"{key}.device",
            remedy=f"write {', '.join(devices)}",
        )


def _check_numbers(key: str, numbers: tuple[int, ...], many: int) -> None:
    wrong = next((number for number in numbers if not 0 <= number < many), None)
    if wrong is not None:
        message = f"there is no number {wrong}"
        raise ConfigError(message, key=key, remedy=f"write 0 to {many - 1}")


def _explain(message: str, document: Document, file: str) -> ConfigError:
    place = _PATH.search(message)
    key = place["path"] if place else ""
    text = message[: place.start()] if place else message
    remedy = None
    if unknown := _UNKNOWN.search(text):
        name, text = unknown["name"], "no such key"
        known = _keys(key)
        close = difflib.get_close_matches(name, known, n=1)
        remedy = f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"
        key = f"{key}.{name}" if key else name
    else:
        text = text[:1].lower() + text[1:]
    error = ConfigError(text, key=key or None, remedy=remedy)
    return placed(error, document, file)


def _keys(place: str) -> list[str]:
    part: type[Part] = Scenario
    if place.startswith("jobs"):
        part = JobPlan
    elif place.startswith("inject"):
        part = Injection
    return [item.name for item in msgspec.structs.fields(part)]


def _folder() -> Traversable:
    return files("fabricmon").joinpath("sim", "scenarios")
