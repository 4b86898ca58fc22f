"""What a real API server makes of the chart: strict fields, policies, Pod Security."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.chart import NAMESPACE, Chart, chart
from tests.support.chart_profiles import PROFILES
from tests.support.kube_real import RealApi
from tests.support.servers import wait_until

Json = dict[str, Any]

pytestmark = pytest.mark.server

ACCOUNT = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/fabricmon/token"
STRATEGIC = "application/strategic-merge-patch+json"
OURS = {"type": "FabricHealthy", "status": "True", "reason": "R"}
SOON = 20.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    """Return a server with a namespace for the chart."""
    server = RealApi(tmp_path_factory.mktemp("kube"))
    try:
        server.start()
        server.apply(_namespace("privileged"))
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def helm() -> Chart:
    """Return the chart."""
    return chart()


def _namespace(level: str) -> str:
    labels = {"pod-security.kubernetes.io/enforce": level}
    metadata = {"name": NAMESPACE, "labels": labels}
    return yaml.safe_dump(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    )


@pytest.fixture(scope="module")
def token(helm: Chart, cluster: RealApi) -> str:
    """Return the token of an agent on the node n1, as the kubelet would."""
    values = PROFILES["kubernetes"]
    cluster.apply(yaml.safe_dump_all(helm.objects(values)))
    for name in ("n1", "n2"):
        cluster.add_node(name)
    pod = helm.pod(values) | {"nodeName": "n1"}
    made = _create_pod(cluster, pod, "agent", dry=False)
    reference = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "agent",
        "uid": made["metadata"]["uid"],
    }
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"boundObjectRef": reference},
    }
    answer = cluster.ask("POST", ACCOUNT, request)
    found: str = answer["status"]["token"]
    wait_until(lambda: _is_refused(cluster, found, "n1"), SOON, "the policy holds")
    return found


class TestObjects:
    @pytest.mark.parametrize("profile", PROFILES)
    def test_server_takes_all(
        self, helm: Chart, cluster: RealApi, profile: str
    ) -> None:
        """Each profile is applied, with no field that the server does not know."""
        found = helm.objects(PROFILES[profile])
        known = [e for e in found if not e["apiVersion"].startswith("monitoring.")]
        # Dry: of two profiles no claim could become that of the other.
        cluster.apply(yaml.safe_dump_all(known), dry=True)

    @pytest.mark.parametrize(
        ("level", "refusal"),
        [("baseline", "hostPath volumes"), ("restricted", "restricted volume types")],
    )
    def test_level_that_pods_need(
        self, helm: Chart, cluster: RealApi, level: str, refusal: str
    ) -> None:
        """Only "privileged" allows folders of the node; all else fits "restricted"."""
        cluster.apply(_namespace(level))
        try:
            with pytest.raises(AssertionError, match=refusal) as error:
                _create_pod(cluster, helm.pod())
        finally:
            cluster.apply(_namespace("privileged"))
        told = json.loads(str(error.value))["message"]
        reasons = told.partition(": ")[2]
        assert set(reasons.split("), ")) == {reasons}, "there are more reasons"

    @pytest.mark.parametrize("profile", ["gate", "gate-acts", "gate-in-pod"])
    def test_gate_fits_restricted(
        self, helm: Chart, cluster: RealApi, profile: str
    ) -> None:
        """The gate's pod is one of the strictest level; only the agents' are not."""
        cluster.apply(_namespace("restricted"))
        try:
            _create_pod(cluster, helm.gate_pod(PROFILES[profile]), "gate")
        finally:
            cluster.apply(_namespace("privileged"))

    def test_privileged_level_is_enough(self, helm: Chart, cluster: RealApi) -> None:
        """For every profile."""
        for number, values in enumerate(PROFILES.values()):
            _create_pod(cluster, helm.pod(values), f"pod-{number}")


class TestRights:
    def test_own_condition(self, cluster: RealApi, token: str) -> None:
        """It may set it."""
        _patch(cluster, token, "n1", OURS)
        assert "FabricHealthy" in cluster.node_conditions("n1")
        _patch(cluster, token, "n1", {"$patch": "delete", "type": "FabricHealthy"})
        assert "FabricHealthy" not in cluster.node_conditions("n1")

    def test_node_of_another(self, cluster: RealApi, token: str) -> None:
        """RBAC would let it."""
        with pytest.raises(AssertionError, match="the node that it runs on"):
            _patch(cluster, token, "n2", OURS)

    @pytest.mark.parametrize("name", ["Ready", "MemoryPressure"])
    def test_condition_of_another(
        self, cluster: RealApi, token: str, name: str
    ) -> None:
        """Neither one that is there nor a new one."""
        with pytest.raises(AssertionError, match="only set the condition"):
            _patch(cluster, token, "n1", OURS | {"type": name, "status": "False"})

    def test_rest_of_the_status(self, cluster: RealApi, token: str) -> None:
        """A false capacity would move pods."""
        with pytest.raises(AssertionError, match="only set the condition"):
            _patch_status(cluster, token, "n1", {"capacity": {"cpu": "1000"}})

    @pytest.mark.parametrize(
        "status",
        [
            {"volumesAttached": [{"name": "v", "devicePath": "d"}]},
            {"volumesInUse": ["v"]},
            {"images": [{"names": ["i"], "sizeBytes": 1}]},
            {"nodeInfo": {"kubeletVersion": "v0"}},
            {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}},
            {"phase": "Terminated"},
            {"runtimeHandlers": [{"name": "r"}]},
        ],
        ids=lambda status: str(next(iter(status))),
    )
    def test_every_other_field(
        self, cluster: RealApi, token: str, status: Json
    ) -> None:
        """Volumes that look attached, another port of the kubelet: nothing of it."""
        with pytest.raises(AssertionError, match="only set the condition"):
            _patch_status(cluster, token, "n1", status)

    @pytest.mark.parametrize("what", ["labels", "annotations"])
    def test_what_a_node_is_called(
        self, cluster: RealApi, token: str, what: str
    ) -> None:
        """A patch of the status may change labels, by which pods find their nodes."""
        patch = {"metadata": {what: {"node-role.kubernetes.io/x": "y"}}}
        with pytest.raises(AssertionError, match="only set the condition"):
            cluster.ask("PATCH", "/api/v1/nodes/n1/status", patch, STRATEGIC, token)

    @pytest.mark.parametrize(
        "path",
        ["/api/v1/nodes/n1", "/api/v1/nodes", "/api/v1/secrets", "/api/v1/pods"],
    )
    def test_reads_nothing(self, cluster: RealApi, token: str, path: str) -> None:
        """Not even its node, which an empty patch shows."""
        with pytest.raises(AssertionError, match="forbidden"):
            cluster.ask("GET", path, token=token)
        _patch_status(cluster, token, "n1", {})


def _create_pod(
    cluster: RealApi, spec: Json, name: str = "pod", *, dry: bool = True
) -> Json:
    """Create a pod as the controller of daemon sets does."""
    metadata = {"name": name, "namespace": NAMESPACE}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    query = "?fieldValidation=Strict" + ("&dryRun=All" if dry else "")
    return cluster.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/pods{query}", pod)


def _patch(cluster: RealApi, token: str, node: str, condition: Json) -> None:
    _patch_status(cluster, token, node, {"conditions": [condition]})


def _patch_status(cluster: RealApi, token: str, node: str, status: Json) -> None:
    path = f"/api/v1/nodes/{node}/status"
    cluster.ask("PATCH", path, {"status": status}, STRATEGIC, token)


def _is_refused(cluster: RealApi, token: str, node: str) -> bool:
    """Tell whether the policy is in force: the server takes a moment to read it."""
    # Anew each time: what got through before it is no change after, and refused never.
    other = {"type": "Other", "status": "True", "reason": f"At{time.monotonic_ns()}"}
    try:
        _patch(cluster, token, node, other)
    except AssertionError as error:
        return "only set the condition" in str(error)
    return False
