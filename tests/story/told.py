"""Stories of logs for tests: text in, story out, by the way of the product."""

from collections.abc import Mapping
from textwrap import dedent

from fabricmon.config import Logs, Stories
from fabricmon.model import LogEvent
from fabricmon.parse.nccl import RuleTable
from fabricmon.parse.nccl_log import NEW_LOG, read_log
from fabricmon.stories.story import Story, Trouble

TABLE = RuleTable.of()

DOWN = "transport/net_ib.cc:93 NCCL WARN NET/IB : mlx5_3:1 Got async event : port error"
UP = "transport/net_ib.cc:93 NCCL WARN NET/IB : mlx5_3:1 Got async event : port active"


def events_of(text: str, file: str = "job.log") -> tuple[LogEvent, ...]:
    """Return the events of a log; stamps without zone are UTC."""
    data = dedent(text).lstrip("\n").encode()
    return read_log(data, NEW_LOG, file, TABLE, final=True, zone_seconds=0).events


def told(
    text: str | Mapping[str, str],
    limits: Stories | None = None,
    at: float | None = None,
) -> Story:
    """Return the story of a log, or of several by name."""
    logs = {"job.log": text} if isinstance(text, str) else text
    story = Story(Logs(stories=limits or Stories()))
    for file, content in logs.items():
        for event in events_of(content, file):
            story.add(event, at)
    return story


def only(story: Story) -> Trouble:
    """Return the one trouble that there must be."""
    (trouble,) = story.troubles()
    return trouble


def retried(
    host: str,
    pid: int,
    peer: str,
    *,
    stamp: str = "",
    status: int = 12,
    hca: str = "mlx5_3",
) -> str:
    """Return the line of a completion with an error, as NCCL 2.22 to 2.28 write it."""
    head = f"[{stamp}] " if stamp else ""
    vendor = 249 if status == 5 else 129
    return (
        f"{head}{host}:{pid}:{pid + 90} [3] transport/net_ib.cc:2244 NCCL WARN NET/IB: "
        f"Got completion from peer {peer}<53811> with status={status} opcode=129 len=0 "
        f"vendor err {vendor} (Recv) localGid ::ffff:10.9.3.1 "
        f"remoteGids::ffff:10.9.3.2 hca {hca}\n"
    )


def started(host: str, pid: int, rank: int, stamp: str, ranks: int = 16) -> str:
    """Return the line of a communicator that begins, stamped."""
    return (
        f"[{stamp}] {host}:{pid}:{pid + 1} [3] NCCL INFO ncclCommInitRank comm "
        f"0x55dd8aa86c70 rank {rank} nranks {ranks} cudaDev 3 nvmlDev 3 busId 1c000 "
        "commId 0x65e0bd6ee7449db4 - Init START\n"
    )


def setting(host: str, pid: int, name: str, value: str) -> str:
    """Return the line of a setting from the environment."""
    return (
        f"{host}:{pid}:{pid + 1} [3] NCCL INFO {name} set by environment to {value}.\n"
    )
