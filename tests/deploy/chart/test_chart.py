"""Every profile of the chart renders to what Kubernetes takes; wrong values are named."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import ValidationError

from fabricmon import __version__
from fabricmon.config import Config
from tests.support.chart import CHART, Chart, chart
from tests.support.chart_profiles import PROFILES, ROOT, loaded, merged
from tests.support.kube_real import CONDITION_RULES, EVENT_RULES
from tests.support.kube_schemas import check, versions

Json = dict[str, Any]


@pytest.fixture(scope="module")
def helm() -> Chart:
    """Return the chart."""
    return chart()


class TestMatrix:
    @pytest.mark.parametrize("profile", PROFILES)
    def test_objects_are_valid(self, helm: Chart, profile: str) -> None:
        """For every Kubernetes from the oldest supported to the newest known."""
        found = helm.objects(PROFILES[profile])
        for version, each in itertools.product(versions(), found):
            check(each, version)

    def test_pairs_are_valid(self, helm: Chart) -> None:
        """No two profiles get in each other's way in the one object that all change."""
        newest = versions()[-1]
        for one, other in itertools.combinations(PROFILES.values(), 2):
            check(helm.one("DaemonSet", merged(one, other)), newest)

    @pytest.mark.parametrize("profile", PROFILES)
    def test_lint_is_silent(self, helm: Chart, profile: str) -> None:
        """Also when it is strict."""
        assert helm.lint(PROFILES[profile]) == []

    @pytest.mark.parametrize("profile", PROFILES)
    def test_agent_takes_its_configuration(
        self, helm: Chart, profile: str, tmp_path: Path
    ) -> None:
        """File and environment, by the agent's own loader."""
        config = loaded(helm, PROFILES[profile], tmp_path).config
        assert config.node == "123"
        assert config.root == "/host"
        assert config.listen.metrics == "[10.0.0.7]:9879"

    @pytest.mark.parametrize("profile", PROFILES)
    def test_mounts_have_volumes(self, helm: Chart, profile: str) -> None:
        """Each mount names a volume, and no volume is there for nothing."""
        pod = helm.pod(PROFILES[profile])
        all_ = [*pod["containers"], *pod.get("initContainers", ())]
        mounted = {m["name"] for each in all_ for m in each["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["volumes"]}

    @pytest.mark.parametrize("profile", PROFILES)
    def test_node_is_never_written_to(self, helm: Chart, profile: str) -> None:
        """Folders of the node are read-only, but for the agent's own two."""
        pod, agent = helm.pod(PROFILES[profile]), helm.agent(PROFILES[profile])
        own = {"state", "run"}
        host = {v["name"] for v in pod["volumes"] if "hostPath" in v} - own
        for mount in agent["volumeMounts"]:
            if mount["name"] in host:
                assert mount["readOnly"] is True
                assert mount["mountPath"].startswith("/host/")

    @pytest.mark.parametrize("profile", PROFILES)
    def test_selector_never_changes(self, helm: Chart, profile: str) -> None:
        """A selector cannot be changed, so no version may be in it."""
        selector = helm.one("DaemonSet", PROFILES[profile])["spec"]["selector"]
        names = {"app.kubernetes.io/name", "app.kubernetes.io/instance"}
        assert set(selector["matchLabels"]) == names

    def test_checks_bite(self, helm: Chart) -> None:
        """A misspelt field is found in what Kubernetes and the operator define."""
        daemonset = helm.one("DaemonSet")
        daemonset["spec"]["template"]["spec"]["hostNetz"] = True
        with pytest.raises(Exception, match="hostNetz"):
            check(daemonset, versions()[0])
        monitor = helm.one("PodMonitor", PROFILES["monitoring"])
        monitor["spec"]["podMetricsEndpoints"][0]["intervals"] = "15s"
        with pytest.raises(ValidationError, match="intervals"):
            check(monitor, versions()[0])


class TestDefaults:
    def test_may_do_nothing(self, helm: Chart) -> None:
        """No root, no capability, no writing, no token, no new privilege."""
        pod, agent = helm.pod(), helm.agent()
        assert pod["securityContext"] == {
            "runAsUser": 65534,
            "runAsGroup": 65534,
            "runAsNonRoot": True,
            "fsGroup": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        assert agent["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
        assert pod["automountServiceAccountToken"] is False
        assert not {"hostNetwork", "hostPID", "initContainers"} & set(pod)

    def test_sees_sys_alone(self, helm: Chart) -> None:
        """No log, no device, no process of the node."""
        volumes = helm.pod()["volumes"]
        host = [each["hostPath"]["path"] for each in volumes if "hostPath" in each]
        assert host == ["/sys"]

    def test_makes_what_it_needs(self, helm: Chart) -> None:
        """Everything else is opted in to."""
        kinds = sorted(each["kind"] for each in helm.objects())
        assert kinds == ["ConfigMap", "DaemonSet", "ServiceAccount"]

    def test_runs_everywhere(self, helm: Chart) -> None:
        """No taint keeps it away, and it is updated a tenth at a time."""
        daemonset = helm.one("DaemonSet")
        pod = daemonset["spec"]["template"]["spec"]
        assert pod["tolerations"] == [{"operator": "Exists"}]
        update = daemonset["spec"]["updateStrategy"]["rollingUpdate"]
        assert update == {"maxUnavailable": "10%"}
        assert "resources" not in helm.agent()
        assert "priorityClassName" not in pod

    def test_probes(self, helm: Chart) -> None:
        """The agent's own paths, on the port of the metrics."""
        agent = helm.agent()
        live, ready = (agent[f"{name}Probe"] for name in ("liveness", "readiness"))
        told = {"port": "metrics", "scheme": "HTTP"}
        assert live["httpGet"] == told | {"path": "/healthz"}
        assert ready["httpGet"] == told | {"path": "/readyz"}

    def test_node_and_address_come_from_the_cluster(self, helm: Chart) -> None:
        """By the downward API."""
        fields = {
            each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"]
            for each in helm.agent()["env"]
            if "valueFrom" in each
        }
        assert fields == {"NODE_NAME": "spec.nodeName", "ADDRESS": "status.podIP"}

    def test_image_names_no_registry(self, helm: Chart) -> None:
        """It is the site's, and the notes say that it must be set."""
        assert helm.agent()["image"] == f"fabricmon:{__version__}"
        assert "image.repository" in helm.files()["fabricmon/templates/NOTES.txt"]


class TestFeatures:
    def test_roce(self, helm: Chart) -> None:
        """On the node's network, at the node's address, with TLS."""
        values = PROFILES["roce"]
        pod, agent = helm.pod(values), helm.agent(values)
        assert pod["hostNetwork"] is True
        assert pod["dnsPolicy"] == "ClusterFirstWithHostNet"
        fields = [e["valueFrom"] for e in agent["env"] if e["name"] == "ADDRESS"]
        assert fields == [{"fieldRef": {"fieldPath": "status.hostIP"}}]
        assert agent["livenessProbe"]["httpGet"]["scheme"] == "HTTPS"
        assert agent["securityContext"]["capabilities"] == {"drop": ["ALL"]}

    def test_tls(self, helm: Chart, tmp_path: Path) -> None:
        """The agent finds the files where the secret is mounted."""
        listen = loaded(helm, PROFILES["mutual-tls"], tmp_path).config.listen
        (mount,) = (
            each["mountPath"]
            for each in helm.agent(PROFILES["mutual-tls"])["volumeMounts"]
            if each["name"] == "tls"
        )
        assert listen.tls_certificate == f"{mount}/tls.crt"
        assert listen.tls_key == f"{mount}/tls.key"
        assert listen.client_authority == f"{mount}/ca.crt"

    def test_probes_where_clients_need_certificates(
        self, helm: Chart, tmp_path: Path
    ) -> None:
        """The kubelet has none, so health has a port of its own."""
        values = PROFILES["mutual-tls"]
        probe = helm.agent(values)["livenessProbe"]["httpGet"]
        assert (probe["port"], probe["scheme"]) == ("health", "HTTP")
        listen = loaded(helm, values, tmp_path).config.listen
        assert listen.health == "[10.0.0.7]:9878"

    @pytest.mark.parametrize("profile", ROOT)
    def test_root_where_the_kernel_asks_for_it(self, helm: Chart, profile: str) -> None:
        """Without it the opt-in would do nothing."""
        context = helm.pod(PROFILES[profile])["securityContext"]
        assert context["runAsUser"] == 0
        assert context["runAsNonRoot"] is False

    def test_processes(self, helm: Chart, tmp_path: Path) -> None:
        """The node's processes, with the two rights that reading them takes."""
        values = PROFILES["processes"]
        context = helm.agent(values)["securityContext"]
        assert helm.pod(values)["hostPID"] is True
        assert context["capabilities"] == {
            "drop": ["ALL"],
            "add": ["DAC_READ_SEARCH", "SYS_PTRACE"],
        }
        assert context["appArmorProfile"] == {"type": "Unconfined"}
        assert "/host/proc" in _mounts(helm, values)
        assert loaded(helm, values, tmp_path).config.jobs.processes

    def test_kernel_log(self, helm: Chart) -> None:
        """Only a privileged container may open the device; its root stays read-only."""
        values = PROFILES["kernel-log"]
        assert helm.agent(values)["securityContext"] == {
            "privileged": True,
            "readOnlyRootFilesystem": True,
        }
        assert "/host/dev/kmsg" in _mounts(helm, values)

    def test_pod_resources(self, helm: Chart, tmp_path: Path) -> None:
        """The socket lies where the agent looks for it; no capability is added."""
        values = PROFILES["pod-resources"]
        socket = loaded(helm, values, tmp_path).config.jobs.kubelet_socket
        assert socket == "/var/lib/kubelet/pod-resources/kubelet.sock"
        assert "/host/var/lib/kubelet/pod-resources" in _mounts(helm, values)
        capabilities = helm.agent(values)["securityContext"]["capabilities"]
        assert capabilities == {"drop": ["ALL"]}

    def test_logs(self, helm: Chart) -> None:
        """Below the root, read as a member of the groups that own them."""
        values = PROFILES["logs"]
        context = helm.pod(values)["securityContext"]
        assert context["supplementalGroups"] == [2000, 0]
        assert context["runAsUser"] == 65534
        assert _mounts(helm, values) >= {
            "/host/etc/nccl.conf",
            "/host/scratch/logs",
            "/host/var/log/nccl",
            "/host/var/log/pods",
        }

    def test_host_folders_are_given_to_the_agent(self, helm: Chart) -> None:
        """The kubelet makes them for root; one right is enough to change that."""
        (prepare,) = helm.pod(PROFILES["host-folders"])["initContainers"]
        owner = ["chown", "65534:65534"]
        assert prepare["command"] == [*owner, "/prepare/state", "/prepare/run"]
        assert prepare["securityContext"]["capabilities"] == {
            "drop": ["ALL"],
            "add": ["CHOWN"],
        }
        values = merged(PROFILES["host-folders"], {"prepareFolders": False})
        assert "initContainers" not in helm.pod(values)

    def test_maintenance_is_no_configuration(self, helm: Chart, tmp_path: Path) -> None:
        """A whole folder, so that a change arrives, of a map that may be absent."""
        values = PROFILES["maintenance"]
        (volume,) = (
            each
            for each in helm.pod(values)["volumes"]
            if each["name"] == "maintenance"
        )
        assert volume["configMap"] == {"name": "works", "optional": True}
        (mount,) = (
            each
            for each in helm.agent(values)["volumeMounts"]
            if each["name"] == "maintenance"
        )
        assert "subPath" not in mount
        file = loaded(helm, values, tmp_path).config.maintenance_file
        assert file == f"{mount['mountPath']}/maintenance.json"

    def test_configuration_rolls_the_agents(self, helm: Chart) -> None:
        """A change of it, and only that, changes the pods."""
        sums = [
            helm.one("DaemonSet", values)["spec"]["template"]["metadata"][
                "annotations"
            ]["checksum/config"]
            for values in ({}, {"config": {"cluster": "a"}}, {"labels": {"a": "b"}})
        ]
        assert sums[0] != sums[1]
        assert sums[0] == sums[2]

    def test_configuration_is_passed_on(self, helm: Chart, tmp_path: Path) -> None:
        """Keys of a section that the chart has a word in as well."""
        values = {"config": {"listen": {"connections": 7}, "jobs": {"slurm": False}}}
        config = loaded(helm, values, tmp_path).config
        assert config.listen.connections == 7
        assert config.listen.page == Config().listen.page
        assert config.jobs.slurm is False

    def test_page_can_be_off(self, helm: Chart, tmp_path: Path) -> None:
        """It is on the loopback interface of the node in the RoCE profile."""
        config = loaded(helm, {"page": {"enabled": False}}, tmp_path).config
        assert config.listen.page is None

    def test_mqtt_secret(self, helm: Chart) -> None:
        """Files, because the environment of a process is no place for a password."""
        values = PROFILES["mqtt"]
        assert "/etc/fabricmon-mqtt" in _mounts(helm, values)
        text = json.dumps(helm.objects(values))
        assert "secretKeyRef" not in text

    def test_kubernetes_sink(self, helm: Chart, tmp_path: Path) -> None:
        """A token, and exactly the rights with which the sink was tested."""
        values = PROFILES["kubernetes"]
        assert helm.pod(values)["automountServiceAccountToken"] is True
        assert loaded(helm, values, tmp_path).config.kubernetes.enabled
        assert helm.one("ClusterRole", values)["rules"] == CONDITION_RULES
        role = helm.one("Role", values)
        assert role["rules"] == EVENT_RULES
        assert role["metadata"]["namespace"] == "default"
        policy = helm.one("ValidatingAdmissionPolicy", values)
        binding = helm.one("ValidatingAdmissionPolicyBinding", values)
        assert binding["spec"]["policyName"] == policy["metadata"]["name"]
        without = merged(values, {"kubernetes": {"admissionPolicy": False}})
        assert helm.all("ValidatingAdmissionPolicy", without) == []

    def test_pod_monitor(self, helm: Chart) -> None:
        """Selects the pods, and sets the labels that rules go by."""
        values = PROFILES["monitoring"]
        spec = helm.one("PodMonitor", values)["spec"]
        pods = helm.one("DaemonSet", values)["spec"]["selector"]
        assert spec["selector"] == pods
        (endpoint,) = spec["podMetricsEndpoints"]
        labels = {each["targetLabel"]: each for each in endpoint["relabelings"]}
        source = ["__meta_kubernetes_pod_node_name"]
        assert labels["node"]["sourceLabels"] == source
        assert labels["cluster"]["replacement"] == "alpha"
        assert endpoint["honorLabels"] is True
        assert "scheme" not in endpoint

    def test_pod_monitor_with_tls(self, helm: Chart) -> None:
        """Encrypted, with what the scraper needs."""
        tls = {"ca": {"secret": {"name": "ca", "key": "ca.crt"}}, "serverName": "f"}
        monitor = {"podMonitor": {"enabled": True, "tlsConfig": tls}}
        spec = helm.one("PodMonitor", merged(PROFILES["roce"], monitor))["spec"]
        (endpoint,) = spec["podMetricsEndpoints"]
        assert (endpoint["scheme"], endpoint["tlsConfig"]) == ("https", tls)

    def test_rules(self, helm: Chart) -> None:
        """Each file of rules whole, as one object."""
        found = helm.all("PrometheusRule", PROFILES["monitoring"])
        files = sorted((CHART / "rules").glob("*.yaml"))
        assert files
        told = [each["spec"]["groups"] for each in found]
        assert told == [yaml.safe_load(file.read_text())["groups"] for file in files]
        assert len({each["metadata"]["name"] for each in found}) == len(files)

    def test_dashboards(self, helm: Chart) -> None:
        """Each dashboard whole, with the label that the sidecar looks for."""
        found = [
            each
            for each in helm.all("ConfigMap", PROFILES["monitoring"])
            if "grafana_dashboard" in each["metadata"]["labels"]
        ]
        files = sorted((CHART / "dashboards").glob("*.json"))
        assert files
        shown = {key: text for each in found for key, text in each["data"].items()}
        assert {f.name: json.loads(f.read_text()) for f in files} == {
            key: json.loads(text) for key, text in shown.items()
        }

    def test_network_policy(self, helm: Chart) -> None:
        """Only who is named, only to the metrics."""
        spec = helm.one("NetworkPolicy", PROFILES["network-policy"])["spec"]
        (rule,) = spec["ingress"]
        assert rule["ports"] == [{"port": "metrics", "protocol": "TCP"}]
        assert rule["from"] == PROFILES["network-policy"]["networkPolicy"]["from"]
        assert spec["policyTypes"] == ["Ingress", "Egress"]

    def test_node_labels(self, helm: Chart) -> None:
        """One of the expressions is enough."""
        labels = [
            {"key": "a", "operator": "Exists"},
            {"key": "b", "operator": "In", "values": ["1"]},
        ]
        affinity = helm.pod({"nodeLabels": labels})["affinity"]["nodeAffinity"]
        terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
        assert terms["nodeSelectorTerms"] == [
            {"matchExpressions": [each]} for each in labels
        ]


def _mounts(helm: Chart, values: Json) -> set[str]:
    return {each["mountPath"] for each in helm.agent(values)["volumeMounts"]}
