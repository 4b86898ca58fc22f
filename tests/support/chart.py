"""Helm as a library: the one place that knows which one."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.programs import MISSING

CHART = Path(__file__).parent.parent.parent / "deploy" / "helm" / "fabricmon"
NAMESPACE = "monitoring"
RELEASE = "fabricmon"

Json = dict[str, Any]


class RefusedError(Exception):
    """Helm will not have these values, or the chart says why not."""


class Chart:
    """The chart, loaded once."""

    def __init__(self) -> None:
        """Load it, or skip and say what is missing."""
        reason = f"{MISSING}helm-python-sdk (pip install --group chart)"
        self._helm = pytest.importorskip("helm_python", reason=reason)
        self._chart = self._helm.Chart.load(CHART)

    def files(self, values: Json | None = None, name: str = RELEASE) -> dict[str, str]:
        """Return what each template gives; raises `RefusedError`."""
        try:
            found = self._chart.render(values or {}, name=name, namespace=NAMESPACE)
        except self._helm.HelmError as error:
            raise RefusedError(str(error)) from None
        return dict(found)

    def objects(self, values: Json | None = None, name: str = RELEASE) -> list[Json]:
        """Return every object of these values; raises `RefusedError`."""
        found = []
        for path, text in self.files(values, name).items():
            if path.endswith(".yaml"):
                loaded = yaml.load_all(text, yaml.CSafeLoader)  # safe, and quick
                found += [each for each in loaded if each]
        return found

    def one(self, kind: str, values: Json | None = None) -> Json:
        """Return the only object of a kind."""
        (found,) = self.all(kind, values)
        return found

    def all(self, kind: str, values: Json | None = None) -> list[Json]:
        """Return the objects of a kind."""
        return [each for each in self.objects(values) if each["kind"] == kind]

    def pod(self, values: Json | None = None) -> Json:
        """Return the specification of the agent's pod."""
        spec: Json = self.one("DaemonSet", values)["spec"]["template"]["spec"]
        return spec

    def agent(self, values: Json | None = None) -> Json:
        """Return the agent's container."""
        (container,) = self.pod(values)["containers"]
        return dict(container)

    def gate_pod(self, values: Json) -> Json:
        """Return the specification of the gate's pod."""
        spec: Json = self.one("Deployment", values)["spec"]["template"]["spec"]
        return spec

    def lint(self, values: Json | None = None, version: str = "1.30.0") -> list[str]:
        """Return what a strict lint says."""
        found = self._helm.lint(
            CHART, values or {}, strict=True, namespace=NAMESPACE, kube_version=version
        )
        return [str(each) for each in found.get("messages") or [] if _is_bad(each)]


def _is_bad(message: Any) -> bool:
    severity = message.get("severity") if isinstance(message, dict) else message
    return str(severity).upper() not in {"INFO", "UNKNOWN", "0", "1"}


@cache
def chart() -> Chart:
    """Return the chart, loaded once a process."""
    return Chart()
