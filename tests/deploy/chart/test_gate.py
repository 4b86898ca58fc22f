"""The gate in the chart: opted in to, one at a time, without any right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from fabricmon.gate.settings_load import LoadedGate, load_gate
from tests.support.chart import NAMESPACE, Chart, chart
from tests.support.chart_profiles import PROFILES, merged

Json = dict[str, Any]

GATES = ["gate", "gate-acts", "gate-in-pod"]


@pytest.fixture(scope="module")
def helm() -> Chart:
    """Return the chart."""
    return chart()


def _ours(helm: Chart, profile: str, kind: str) -> Json:
    """Return the gate's object of a kind."""
    found = helm.all(kind, PROFILES[profile])
    (own,) = (e for e in found if e["metadata"]["name"] == "fabricmon-gate")
    return dict(own)


def _container(helm: Chart, profile: str) -> Json:
    (container,) = helm.gate_pod(PROFILES[profile])["containers"]
    return dict(container)


def _loaded(helm: Chart, profile: str, folder: Path) -> LoadedGate:
    """Return the configuration as the gate reads it."""
    file = folder / "gate.yaml"
    file.write_text(_ours(helm, profile, "ConfigMap")["data"]["gate.yaml"])
    return load_gate(file)


class TestOptIn:
    @pytest.mark.parametrize("profile", sorted(set(PROFILES) - set(GATES)))
    def test_nothing_of_it_without(self, helm: Chart, profile: str) -> None:
        """Whoever does not ask for a gate has none."""
        names = [e["metadata"]["name"] for e in helm.objects(PROFILES[profile])]
        assert not [name for name in names if name.endswith("-gate")]

    def test_agents_are_as_without(self, helm: Chart) -> None:
        """It changes nothing about the agents, so that it replaces none."""
        without = helm.one("DaemonSet", {"config": {"cluster": "alpha"}})
        assert helm.one("DaemonSet", PROFILES["gate"]) == without

    def test_objects(self, helm: Chart) -> None:
        """What it consists of."""
        found = helm.objects(PROFILES["gate"])
        kinds = sorted(
            each["kind"] for each in found if each["metadata"]["name"].endswith("gate")
        )
        assert kinds == [
            "ConfigMap",
            "Deployment",
            "NetworkPolicy",
            "PersistentVolumeClaim",
            "Service",
        ]


