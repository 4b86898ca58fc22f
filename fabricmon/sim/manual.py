"""How to write a scenario: a document made from the types and from the catalogue."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from textwrap import dedent

import msgspec

from fabricmon.sim.faults.case import DEADLINE
from fabricmon.sim.faults.catalogue import FAULTS
from fabricmon.sim.faults.row import FaultClass, Needs, Parameter, Value
from fabricmon.sim.profiles import PROFILES
from fabricmon.sim.scenario import EVERYTHING, Injection, JobPlan, Part, Scenario

_PARTS: tuple[tuple[type[Part], str], ...] = (
    (Scenario, "Scenario"),
    (JobPlan, "Job (`jobs`)"),
    (Injection, "Injection (`inject`)"),
)


def manual() -> str:
    """Return the reference of scenario files, ended by a line break."""
    return "\n".join(
        (
            _INTRODUCTION,
            *(_part(part, title) for part, title in _PARTS),
            _profiles(),
            _CLASSES,
            *(_class(row) for row in FAULTS),
        )
    )


def _part(part: type[Part], title: str) -> str:
    lines = [f"## {title}", "", "| Key | Default | Meaning |", "|---|---|---|"]
    meanings = _docstrings(part)
    for item in msgspec.structs.fields(part):
        meaning = meanings.get(item.name, "")
        lines.append(f"| `{item.name}` | {_default(item)} | {meaning} |")
    return "\n".join(lines) + "\n"


def _docstrings(part: type[Part]) -> dict[str, str]:
    """Return the text beneath each key, as one line."""
    body = ast.parse(dedent(inspect.getsource(part))).body[0]
    found: dict[str, str] = {}
    if not isinstance(body, ast.ClassDef):
        return found
    for here, below in zip(body.body, body.body[1:], strict=False):
        if isinstance(here, ast.AnnAssign) and isinstance(here.target, ast.Name):
            text = _text(below)
            if text is not None:
                found[here.target.id] = _plain(text)
    return found


def _text(node: ast.stmt) -> str | None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        value = node.value.value
        return value if isinstance(value, str) else None
    return None


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|")


def _default(item: msgspec.structs.FieldInfo) -> str:
    if item.required:
        return "required"
    if item.default_factory is not msgspec.NODEFAULT or item.default == ():
        return "none"
    if item.default == EVERYTHING:
        return "all"
    if isinstance(item.default, tuple) and isinstance(item.default[0], msgspec.Struct):
        return "one job on all nodes"
    return f"`{_value(item.default)}`"


def _value(value: object) -> str:
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(_value(each) for each in value)}]"
    if isinstance(value, bool) or value is None:
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def _profiles() -> str:
    lines = ["## Profiles", "", "| Profile | Rails | Line rate | Network |"]
    lines.append("|---|---|---|---|")
    for name, profile in PROFILES.items():
        rails = sum(len(slot.used) for slot in profile.compute)
        card = profile.compute[0].card
        lines.append(f"| `{name}` | {rails} | {card.gbps} Gb/s | {card.layer} |")
    return "\n".join(lines) + "\n"


def _class(row: FaultClass) -> str:
    """Return one class: what answers it, what shows it, its parameters."""
    lines = [f"### {row.id} {row.title}", "", _doc(row), ""]
    lines += list(_facts(row))
    if row.parameters:
        lines += ["", "| Parameter | Default | Bounds | Known | Scaled | Meaning |"]
        lines.append("|---|---|---|---|---|---|")
        lines += [_row(each) for each in row.parameters]
    return "\n".join(lines) + "\n"


def _doc(row: FaultClass) -> str:
    """Return what happens: the docstring without its class at the front."""
    text = (row.make.__doc__ or "").split("\n\n")[0]
    text = " ".join(text.split()).removeprefix(f"{row.id}: ")
    if text == " ".join(text.split()) and text.startswith("Return nothing"):
        text = "only the scenario's jobs say what is done."
    return text[:1].upper() + text[1:]


def _facts(row: FaultClass) -> Iterator[str]:
    if row.is_negative:
        right = "nothing above information" if row.silent else "nobody is blamed"
        yield f"- right: {right}"
    else:
        yield f"- answered by: {', '.join(f'`{kind}`' for kind in row.accept)}"
        yield f"- deadline: at most {row.deadline:g} s after the signature is complete"
        yield f"- seen by: {_needs(row.needs)}"
        if row.by_traffic:
            yield "- needs traffic: of an idle place nothing is seen"
        if row.by_vote:
            yield "- needs a vote over nodes (`peers`)"
    yield f"- group: {row.group.replace('_', ' ')}; network: {row.fabric}"


def _needs(needs: Needs) -> str:
    if () in needs:
        return "nothing that a node can read"
    return " and ".join(" or ".join(f"`{each}`" for each in group) for group in needs)


def _row(parameter: Parameter) -> str:
    unit = f" {parameter.unit}" if parameter.unit not in {"", "1"} else ""
    cells = (
        f"`{parameter.name}`",
        f"`{_value(parameter.default)}`{unit}",
        _bounds(parameter),
        parameter.known.value,
        parameter.scaling.value,
        parameter.meaning,
    )
    return f"| {' | '.join(cells)} |"


def _bounds(parameter: Parameter) -> str:
    default: Value = parameter.default
    if isinstance(default, bool):
        return "true, false"
    if isinstance(default, str):
        return ", ".join(f"`{word}`" for word in parameter.words) or "any text"
    high = "" if parameter.high == float("inf") else f" to {parameter.high:g}"
    return f"{parameter.low:g}{high or ' and more'}"


_INTRODUCTION = f"""# Scenarios

Made by `python -m fabricmon.documentation scenarios`; do not edit.

A scenario is a YAML file that says which machines there are, what jobs they run, what
breaks, and what an agent may read of it. `fabricmon simulate NAME --out FOLDER` writes
one trace for each node, and the truth, from it; `fabricmon simulate --list` shows the
shipped ones. The same scenario and seed give the same traces.

```yaml
# What happens, and what a good monitor says of it.
name: slow-lanes
summary: A device loses PCIe lanes under a job
profile: H100-RoCE-8x400-DCQCN
nodes: 4
duration: 1200
jobs:
  - step: [4, 6]
inject:
  - what: F20
    node: 1
    rail: 2
    onset: [300, 420]
    parameters: {{lanes: 8}}
```

Times are seconds from the start; nodes and rails count from 0. Where a magnitude is
asked for, one number means just that, and two (`[low, high]`) a draw between them,
uniform in the logarithm. What an injection leaves out is drawn: the node, the rail, the
magnitudes. `sights` is a mask: what is not named is not written. There are:
{", ".join(f"`{sight}`" for sight in EVERYTHING)}.

A fault is marked as not visible, so that to abstain is right, where the mask hides its
signature, where the profile's devices have no such counter, where no job uses the place
while it lasts although the signature needs traffic, or where a maintenance window
outlasts it. Its deadline counts from when the signature is complete: from the first
traffic, and after a window.

A `tag` of the form `pair:NAME` stands in the two files of a pair that look alike. A
scenario with `negative: true` holds nothing that may be told at warning or above.
"""

_CLASSES = f"""## Classes

The catalogue: faults `F..` and hard negatives `N..`. The default of a parameter is the
range that the class is known in. `Known` says how well: S documented by a source, D
derived by arithmetic, E an engineering estimate that hardware has yet to confirm.
`Scaled` says what becomes of it where a whole scenario is made stronger or weaker.
`Seen by` names sights, counters by what they count, and `state` for state files that
tell of the link.

Every fault also takes `{DEADLINE}`: seconds, in place of its own.
"""
