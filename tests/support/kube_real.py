"""A real Kubernetes API server with its etcd, where the machine has both.

They come in no package that the tests install: put ``kube-apiserver`` and ``etcd`` on
PATH (those of any release, or of envtest) to run these tests.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import servers
from tests.support.kube_faked import READY, write_kubeconfig
from tests.support.programs import MISSING, find, require

Json = dict[str, Any]

AGENT = "system:serviceaccount:fabricmon:fabricmon"
CONDITION_RULES = [
    {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]}
]
"""All that an agent may do in the cluster; the chart grants the same."""

EVENT_RULES = [
    {
        "apiGroups": ["events.k8s.io"],
        "resources": ["events"],
        "verbs": ["create", "patch"],
    }
]
"""All that an agent may do in the namespace ``default``."""

_ADMIN = "token-of-the-administrator"
_START_SECONDS = 60.0
_STRATEGIC = "application/strategic-merge-patch+json"


@dataclass
class RealApi:
    """The server; the tests' own wishes go to it as an administrator's."""

    folder: Path
    token: str = "token-of-the-agent"
    _servers: list[servers.Server] = field(default_factory=list)

    def start(self) -> RealApi:
        """Start both programs, or skip and say what is missing."""
        apiserver, etcd = find("kube-apiserver"), find("etcd")
        if apiserver is None or etcd is None:
            pytest.skip(f"{MISSING}kube-apiserver and etcd (a release of Kubernetes)")
        store, peer, self.port = (servers.free_port() for _ in range(3))
        keys = self.folder / "keys"
        _make_keys(self.folder)
        (self.folder / "tokens.csv").write_text(
            f"{_ADMIN},admin,admin,system:masters\n{self.token},{AGENT},agent\n"
        )
        url = f"http://127.0.0.1:{store}"
        self._begin(
            [
                etcd, f"--data-dir={self.folder / 'etcd'}",
                f"--listen-client-urls={url}", f"--advertise-client-urls={url}",
                f"--listen-peer-urls=http://127.0.0.1:{peer}", "--log-level=error",
            ],
            store, "etcd", lambda: servers.accepts(store),
        )  # fmt: skip
        self._begin(
            [
                apiserver, f"--etcd-servers={url}", "--bind-address=127.0.0.1",
                f"--secure-port={self.port}", f"--cert-dir={keys}",
                f"--token-auth-file={self.folder / 'tokens.csv'}",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={self.folder / 'sa.pub'}",
                f"--service-account-signing-key-file={self.folder / 'sa.key'}",
                "--authorization-mode=Node,RBAC",
                "--service-cluster-ip-range=10.96.0.0/16",
                "--enable-admission-plugins=NodeRestriction",
                "--allow-privileged=true",
                "--disable-admission-plugins=ServiceAccount",
            ],
            self.port, "kube-apiserver", self._is_ready,
        )  # fmt: skip
        self.kubeconfig = self.folder / "kubeconfig"
        self.token_file = self.folder / "token"
        self.token_file.write_text(self.token)
        write_kubeconfig(
            self.kubeconfig,
            f"https://127.0.0.1:{self.port}",
            keys / "apiserver.crt",
            self.token_file,
        )
        self._grant("ClusterRole", CONDITION_RULES, {})
        self._grant("Role", EVENT_RULES, {"namespace": "default"})
        return self

    def stop(self) -> None:
        """End both."""
        for server in reversed(self._servers):
            server.stop()

    def add_node(self, name: str) -> None:
        """Have a node that the kubelet has told of."""
        metadata = {"name": name}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
        self.ask("POST", "/api/v1/nodes", node)
        self.set_condition(name, READY)

    def node_conditions(self, name: str) -> dict[str, Json]:
        """Return a node's conditions by type."""
        node = self.ask("GET", f"/api/v1/nodes/{name}")
        return {each["type"]: each for each in node["status"].get("conditions", [])}

    def set_condition(self, name: str, condition: Json) -> None:
        """Set a condition as somebody else."""
        patch = {"status": {"conditions": [condition]}}
        self.ask("PATCH", f"/api/v1/nodes/{name}/status", patch, _STRATEGIC)

    def events(self, node: str) -> list[Json]:
        """Return the events about a node, oldest first."""
        found = self.ask("GET", "/apis/events.k8s.io/v1/namespaces/default/events")
        mine = [e for e in found["items"] if e["regarding"]["name"] == node]
        return sorted(mine, key=lambda each: str(each["eventTime"]))

    def delete_events(self) -> None:
        """Forget events, as the server does after an hour."""
        self.ask("DELETE", "/apis/events.k8s.io/v1/namespaces/default/events")

    def apply(self, text: str, *, dry: bool = False) -> None:
        """Apply the objects of a YAML stream, strictly; a dry one keeps none."""
        for each in filter(None, yaml.safe_load_all(text)):
            group, _, version = each["apiVersion"].rpartition("/")
            root = f"/apis/{group}/{version}" if group else f"/api/{version}"
            if (namespace := each["metadata"].get("namespace")) is not None:
                root += f"/namespaces/{namespace}"
            kind = each["kind"].lower()
            plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
            query = "fieldManager=test&force=true&fieldValidation=Strict"
            query += "&dryRun=All" if dry else ""
            path = f"{root}/{plural}/{each['metadata']['name']}?{query}"
            self.ask("PATCH", path, each, "application/apply-patch+yaml")

    def ask(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        kind: str = "application/json",
        token: str = _ADMIN,
    ) -> Json:
        """Send one request; an error of the server is an `AssertionError`."""
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": kind},
        )
        context = ssl._create_unverified_context()  # noqa: S323 - on the loopback
        try:
            with urllib.request.urlopen(request, timeout=10, context=context) as reply:
                return dict(json.load(reply))
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from None

    def _grant(self, kind: str, rules: list[Json], place: Json) -> None:
        group = "rbac.authorization.k8s.io"
        common = {"apiVersion": f"{group}/v1", "metadata": {"name": "agent"} | place}
        role = common | {"kind": kind, "rules": rules}
        binding = common | {
            "kind": f"{kind}Binding",
            "roleRef": {"apiGroup": group, "kind": kind, "name": "agent"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": AGENT}],
        }
        self.apply(yaml.safe_dump_all([role, binding]))

    def _is_ready(self) -> bool:
        context = ssl._create_unverified_context()  # noqa: S323 - on the loopback
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}/readyz",
            headers={"Authorization": f"Bearer {_ADMIN}"},
        )
        with (
            suppress(OSError),
            urllib.request.urlopen(request, timeout=2, context=context) as reply,
        ):
            return bool(reply.status == 200)
        return False

    def _begin(self, command: list[str], port: int, name: str, ready: Any) -> None:
        log = self.folder / f"{name}.log"
        self._servers.append(servers.Server(command, port, log, ready))
        self._servers[-1].start()


def _make_keys(folder: Path) -> None:
    openssl = require("openssl")
    for command in (
        ("genrsa", "-out", "sa.key", "2048"),
        ("rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub"),
    ):
        subprocess.run([openssl, *command], cwd=folder, check=True, capture_output=True)