@pytest.mark.parametrize("profile", GATES)
class TestEveryGate:
    def test_one_at_a_time(self, helm: Chart, profile: str) -> None:
        """The old one has ended before a new one takes journal and budget."""
        spec = _ours(helm, profile, "Deployment")["spec"]
        assert spec["replicas"] == 1
        assert spec["strategy"] == {"type": "Recreate"}

    def test_may_do_nothing(self, helm: Chart, profile: str) -> None:
        """No root, capability, writing, token, folder of the node or new privilege."""
        pod = helm.gate_pod(PROFILES[profile])
        assert pod["securityContext"] == {
            "runAsUser": 65534,
            "runAsGroup": 65534,
            "runAsNonRoot": True,
            "fsGroup": 65534,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        assert _container(helm, profile)["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
        assert pod["automountServiceAccountToken"] is False
        assert not {"hostNetwork", "hostPID", "initContainers"} & set(pod)
        assert not [volume for volume in pod["volumes"] if "hostPath" in volume]

    def test_selectors_tell_it_from_agents(self, helm: Chart, profile: str) -> None:
        """Neither takes the other's pods for its own; the service has the gate's."""
        gate = _ours(helm, profile, "Deployment")["spec"]
        agents = helm.one("DaemonSet", PROFILES[profile])["spec"]
        own = gate["selector"]["matchLabels"]
        for one, other in ((gate, agents), (agents, gate)):
            labels = one["template"]["metadata"]["labels"]
            assert one["selector"]["matchLabels"].items() <= labels.items()
            assert not other["selector"]["matchLabels"].items() <= labels.items()
        assert _ours(helm, profile, "Service")["spec"]["selector"] == own

    def test_takes_its_configuration(
        self, helm: Chart, profile: str, tmp_path: Path
    ) -> None:
        """By its own loader; it listens where service and probes look for it."""
        config = _loaded(helm, profile, tmp_path).config
        container = _container(helm, profile)
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        (port,) = _ours(helm, profile, "Service")["spec"]["ports"]
        assert config.listen.address == f"[::]:{ports['webhook']}"
        assert (port["port"], port["targetPort"]) == (9881, "webhook")
        assert config.journal.folder == "/var/lib/fabricmon-gate"
        assert container["args"][-1] == "/etc/fabricmon/gate.yaml"

    def test_files_are_mounted(self, helm: Chart, profile: str, tmp_path: Path) -> None:
        """Every file that the configuration names lies in a mount of the pod."""
        config = _loaded(helm, profile, tmp_path).config
        listen = config.listen
        named = (
            *(listen.token_file, listen.tls_certificate, listen.tls_key),
            *(listen.client_authority, config.script.path, config.maintenance_file),
            *(config.mqtt.user_file, f"{config.journal.folder}/journal.sqlite"),
        )
        mounts = {m["mountPath"]: m for m in _container(helm, profile)["volumeMounts"]}
        for file in filter(None, named):
            assert str(Path(file).parent) in mounts, file
            assert "subPath" not in mounts[str(Path(file).parent)]

    def test_mounts_have_volumes(self, helm: Chart, profile: str) -> None:
        """Each names a volume, and only journal and /tmp can be written."""
        volumes = helm.gate_pod(PROFILES[profile])["volumes"]
        mounts = _container(helm, profile)["volumeMounts"]
        assert {m["name"] for m in mounts} == {volume["name"] for volume in volumes}
        writable = {m["mountPath"] for m in mounts if not m.get("readOnly")}
        assert writable == {"/var/lib/fabricmon-gate", "/tmp"}


class TestFeatures:
    def test_dry_run_is_the_default(self, helm: Chart, tmp_path: Path) -> None:
        """Enabled alone it looks on, in the agents' cluster, with the agents' image."""
        config = _loaded(helm, "gate", tmp_path).config
        image = helm.agent()["image"]
        assert config.act is False
        assert config.cluster == "alpha"
        assert _container(helm, "gate")["image"] == image

    def test_own_words_win(self, helm: Chart, tmp_path: Path) -> None:
        """What the values say of it is passed on, a cluster of its own too."""
        config = _loaded(helm, "gate-acts", tmp_path).config
        assert config.act is True
        assert config.caution.cluster_nodes == 1000
        assert config.choice.never_nodes == ("login*",)
        assert config.script.environment == {"PATH": "/opt/slurm/bin:/bin"}
        own = merged(PROFILES["gate"], {"gate": {"config": {"cluster": "beta"}}})
        maps = (e for e in helm.all("ConfigMap", own) if "gate.yaml" in e["data"])
        (text,) = (each["data"]["gate.yaml"] for each in maps)
        assert yaml.safe_load(text)["cluster"] == "beta"

    def test_journal_outlives_the_release(self, helm: Chart) -> None:
        """The claim stays, since it says which nodes are out."""
        claim = _ours(helm, "gate-acts", "PersistentVolumeClaim")
        assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
        assert claim["spec"]["storageClassName"] == "fast"
        assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]
        volumes = helm.gate_pod(PROFILES["gate-acts"])["volumes"]
        assert {
            "name": "journal",
            "persistentVolumeClaim": {"claimName": "fabricmon-gate"},
        } in volumes

    def test_claim_of_the_site(self, helm: Chart) -> None:
        """Then the chart makes none."""
        own = merged(PROFILES["gate"], {"gate": {"journal": {"existingClaim": "mine"}}})
        claim = {"claimName": "mine"}
        volumes = helm.gate_pod(own)["volumes"]
        assert {"name": "journal", "persistentVolumeClaim": claim} in volumes
        assert helm.all("PersistentVolumeClaim", own) == []

    def test_journal_in_the_pod(self, helm: Chart) -> None:
        """For dry runs, without a claim."""
        volumes = helm.gate_pod(PROFILES["gate-in-pod"])["volumes"]
        assert {"name": "journal", "emptyDir": {"sizeLimit": "1Gi"}} in volumes
        assert helm.all("PersistentVolumeClaim", PROFILES["gate-in-pod"]) == []

    def test_script(self, helm: Chart, tmp_path: Path) -> None:
        """It may be run, and changed by nobody, or the gate would refuse it."""
        volumes = {
            v["name"]: v for v in helm.gate_pod(PROFILES["gate-acts"])["volumes"]
        }
        assert volumes["script"]["configMap"] == {"name": "site", "defaultMode": 0o555}
        path = _loaded(helm, "gate-acts", tmp_path).config.script.path
        assert path == "/etc/fabricmon-gate-script/drain.sh"

    def test_image_of_the_site(self, helm: Chart) -> None:
        """With a shell and what the script needs; pulled as the agents' is."""
        container = _container(helm, "gate-acts")
        assert container["image"] == "registry.example/gate:7"
        digest = {"gate": {"image": {"digest": f"sha256:{'1' * 64}"}}}
        own = merged(PROFILES["gate-acts"], digest)
        (pinned,) = helm.gate_pod(own)["containers"]
        assert pinned["image"] == f"registry.example/gate@sha256:{'1' * 64}"
        pod = helm.gate_pod(PROFILES["gate-acts"])
        assert pod["imagePullSecrets"] == [{"name": "pull"}]

    def test_probes(self, helm: Chart) -> None:
        """Where clients need certificates, health has a port without."""
        for profile, told in (
            ("gate", {"port": "webhook", "scheme": "HTTP"}),
            ("gate-in-pod", {"port": "webhook", "scheme": "HTTPS"}),
            ("gate-acts", {"port": "health", "scheme": "HTTP"}),
        ):
            container = _container(helm, profile)
            live, ready = (container[f"{n}Probe"] for n in ("liveness", "readiness"))
            assert live["httpGet"] == told | {"path": "/healthz"}
            assert ready["httpGet"] == told | {"path": "/readyz"}

    def test_network_policy(self, helm: Chart) -> None:
        """There unless turned off; about the gate's pod and its webhook alone."""
        policy = _ours(helm, "gate-acts", "NetworkPolicy")["spec"]
        selector = _ours(helm, "gate-acts", "Deployment")["spec"]["selector"]
        given = PROFILES["gate-acts"]["gate"]["networkPolicy"]
        assert policy["podSelector"] == selector
        assert policy["ingress"] == [
            {"ports": [{"port": "webhook", "protocol": "TCP"}], "from": given["from"]}
        ]
        assert policy["egress"] == given["egress"]
        assert policy["policyTypes"] == ["Ingress", "Egress"]
        names = {
            each["metadata"]["name"]
            for each in helm.all("NetworkPolicy", PROFILES["gate-in-pod"])
        }
        assert names == {"fabricmon"}

    def test_is_scraped(self, helm: Chart) -> None:
        """By a monitor of its own, as a job of its own."""
        monitor = _ours(helm, "gate-in-pod", "PodMonitor")["spec"]
        (endpoint,) = monitor["podMetricsEndpoints"]
        selector = _ours(helm, "gate-in-pod", "Deployment")["spec"]["selector"]
        assert monitor["selector"] == selector
        assert (endpoint["port"], endpoint["scheme"]) == ("webhook", "https")
        assert endpoint["tlsConfig"] == {"serverName": "gate"}

    def test_configuration_replaces_the_gate(self, helm: Chart) -> None:
        """A change of it, and no other."""
        sums = [
            helm.one("Deployment", merged(PROFILES["gate"], more))["spec"]["template"][
                "metadata"
            ]["annotations"]["checksum/config"]
            for more in (
                {},
                {"gate": {"config": {"act": False}}},
                {"labels": {"a": "b"}},
            )
        ]
        assert sums[0] != sums[1]
        assert sums[0] == sums[2]

    def test_where_it_runs(self, helm: Chart) -> None:
        """The agents' tolerations are not its own: no job's node is wanted."""
        assert not {"tolerations", "nodeSelector"} & set(
            helm.gate_pod(PROFILES["gate"])
        )
        pod = helm.gate_pod(PROFILES["gate-acts"])
        assert pod["nodeSelector"] == {"role": "admin"}
        assert pod["tolerations"] == [{"key": "role", "operator": "Exists"}]
        assert pod["priorityClassName"] == "system-cluster-critical"

    def test_notes(self, helm: Chart) -> None:
        """They say where Alertmanager sends to, and that it is a dry run."""
        path = "fabricmon/templates/NOTES.txt"
        notes = helm.files(PROFILES["gate"])[path]
        url = f"http://fabricmon-gate.{NAMESPACE}.svc:9881/alerts"
        assert url in notes
        assert "dry run" in notes
        acting = helm.files(PROFILES["gate-acts"])[path]
        assert url.replace("http:", "https:") in acting
        assert "dry run" not in acting
        assert "gate" not in helm.files()[path]
