"""``fabricmon check --exit``: an exit status and one line, as a scheduler wants them.

It answers within a time limit, whatever hangs, and what it cannot tell it calls
unknown: that is never a reason to drain.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from fabricmon.cli import USAGE_ERROR, number_up_to
from fabricmon.cli.answers import nagios
from fabricmon.cli.deadline import within
from fabricmon.cli.document import Document
from fabricmon.errors import FabricmonError
from fabricmon.model import Verdict
from fabricmon.scheduler_advice import (
    Answer,
    Moment,
    faults,
    reason,
    reasons_to_drain,
    shortened,
    why_not_resume,
)

TIMEOUT_SECONDS = 10.0
"""Default limit: Slurm ends a HealthCheckProgram after 60 s, and marks the node."""

LONGEST_TIMEOUT = 600.0
MOST_JOB_CHARACTERS = 256

OK, PROBLEM, UNKNOWN = 0, 1, 2
"""Status of the protocol of node-problem-detector."""

_NAGIOS_UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class _Told:
    """What the look gave: the document's content, or why there is none."""

    content: dict[str, object] | None
    trouble: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    group = parser.add_argument_group(
        "for schedulers",
        "slurm: 1 and a reason if the node should take no more jobs, else 0. "
        "npd: 0 fine, 1 a fault here, 2 unknown. nagios: 0 to 3.",
    )
    group.add_argument("--exit", choices=("slurm", "npd", "nagios"))
    group.add_argument(
        "--at",
        choices=[each.value for each in Moment],
        metavar="MOMENT",
        help="of Slurm: health (the default), prolog, epilog, or resume: 0 if a node "
        "that fabricmon drained may come back",
    )
    group.add_argument(
        "--job", type=_job, metavar="ID", help="only what is on ports of this job"
    )
    group.add_argument(
        "--timeout",
        type=number_up_to(LONGEST_TIMEOUT),
        metavar="SECONDS",
        help=f"answer within so long (default {TIMEOUT_SECONDS:g})",
    )


def misuse(options: argparse.Namespace) -> str | None:
    """Return what is wrong with the arguments together."""
    if options.exit is None:
        given = (options.at, options.job, options.timeout)
        return None if given == (None, None, None) else "name a scheduler with --exit"
    if options.format is not None:
        return "give --exit or --format: each says what is printed"
    if options.exit != "slurm" and (options.at or options.job):
        return "--at and --job are for --exit slurm"
    return None


def run(
    options: argparse.Namespace, look: Callable[[], Document], *, asked: bool
) -> int:
    """Look, print one line at most, and return the status.

    ``asked`` tells that an agent should have answered: then a sample that finds
    nothing proves nothing.
    """
    if message := misuse(options):
        print(f"fabricmon check: {message}", file=sys.stderr)
        return USAGE_ERROR
    seconds = options.timeout or TIMEOUT_SECONDS
    told = _look(look, seconds)
    if told.trouble:
        print(f"fabricmon check: {told.trouble}", file=sys.stderr)
    if options.exit == "nagios":
        return _for_nagios(told)
    answer = _answer(told)
    if options.exit == "npd":
        return _for_npd(answer, told.trouble, asked=asked)
    return _for_slurm(answer, Moment(options.at or Moment.HEALTH), options.job)


def _look(look: Callable[[], Document], seconds: float) -> _Told:
    def work() -> bytes:
        try:
            return msgspec.json.encode({"content": _plain(look().content)})
        except (FabricmonError, OSError) as error:
            return msgspec.json.encode({"content": None, "trouble": str(error)})

    raw = within(seconds, work)
    if raw is None:
        return _Told(None, f"no answer within {seconds:g} s: nothing is known")
    return msgspec.json.decode(raw, type=_Told)


def _plain(content: dict[str, object]) -> dict[str, object]:
    """Return the document as any JSON reader takes it: no half surrogates."""
    text = msgspec.to_builtins(content, str_keys=True)
    return {key: _mended(value) for key, value in text.items()}


def _mended(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_mended(key): _mended(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(each) for each in value]
    return value


def _answer(told: _Told) -> Answer | None:
    """Return what is needed of the document; None for one that nobody understands."""
    if told.content is None:
        return None
    try:
        return msgspec.convert(told.content, Answer)
    except msgspec.ValidationError as error:
        print(f"fabricmon check: no answer to use: {error}", file=sys.stderr)
        return None


def _for_slurm(answer: Answer | None, moment: Moment, job: str | None) -> int:
    """Return 1 and print the reason for what takes the node out, or keeps it out."""
    if moment is Moment.RESUME:
        why = "fabricmon: unknown" if answer is None else why_not_resume(answer)
    else:
        found = () if answer is None else reasons_to_drain(answer, moment, job)
        why = reason(found) if found else None
    if why is None:
        return 0
    print(why)
    return 1


def _for_npd(answer: Answer | None, trouble: str, *, asked: bool) -> int:
    if answer is None:
        print(shortened(trouble or "no answer to use"))
        return UNKNOWN
    found = faults(answer)
    if found:
        print(reason(found))
        return PROBLEM
    if answer.verdict == Verdict.UNKNOWN.word:
        print("the fabric of this node is unknown")
        return UNKNOWN
    if asked and answer.source != "agent":
        print("no agent answers: one sample that finds nothing proves nothing")
        return UNKNOWN
    print("no fault of the fabric on this node")
    return OK


def _for_nagios(told: _Told) -> int:
    if told.content is None:
        print(f"FABRIC UNKNOWN - {shortened(told.trouble)}")
        return _NAGIOS_UNKNOWN
    verdict = Verdict[str(told.content["verdict"]).upper()]
    document = Document(told.content, verdict)
    print(nagios(document).encode("ascii", "replace").decode())
    return document.exit_status


def _job(text: str) -> str:
    if not text or len(text) > MOST_JOB_CHARACTERS or not text.isprintable():
        raise argparse.ArgumentTypeError(f"{text!r} is no job")
    return text
