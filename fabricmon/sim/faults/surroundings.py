"""Negatives around the fabric: warm rooms and what logs are full of."""

from __future__ import annotations

from fabricmon.sim.effects import Effect, KernelLines, LogLines, Made, ModuleReading
from fabricmon.sim.faults.case import Case, case_of
from fabricmon.sim.faults.nccl_text import aborted, line
from fabricmon.sim.faults.row import FaultClass, Group, Parameter
from fabricmon.sim.planning import Draw, Plan
from fabricmon.sim.scenario import Injection

_USUAL_DEGREES = 54.0
_STEP_SECONDS = 60.0
_FORGED = (
    "mlx5_core ../../etc/passwd: Port module event: module 0, Cable unplugged",
    'mlx5_core 0000:ff:1f.7 {device="x",y="\\": Link down',
    "pcieport : AER: " + "A" * 4000,
)


def warm_room(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N41: the modules of a rack get warmer together."""
    case = case_of(WARM, injection, plan, draw)
    nodes = injection.nodes or plan.rack(case.node())
    rise, ramp = case.number("rise"), case.number("ramp")
    steps = max(round(ramp / _STEP_SECONDS), 1)
    ports = [port for node in nodes for port in case.rails_of(node)]
    effects: list[Effect] = []
    for port in ports:
        own = _USUAL_DEGREES + draw.uniform(-3, 3)
        for step in range(steps + 1):
            at = case.onset + ramp * step / steps
            if at < case.until:
                degrees = round(own + rise * step / steps, 1)
                effects.append(ModuleReading(port, at, degrees))
    return Made(tuple(effects), (), (), case.spared(ports))


def noisy_log(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N44: a user interrupts, starts again, and sets retries low."""
    case = case_of(NOISE, injection, plan, draw)
    node = case.node()
    name = plan.node_name(node)
    effects: list[Effect] = []
    for at in case.events(case.number("every"), 200):
        gpu = draw.pick(range(8))
        text = aborted(name, gpu) + line(
            name, gpu, "INFO", "NCCL_IB_RETRY_CNT set by environment to 1."
        )
        effects.append(LogLines(node, at, text))
    return _quiet(case, effects, node)


def hostile_log(injection: Injection, plan: Plan, draw: Draw) -> Made:
    """N45: bytes that are no text, a line without end, forged names."""
    case = case_of(HOSTILE, injection, plan, draw)
    node = case.node()
    gpu, name = draw.pick(range(8)), plan.node_name(node)
    forged = line(
        name, gpu, "WARN", 'NET/IB : ../../x"}\\:1 Got async event : port error'
    )
    texts = (
        "\0\0\0\x1b[2J NCCL WARN \udcff\udcfe\n",
        "NCCL WARN NET/IB : " + "x" * case.whole("length") + "\n",
        forged[: len(forged) // 2],
        "\r\n\v\f NCCL\n" + forged.replace(name, "\0" * 8),
    )
    effects: list[Effect] = [
        LogLines(node, min(case.onset + 5.0 * number, plan.duration), text)
        for number, text in enumerate(texts)
    ]
    effects.append(KernelLines(node, case.onset, _FORGED))
    return _quiet(case, effects, node)


def _quiet(case: Case, effects: list[Effect], node: int) -> Made:
    return Made(tuple(effects), (), (), case.spared(case.rails_of(node)))


WARM = FaultClass(
    "N41", "Warm room", Group.LINK, warm_room,
    parameters=(
        Parameter("rise", (4, 8), "°C", "By how much", high=12),
        Parameter("ramp", (600, 1800), "s", "Time in which it gets there", low=60),
    ),
)  # fmt: skip
NOISE = FaultClass(
    "N44", "Noise in the log of NCCL", Group.NOT_NETWORK, noisy_log,
    parameters=(
        Parameter("every", (20, 120), "s", "Mean time between bursts", low=1),
    ),
)  # fmt: skip
HOSTILE = FaultClass(
    "N45", "Hostile or garbled input", Group.NOT_NETWORK, hostile_log,
    parameters=(
        Parameter("length", (1e5, 1e6), "1", "Characters of the long line", high=2e7),
    ),
)  # fmt: skip

ROWS = (WARM, NOISE, HOSTILE)
