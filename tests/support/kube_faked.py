"""A Kubernetes API server that is faked, but spoken to over real HTTP and TLS.

It knows the two resources that fabricmon writes, and of them what the API's reference
says: strategic merge of a node's conditions by type, merge patches of the series of an
event, which fields an event must have, how errors look. The same tests run against a
real server where there is one (`kube_real`), so that this one cannot be wrong unseen.
"""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from tests.support.programs import require

Json = dict[str, Any]

TOKEN = "first-token"
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "KubeletReady",
    "message": "kubelet is posting ready status",
    "lastHeartbeatTime": "2026-01-01T00:00:00Z",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
_NOTE, _SHORT = 1024, 128
_SHORTEST_SERIES = 2
_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


@dataclass
class Trouble:
    """What the server does instead of answering; it ends after ``times`` requests."""

    status: int = 0
    seconds: float = 0.0
    retry_after: int | None = None
    times: int = 1 << 30


@dataclass
class FakedApi:
    """The server, its memory, and what was asked of it."""

    folder: Path
    port: int = 0
    tokens: set[str] = field(default_factory=lambda: {TOKEN})
    conditions: dict[str, list[Json]] = field(default_factory=dict)
    stored: dict[str, Json] = field(default_factory=dict)
    requests: list[tuple[float, str, str, Json]] = field(default_factory=list)
    trouble: Trouble | None = None

    def __post_init__(self) -> None:
        """Make an authority of its own, a certificate, a token and a kubeconfig."""
        self.token_file = self.folder / "token"
        self.token_file.write_text(TOKEN)
        self.kubeconfig = self.folder / "kubeconfig"
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None
        _make_certificate(self.folder)

    def start(self) -> FakedApi:
        """Serve, on the port of the last time if there was one."""
        api = self

        class Handler(_Handler):
            memory = api

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "tls.crt", self.folder / "tls.key")
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        threading.Thread(target=self._server.serve_forever, args=(0.05,)).start()
        self.write_kubeconfig()
        return self

    def stop(self) -> None:
        """Stop serving."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def write_kubeconfig(self, authority: Path | None = None) -> None:
        """Write the file by which a client finds the server."""
        write_kubeconfig(
            self.kubeconfig,
            f"https://127.0.0.1:{self.port}",
            authority or self.folder / "ca.crt",
            self.token_file,
        )

    def add_node(self, name: str) -> None:
        """Have a node that the kubelet has told of."""
        self.conditions[name] = [dict(READY)]

    def node_conditions(self, name: str) -> dict[str, Json]:
        """Return a node's conditions by type."""
        with self._lock:
            return {each["type"]: dict(each) for each in self.conditions[name]}

    def set_condition(self, name: str, condition: Json) -> None:
        """Set a condition as somebody else."""
        with self._lock:
            _merge_conditions(self.conditions[name], [condition])

    def events(self, node: str) -> list[Json]:
        """Return the events about a node, oldest first."""
        with self._lock:
            found = [dict(each) for each in self.stored.values()]
        return [each for each in found if each["regarding"]["name"] == node]

    def delete_events(self) -> None:
        """Forget events, as the server does after an hour."""
        with self._lock:
            self.stored.clear()

    def answer(self, method: str, path: str, kind: str, body: Json) -> tuple[int, Json]:
        """Do what is asked."""
        path, _, query = path.partition("?")
        with self._lock:
            if method == "PATCH" and path.startswith("/api/v1/nodes/"):
                dry = "dryRun=All" in query
                return self._patch_node(path, kind, body, dry=dry)
            if method == "POST" and path == _EVENTS:
                return self._create(body)
            if method == "PATCH" and path.startswith(f"{_EVENTS}/"):
                return self._patch_event(path.rpartition("/")[2], kind, body)
        return _status(404, f"no such path: {method} {path}")

    def _patch_node(
        self, path: str, kind: str, body: Json, *, dry: bool
    ) -> tuple[int, Json]:
        name = path.split("/")[4]
        if kind != "application/strategic-merge-patch+json":
            return _status(415, f"the body is {kind}")
        if not path.endswith("/status") or name not in self.conditions:
            return _status(404, f'nodes "{name}" not found')
        merged = [dict(each) for each in self.conditions[name]]
        _merge_conditions(merged, body.get("status", {}).get("conditions", []))
        if not dry:
            self.conditions[name] = merged
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        return 200, node | {"status": {"conditions": merged}}

    def _create(self, event: Json) -> tuple[int, Json]:
        if fault := _fault(event):
            return _status(422, fault)
        name = event["metadata"]["name"]
        if name in self.stored:
            return _status(409, f'events "{name}" already exists')
        self.stored[name] = event
        return 201, event

    def _patch_event(self, name: str, kind: str, body: Json) -> tuple[int, Json]:
        if kind != "application/merge-patch+json":
            return _status(415, f"the body is {kind}")
        if name not in self.stored:
            return _status(404, f'events.events.k8s.io "{name}" not found')
        event = self.stored[name] | body
        if fault := _fault(event):
            return _status(422, fault)
        self.stored[name] = event
        return 200, event


