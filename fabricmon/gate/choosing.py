"""Which findings can be acted on at all, whatever else holds. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from fabricmon.fusion import LOCAL
from fabricmon.gate.decision import Reason
from fabricmon.gate.report import NODE, Report, word
from fabricmon.gate.settings import GateConfig
from fabricmon.kinds import BY_SLUG
from fabricmon.model import Part

Refusal = tuple[Reason, str]


def refusal(report: Report, config: GateConfig) -> Refusal | None:
    """Say why a finding can never be acted on as it stands, None if it can."""
    return _whom(report, config) or _what(report, config)


def is_named(node: str, patterns: Iterable[str]) -> bool:
    """Tell whether a node is among patterns with ``*`` and ``?``."""
    return any(fnmatchcase(node, pattern) for pattern in patterns)


def _whom(report: Report, config: GateConfig) -> Refusal | None:
    node = report.node
    if report.origin != "node":
        return Reason.ORIGIN, "a comparison of nodes proves nothing at one of them"
    if node is None or NODE.fullmatch(node) is None:
        return Reason.NODE_NAME, "no name of a node"
    if config.cluster is not None and report.cluster != config.cluster:
        return Reason.CLUSTER, f"of cluster {word(report.cluster)}"
    choice = config.choice
    if not is_named(node, choice.nodes) or is_named(node, choice.never_nodes):
        return Reason.NODE, "not among the nodes to act on"
    return None


def _what(report: Report, config: GateConfig) -> Refusal | None:
    finding, choice = report.finding, config.choice
    kind = BY_SLUG.get(finding.kind)
    is_sure = kind is not None and kind.proof in LOCAL
    wanted = (
        (is_sure and finding.kind in choice.kinds, Reason.KIND, finding.kind),
        (finding.role == Part.CULPRIT.value, Reason.ROLE, finding.role),
        (not finding.dry_run, Reason.SHADOW, "the kind is in shadow on that node"),
        (report.noticed, Reason.NOTICE, "neither page nor ticket"),
        (finding.severity in choice.severities, Reason.SEVERITY, finding.severity),
        (finding.action in choice.actions, Reason.ACTION, finding.action),
    )
    return next(((why, word(text)) for holds, why, text in wanted if not holds), None)
