"""The sink for node_exporter's textfile collector, read by a real one."""

import os
import stat
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog

from fabricmon.config import Config, Metrics, Textfile
from fabricmon.config_load import build
from fabricmon.errors import ConfigError, HostError
from fabricmon.parse.words import LinkLayer
from fabricmon.runtime.heartbeat import Heartbeat
from fabricmon.sinks.textfile import TextfileSink, make
from tests.sinks import nodes
from tests.sinks.test_prometheus import complaints
from tests.support.agent import AgentProcess, Node
from tests.support.programs import require
from tests.support.servers import LOOPBACK, Server, answers, free_port, wait_until

NODE = nodes.eight(LinkLayer.INFINIBAND)
SECONDS = 10.0
MakeSink = Callable[..., TextfileSink]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return where the file goes."""
    folder = tmp_path / "textfile"
    folder.mkdir()
    return folder / "fabricmon.prom"


@pytest.fixture
def start(file: Path) -> Iterator[MakeSink]:
    """Start sinks that write there; ends them."""
    started: list[TextfileSink] = []

    def begin(**keys: float) -> TextfileSink:
        config = Config(textfile=Textfile(path=str(file), **keys))
        sink = make(config, Heartbeat(), structlog.get_logger())
        assert sink is not None
        sink.open()
        started.append(sink)
        return sink

    yield begin
    for sink in started:
        sink.close()


def written(sink: TextfileSink, file: Path) -> bytes:
    """Publish, and return the file once it is there."""
    sink.publish(NODE, ())
    wait_until(file.exists, SECONDS, "the file is written")
    return file.read_bytes()


class TestFile:
    def test_holds_the_metrics(self, start: MakeSink, file: Path) -> None:
        """Whole, for everybody to read, and as promtool wants them."""
        text = written(start(), file)
        assert text.endswith(b"\n")
        assert b"fabricmon_infiniband_link_downed_total{" in text
        assert stat.S_IMODE(file.stat().st_mode) == 0o644
        assert complaints(text) == set()

    def test_nothing_before_the_first_look(self, start: MakeSink, file: Path) -> None:
        """No file is better than an empty node."""
        start().close()
        assert not file.exists()

    def test_mode_is_not_the_umask_s(self, start: MakeSink, file: Path) -> None:
        """The unit has a umask of 0027; node_exporter is another user."""
        before = os.umask(0o077)
        try:
            written(start(), file)
        finally:
            os.umask(before)
        assert stat.S_IMODE(file.stat().st_mode) == 0o644

    def test_is_replaced_whole(self, start: MakeSink, file: Path) -> None:
        """Whoever has the old one open reads it to its end."""
        sink = start(period_seconds=0.05)
        old = written(sink, file)
        with file.open("rb") as reader:
            inode = file.stat().st_ino
            wait_until(
                lambda: file.stat().st_ino != inode, SECONDS, "it is written again"
            )
            assert reader.read() == old
        assert [path.name for path in file.parent.glob("*.prom")] == [file.name]

    def test_is_gone_at_the_end(self, start: MakeSink, file: Path) -> None:
        """Else a stopped agent would look like a healthy node for ever."""
        sink = start()
        written(sink, file)
        sink.close()
        assert list(file.parent.iterdir()) == []

    def test_a_link_of_somebody_else_is_not_followed(
        self, start: MakeSink, file: Path, tmp_path: Path
    ) -> None:
        """Neither in the file's place nor in that of the new one."""
        victim = tmp_path / "passwd"
        victim.write_text("root")
        file.with_name(f".{file.name}.new").symlink_to(victim)
        written(start(), file)
        assert victim.read_text() == "root"

    def test_nothing_of_the_process(self, start: MakeSink, file: Path) -> None:
        """node_exporter has these names itself, and would refuse the file."""
        text = written(start(), file)
        names = {line.split(b" ")[2] for line in text.splitlines() if b"# TYPE" in line}
        assert all(name.startswith(b"fabricmon_") for name in names)


class TestTrouble:
    def test_no_folder_is_one_clear_error(self, tmp_path: Path) -> None:
        """At the start, where it is seen."""
        path = str(tmp_path / "nowhere/x.prom")
        sink = make(
            Config(textfile=Textfile(path=path)), Heartbeat(), structlog.get_logger()
        )
        assert sink is not None
        with pytest.raises(HostError, match=r"nowhere: is no folder"):
            sink.open()

    def test_a_folder_that_goes_is_said_once(
        self, start: MakeSink, file: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """And the file is there again with the folder."""
        sink = start(period_seconds=0.05)
        written(sink, file)
        away = file.parent.rename(file.parent.with_name("away"))
        told = ""

        def is_told() -> bool:
            nonlocal told
            told += capsys.readouterr().out
            return "textfile_unwritten" in told

        wait_until(is_told, SECONDS, "it is logged")
        away.rename(file.parent)
        wait_until(
            lambda: file.exists() and bool(written(sink, file)), SECONDS, "it is back"
        )
        told += capsys.readouterr().out
        assert told.count("textfile_unwritten") == 1

    @pytest.mark.parametrize(
        "path", ["fabricmon.prom", "/tmp/fabricmon.txt", "/a\0.prom"]
    )
    def test_a_path_that_is_of_no_use_is_refused(self, path: str) -> None:
        """The collector reads *.prom only; a service has no folder of its own."""
        with pytest.raises(ConfigError, match=r"textfile\.path"):
            build({"textfile": {"path": path}}, (), ())

    def test_off_by_default(self) -> None:
        """A site asks for it."""
        assert make(Config(), Heartbeat(), structlog.get_logger()) is None


@pytest.mark.server
def test_a_real_node_exporter_reads_it(
    start: MakeSink, file: Path, tmp_path: Path
) -> None:
    """With all its own metrics of itself beside, which must not collide."""
    text = written(start(), file).decode()
    port = free_port()
    command = [
        require("prometheus-node-exporter"),
        "--collector.disable-defaults",
        "--collector.textfile",
        f"--collector.textfile.directory={file.parent}",
        f"--web.listen-address={LOOPBACK}:{port}",
    ]
    url = f"http://{LOOPBACK}:{port}/metrics"
    log = tmp_path / "node_exporter.log"
    server = Server(command, port, log, lambda: answers(url)).start()
    try:
        with urllib.request.urlopen(url) as reply:
            scraped = reply.read().decode().splitlines()
    finally:
        server.stop()
    assert "node_textfile_scrape_error 0" in scraped
    ours = {line.rpartition(" ")[0] for line in text.splitlines() if line[0] != "#"}
    assert ours <= {line.rpartition(" ")[0] for line in scraped}


@pytest.mark.server
@pytest.mark.slow
def test_an_agent_writes_and_removes_it(tmp_path: Path, file: Path) -> None:
    """As a service: it is there when the agent is ready, and gone when it stops."""
    Node(tmp_path)
    agent = AgentProcess(
        tmp_path, {"textfile": {"path": str(file), "period_seconds": 0.2}}
    )
    try:
        agent.start()
        agent.until(file.exists, "the file is there")
        assert b'device="mlx5_0"' in file.read_bytes()
        agent.stop()
        assert not file.exists()
    finally:
        agent.close()


def test_names_of_node_exporter_only_where_wanted(file: Path) -> None:
    """The same switch as for /metrics."""
    metrics = Metrics(node_exporter_names=True)
    config = Config(metrics=metrics, textfile=Textfile(path=str(file)))
    sink = TextfileSink(config, str(file), structlog.get_logger())
    sink.open()
    try:
        assert b"node_infiniband_state_id{" in written(sink, file)
    finally:
        sink.close()
