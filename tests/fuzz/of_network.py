"""Targets that read what comes over a network or a socket."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from http import HTTPStatus
from http.client import HTTPResponse
from types import SimpleNamespace
from typing import Any

import msgspec

from fabricmon.cli import _parser
from fabricmon.cli.event_fleet import FindingMessage, Fleet, UnreadableError, table
from fabricmon.cli.event_lines import Lines, as_json
from fabricmon.config import Config
from fabricmon.errors import HostError, ParseError
from fabricmon.fleet.engine import _fired
from fabricmon.fleet.queries import Client
from fabricmon.fleet.rule import Alert
from fabricmon.fleet.silences import Access, Alertmanager
from fabricmon.gate.alerts import read_notification
from fabricmon.gate.deciding import Gate
from fabricmon.gate.decision import Sight
from fabricmon.gate.journal import _encoded as encoded
from fabricmon.gate.journal import _report as decoded
from fabricmon.gate.messages import Standing, read_message
from fabricmon.gate.report import Report
from fabricmon.gate.settings import Alerts, GateConfig
from fabricmon.gate.state import Gauges, Tally
from fabricmon.gate.web import Web
from fabricmon.parse.words import LinkLayer
from fabricmon.runtime.heartbeat import Heartbeat
from fabricmon.runtime.socket import _respond
from fabricmon.scheduler_advice import (
    Answer,
    Moment,
    reason,
    reasons_to_drain,
    why_not_resume,
)
from fabricmon.sinks import mqtt_topics
from fabricmon.sinks.http import Listener
from fabricmon.sinks.http_message import END_OF_HEAD, MOST_OCTETS
from fabricmon.sinks.mqtt_client import Message
from fabricmon.sinks.page import PageSink
from fabricmon.sinks.prometheus import PrometheusSink
from tests.fuzz.target import Target, texts
from tests.gate import gates
from tests.sinks.nodes import full_port, incident, node

TOKEN = b"0123456789abcdef"
NOW = 1.8e9


class _Connection(socket.socket):
    """A client that has sent these bytes and ended."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._data = data

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Return the next bytes."""
        piece, self._data = self._data[:size], self._data[size:]
        return piece


class _Inbox:
    """Takes every message and has it written at once."""

    def __init__(self) -> None:
        self.gate = Gate(GateConfig(), 1.0)

    def offer(self, content: Any) -> SimpleNamespace:
        """Take a message."""
        _decide(content.reports)
        written: Future[None] = Future()
        written.set_result(None)
        return SimpleNamespace(written=written)


def _decide(reports: tuple[Report, ...]) -> None:
    """Let a gate decide, and the journal keep what it was told."""
    gate = Gate(GateConfig(), 1.0)
    for each in reports:
        assert decoded(encoded(each)) == each
        gate.take(each, NOW)
    gate.age(NOW)
    assert len(list(gate.judge(NOW, _SIGHT))) <= len(reports)


_SIGHT = Sight((), frozenset())


def _listeners() -> Iterator[Listener]:
    config = Config()
    heartbeat = Heartbeat()
    metrics = PrometheusSink(config, "127.0.0.1:0", heartbeat)
    page = PageSink(config, "127.0.0.1:0", heartbeat)
    snapshot = node(full_port("mlx5_0", LinkLayer.INFINIBAND), incidents=(incident(),))
    metrics.publish(snapshot, ())
    page.publish(snapshot, ())
    yield metrics.listener
    yield page.listener
    tally = Tally()
    web = Web(
        GateConfig(),
        token=TOKEN,
        inbox=_Inbox(),  # type: ignore[arg-type]
        gauges=Gauges(tally, time.time, NOW),
        tally=tally,
        heartbeat=heartbeat,
    )
    assert web.listener is not None
    yield web.listener


class _Known:
    """What is made once: it would cost more than what is tried."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The agent's metrics and page, and the gate."""
        self._listeners = self._listeners or tuple(_listeners())
        return self._listeners


_KNOWN = _Known()


def http(data: bytes) -> None:
    """Answer a request as the metrics, the page and the gate do; never with a 500."""
    head, rest = data[: MOST_OCTETS + 1], data[MOST_OCTETS + 1 :]
    if not any(mark in head for mark in END_OF_HEAD) and len(head) <= MOST_OCTETS:
        return  # more would be waited for
    for listener in _KNOWN.listeners:
        with _Connection(rest) as connection, contextlib.suppress(ConnectionError):
            _check_answer(listener._answer(head, connection), head[:5] == b"HEAD ")


class _Socket:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, _mode: str) -> io.BytesIO:
        """Return what was answered as a file."""
        return io.BytesIO(self._data)