class _Handler(BaseHTTPRequestHandler):
    memory: FakedApi
    protocol_version = "HTTP/1.1"
    timeout = 5

    def do_PATCH(self) -> None:
        self._serve("PATCH")

    def do_POST(self) -> None:
        self._serve("POST")

    def log_message(self, *_args: Any) -> None:
        """Keep quiet."""

    def _serve(self, method: str) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length) or b"{}")
        api = self.memory
        api.requests.append((time.monotonic(), method, self.path, body))
        trouble = api.trouble
        if trouble is not None and trouble.times > 0:
            trouble.times -= 1
            time.sleep(trouble.seconds)
            if trouble.status:
                more = {"Retry-After": str(trouble.retry_after or 0)}
                self._reply(*_status(trouble.status, "in trouble"), more)
                return
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if bearer not in api.tokens:
            self._reply(*_status(401, "Unauthorized"), {})
            return
        kind = self.headers.get("Content-Type", "")
        self._reply(*api.answer(method, self.path, kind, body), {})

    def _reply(self, status: int, content: Json, more: dict[str, str]) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for key, value in more.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data)


def write_kubeconfig(path: Path, server: str, authority: Path, token: Path) -> None:
    """Write a kubeconfig file with a token in a file."""
    name = "test"
    cluster = {"server": server, "certificate-authority": str(authority)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"tokenFile": str(token)}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    path.write_text(yaml.safe_dump(content))


def _merge_conditions(conditions: list[Json], patch: list[Json]) -> None:
    """Merge by ``type``, the merge key of node conditions."""
    for each in patch:
        found = [c for c in conditions if c["type"] == each["type"]]
        if each.get("$patch") == "delete":
            conditions[:] = [c for c in conditions if c["type"] != each["type"]]
        elif found:
            found[0].update(each)
        else:
            conditions.append(dict(each))


def _fault(event: Json) -> str | None:
    """Say what the API's validation of events would refuse."""
    return next(_faults(event), None)


def _faults(event: Json) -> Iterator[str]:
    series = event.get("series")
    seen = [series["lastObservedTime"]] if series else []
    for moment in (event.get("eventTime", ""), *seen):
        if not _MICRO_TIME.fullmatch(moment):
            yield f"{moment!r} cannot be parsed as a MicroTime"
    required = ("eventTime", "reportingController", "reportingInstance", "action")
    for key in (*required, "reason", "type", "regarding"):
        if not event.get(key):
            yield f"{key}: Required value"
    if event["type"] not in {"Normal", "Warning"}:
        yield "type: Unsupported value"
    if len(event.get("note", "").encode()) > _NOTE:
        yield "note: can have at most 1024 characters"
    for key in ("reportingInstance", "action", "reason"):
        if len(event[key]) > _SHORT:
            yield f"{key}: can have at most 128 characters"
    if series is not None and series.get("count", 0) < _SHORTEST_SERIES:
        yield "series.count: should be at least 2"


def _status(code: int, message: str) -> tuple[int, Json]:
    kind = {"apiVersion": "v1", "kind": "Status", "metadata": {}}
    return code, kind | {"status": "Failure", "message": message, "code": code}


def _make_certificate(folder: Path) -> None:
    """Make an authority and a certificate for the loopback address."""
    openssl = require("openssl")
    common = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    for name in ("ca", "other"):
        _run(
            openssl, "req", "-x509", *common, "-subj", f"/CN={name}", "-days", "2",
            "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt",
        )  # fmt: skip
    names = folder / "names"
    names.write_text("subjectAltName=IP:127.0.0.1\n")
    _run(
        openssl, "req", *common, "-subj", "/CN=api",
        "-keyout", folder / "tls.key", "-out", folder / "tls.csr",
    )  # fmt: skip
    _run(
        openssl, "x509", "-req", "-in", folder / "tls.csr", "-CA", folder / "ca.crt",
        "-CAkey", folder / "ca.key", "-CAcreateserial", "-days", "2",
        "-extfile", names, "-out", folder / "tls.crt",
    )  # fmt: skip


def _run(*command: str | Path) -> None:
    subprocess.run([str(each) for each in command], check=True, capture_output=True)