def _check_answer(answer: bytes, is_head: bool) -> None:  # noqa: FBT001
    """Read an answer as a client does: one whole message and nothing behind it."""
    reply = HTTPResponse(_Socket(answer), method="HEAD" if is_head else "GET")  # type: ignore[arg-type]
    reply.begin()
    body = reply.read()
    assert reply.status != HTTPStatus.INTERNAL_SERVER_ERROR
    assert reply.getheader("Connection") == "close"
    head = answer.partition(b"\r\n\r\n")[0]
    assert is_head or len(head) + 4 + len(body) == len(answer)
    for line in head.split(b"\r\n"):
        assert not any(byte < 32 or byte == 127 for byte in line)


def webhook(data: bytes) -> None:
    """Take a notification of Alertmanager, and decide about it."""
    _decide(read_notification(data, Alerts()).reports)


def gate_message(data: bytes) -> None:
    """Take a message of an agent, and decide about it."""
    topic, _, payload = data.partition(b"\n")
    place = mqtt_topics.parse(topic.decode("utf-8", "replace"))
    if place is None:
        return
    told = read_message(place.cluster, place.node, place.what, payload)
    if isinstance(told, Report):
        _decide((told,))
    elif isinstance(told, Standing):
        Gate(GateConfig(), 1.0).take_standing(told, NOW)


def event(data: bytes) -> None:
    """Show a message of an agent on a terminal: nothing in it acts."""
    topic, _, payload = data.partition(b"\n")
    name = topic.decode("utf-8", "replace")
    place = mqtt_topics.parse(name)
    if place is None:
        return
    out = io.StringIO()
    fleet, lines = Fleet(), Lines(colour=False)
    with contextlib.redirect_stdout(out):
        try:
            told = fleet.take(place, payload)
        except UnreadableError as error:
            told = None
            lines.unreadable(place, str(error))
        if told is not None:
            lines.event(place, told)
        if isinstance(told, FindingMessage):
            assert len(told.summary) >= 0
        lines.table(table(fleet.nodes))
    message = Message(topic=name, payload=payload, retained=True)
    shown = out.getvalue() + as_json(place, message, NOW)
    assert all(c.isprintable() or c == "\n" for c in shown)
    assert len(out.getvalue()) < 20_000


def agent_request(data: bytes) -> None:
    """Answer a request at the agent's socket: a document or an error, never none."""
    for line in data.split(b"\n"):
        answer = _respond(msgspec.json.encode, line)
        json.loads(answer)


def agent_answer(data: bytes) -> None:
    """Advise a scheduler by what an agent answers: one short line in ASCII."""
    try:
        content = msgspec.json.decode(data, type=dict[str, object])
        answer = msgspec.convert(content, Answer)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return
    for moment in Moment:
        found = reasons_to_drain(answer, moment, "12")
        if found:
            _check_line(reason(found))
    _check_line(why_not_resume(answer) or "")


def _check_line(line: str) -> None:
    assert len(line) <= 400
    assert line.isascii()
    assert line.isprintable()


def alertmanager_reply(data: bytes) -> None:
    """Read what Alertmanager answers of its silences."""
    asked = Alertmanager(Access("http://127.0.0.1:9"))
    asked._connection = lambda: _Answering(data)  # type: ignore[method-assign,assignment,return-value]
    asked.list()


class _Answering:
    """A connection of http.client that has the answer already."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def request(self, *_: object) -> None:
        """Take a question."""

    def getresponse(self) -> HTTPResponse:
        """Return the answer; raises as http.client does."""
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(self._data)
        reply = HTTPResponse(_Socket(head + self._data))  # type: ignore[arg-type]
        reply.begin()
        return reply

    def close(self) -> None:
        """Hang up."""


def prometheus_reply(data: bytes) -> None:
    """Read what Prometheus answers, and hear alerts in it."""
    client = Client(1)
    client._connection = _Answering(data)  # type: ignore[assignment]
    found = client._query("up", 0, 60, 15)
    for series in found:
        assert all(isinstance(value, str) for _, value in series.values)
        tuple(_fired(_ALERT, series, range(0, 600, 15)))


_ALERT = Alert(
    name="A", kind="port_down", expr="up", notice=None, summary="", description="",
    is_not="", for_seconds=30.0, keep_seconds=0.0, labels=(),
)  # fmt: skip


def arguments(data: bytes) -> None:
    """Read the words of a command line, as a scheduler's prolog gives them."""
    words = data.decode("utf-8", "surrogateescape").split("\0")
    wanted = ["check", *words]
    said, status = io.StringIO(), 0
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            options, _ = _parser(wanted).parse_known_args(wanted)
            assert isinstance(options, argparse.Namespace)
        except SystemExit as end:
            status = int(end.code or 0)
    assert status in {0, 2, 64}


def _requests() -> Iterator[bytes]:
    usual = (
        b"Host: localhost\r\nAccept: application/openmetrics-text;version=1.0.0;q=0.5"
    )
    usual += (
        b",text/plain;version=1.0.0;escaping=allow-utf-8\r\nAccept-Encoding: gzip\r\n"
    )
    for path in (b"/metrics", b"/healthz", b"/", b"/now?a=1", b"http://x/metrics"):
        yield b"GET " + path + b" HTTP/1.1\r\n" + usual + b"\r\n"
    body = gates.notification(gates.alert())
    yield (
        b"POST /alerts HTTP/1.1\r\nAuthorization: Bearer "
        + TOKEN
        + b"\r\nContent-Length:"
        b" %d\r\n\r\n" % len(body) + body
    )
    yield b"HEAD /metrics HTTP/1.0\r\n\r\nGET / HTTP/1.1\r\n\r\n"
    yield b"POST /alerts HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"


def _messages() -> list[bytes]:
    stem = b"fabricmon/v1/c1/n1/"
    finding = msgspec.json.encode(gates.finding())
    status = b'{"state":"online","since":"2027-01-15T08:00:00Z","version":"1"}'
    summary = (
        b'{"schema":"fabricmon.summary/1","time":"2027-01-15T08:00:00Z","open":'
        b'{"port_down":{"critical":1}},"ports":{"down":1}}'
    )
    port = b'{"verdict":"down","state":"DOWN","phys_state":"Polling","reasons":["a"]}'
    return [
        stem + b"finding\n" + finding,
        stem + b"status\n" + status,
        stem + b"summary\n" + summary,
        stem + b"port/mlx5_0/1\n" + port,
    ]


_ANSWER = (
    b'{"schema":"fabricmon.check/1","node":"n","verdict":"down","source":"agent",'
    b'"ports":[{"device":"mlx5_0","port":1,"verdict":"down","reasons":["x"]}],'
    b'"findings":[%s],"errors":[],"jobs":[{"job":"12","ports":["mlx5_0/1"]}]}'
)
_SILENCES = (
    b'[{"id":"a","status":{"state":"active"},"comment":"fabricmon: x","createdBy":"y",'
    b'"startsAt":"2027-01-15T08:00:00Z","endsAt":"2027-01-15T09:00:00Z","matchers":'
    b'[{"name":"node","value":"n1","isRegex":false,"isEqual":true}]}]'
)
_RANGE = (
    b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"node":"n1"'
    b',"a":"x\\"y\\n"},"values":[[15,"1"],[30,"NaN"],[45,"+Inf"],[60,"1e3"]]}]}}'
)
_PLACES = (b"fabricmon/v1/c1/n1/finding\n", b"fabricmon/v1/c%2F1/n1/port/%2e/1\n")
_HTTP_WORDS = (
    b" HTTP/1.1\r\n", b" HTTP/0.9\r\n", b"\r\n\r\n", b"Content-Length: ", b"\r\n ",
    b"Transfer-Encoding: chunked\r\n", b"Host: 127.0.0.1\r\n", b"Accept: ", b";version=",
    b"application/openmetrics-text", b"Authorization: Bearer ", b"/../", b"%00", b"//",
    b"http://[::1", b"http://[", b"escaping=values", b"\x0b", b"\x85", b"Expect: 100-c",
)  # fmt: skip

Run = Callable[[bytes], object]

NETWORK_TARGETS = (
    Target("http", http, lambda: list(_requests()), words=_HTTP_WORDS, slack=8),
    Target(
        "webhook", webhook,
        lambda: [gates.notification(gates.alert(), gates.alert("n2", rail="3"))],
        (ParseError,),
    ),
    Target("gate_message", gate_message, _messages, (ParseError,), words=_PLACES),
    Target("event", event, _messages, words=_PLACES),
    Target("agent_request", agent_request, texts('{"ask":"check"}\n{"ask":1}')),
    Target("agent_answer", agent_answer, lambda: [
        _ANSWER % msgspec.json.encode(gates.finding()), _ANSWER % b""]),
    Target("alertmanager", alertmanager_reply, texts(_SILENCES, "[]"), (HostError,)),
    Target("prometheus", prometheus_reply, texts(_RANGE), (HostError,)),
    Target("arguments", arguments, texts(
        "--exit\0slurm\0--at\0prolog\0--job\x0012_3", "--timeout\x001e3\0--root\0/",
        "--format=json\0--interval=2"), slack=4),
)  # fmt: skip
