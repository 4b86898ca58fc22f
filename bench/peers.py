"""Programs of others that export counters of RDMA ports, run on the same files.

Each is Debian's. node_exporter can be told where /sys is; the others look at /sys
alone, and are given the files there in a mount namespace of their own, which needs
root. What is not here: Telegraf is not in Debian; PCP and LDMS ask devices by
management datagrams, which files do not answer; on PyPI is an empty placeholder only.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from programs import Program, free_port, running

_NETDATA = """\
[directories]
  cache = {own}/cache
  lib = {own}/lib
  log = {own}/log
  home = {own}
[global]
  run as user = root
  update every = {seconds:.0f}
[db]
  mode = ram
  retention = 300
  update every = {seconds:.0f}
[logs]
  debug = none
  error = none
  access = none
[web]
  bind to = 127.0.0.1
  default port = {port}
[health]
  enabled = no
[ml]
  enabled = no
[statsd]
  enabled = no
[plugins]
  enable running new plugins = no
  proc = yes
  {others}
[plugin:proc]
  {rest}
  /sys/class/infiniband = yes
[plugin:proc:/sys/class/infiniband]
  refresh ports state every seconds = {refresh:.0f}
"""
_NETDATA_PLUGINS = (
    "timex", "checks", "idlejitter", "tc", "diskspace", "cgroups", "slabinfo",
    "netdata monitoring", "netdata monitoring extended", "apps", "charts.d", "ebpf",
    "fping", "go.d", "ioping", "nfacct", "node.d", "perf", "python.d", "freeipmi",
    "profile", "loops", "cups", "xenstat",
)  # fmt: skip
_NETDATA_FILES = (
    "/proc/net/dev", "/proc/net/wireless", "/proc/diskstats", "/proc/mdstat",
    "/proc/net/netstat", "/proc/net/snmp", "/proc/net/snmp6", "/proc/net/sockstat",
    "/proc/net/sockstat6", "/proc/net/ip_vs/stats", "/proc/net/stat/conntrack",
    "/proc/net/sctp/snmp", "/proc/net/softnet_stat", "/proc/net/rpc/nfs",
    "/proc/net/rpc/nfsd", "/proc/sys/kernel/random/entropy_avail", "/proc/interrupts",
    "/proc/softirqs", "/proc/vmstat", "/proc/meminfo", "/proc/loadavg", "/proc/uptime",
    "/proc/stat", "/proc/pagetypeinfo", "/proc/pressure", "/proc/spl/kstat/zfs/arcstats",
    "/proc/spl/kstat/zfs/pool/state", "/sys/fs/btrfs", "/sys/kernel/mm/ksm",
    "/sys/block/zram", "/sys/devices/system/edac/mc", "/sys/devices/system/node",
    "/sys/class/power_supply", "ipc", "/proc/dynamic_memory", "/sys/class/drm",
)  # fmt: skip
_NETDATA_REFRESH_SECONDS = 30

_COLLECTD = """\
BaseDir "{own}"
PIDFile "{own}/pid"
PluginDir "/usr/lib/collectd"
TypesDB "/usr/share/collectd/types.db"
Interval {seconds}
LoadPlugin infiniband
LoadPlugin write_prometheus
<Plugin write_prometheus>
  Host "127.0.0.1"
  Port "{port}"
</Plugin>
"""


@dataclass(frozen=True, slots=True)
class Peer:
    """A program of others; ``run`` takes the node's root and seconds between polls."""

    name: str
    command: str
    run: Callable[[Path, float], AbstractContextManager[Program]]
    needs_root: bool = False

    @property
    def missing(self) -> str | None:
        """Why it cannot be run here, None if it can."""
        if shutil.which(self.command) is None:
            return f"no {self.command} here"
        if self.needs_root and os.geteuid() != 0:
            return "needs root"
        return None


def version_of(command: str) -> str:
    """Return the version of a Debian package, empty where dpkg does not know it."""
    asked = ["dpkg-query", "-W", "-f", "${Version}", command]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False)
    return answer.stdout.partition("-")[0]


@contextmanager
def node_exporter(root: Path, _seconds: float, *more: str) -> Iterator[Program]:
    """Run node_exporter with its infiniband collector; it polls when it is scraped."""
    port = free_port()
    command = [
        "prometheus-node-exporter",
        "--collector.disable-defaults",
        "--collector.infiniband",
        *more,
        f"--path.sysfs={root}/sys",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    name = f"node_exporter {version_of('prometheus-node-exporter')}"
    name += "".join(f" {each.rpartition('.')[2]}" for each in more)
    with running(name, command, port) as program:
        yield program


@contextmanager
def node_exporter_netclass(root: Path, seconds: float) -> Iterator[Program]:
    """Run it with what it tells of network devices too."""
    with node_exporter(root, seconds, "--collector.netclass") as program:
        yield program


@contextmanager
def collectd(root: Path, seconds: float) -> Iterator[Program]:
    """Run collectd with its infiniband plugin alone."""
    port, own = free_port(), root / "collectd"
    own.mkdir(exist_ok=True)
    config = own / "collectd.conf"
    text = _COLLECTD.format(own=own, seconds=seconds, port=port)
    config.write_text(text, "utf-8")
    command = _with_sys(root, ["collectd", "-f", "-C", str(config)])
    with running(f"collectd {version_of('collectd-core')}", command, port) as program:
        yield program


@contextmanager
def netdata(root: Path, seconds: float) -> Iterator[Program]:
    """Run netdata with its infiniband module alone, metrics kept for five minutes."""
    port, own = free_port(), root / "netdata"
    for name in ("cache", "lib", "log"):
        (own / name).mkdir(parents=True, exist_ok=True)
    config = own / "netdata.conf"
    text = _NETDATA.format(
        own=own,
        port=port,
        seconds=max(seconds, 1),
        refresh=_NETDATA_REFRESH_SECONDS,
        others="\n  ".join(f"{name} = no" for name in _NETDATA_PLUGINS),
        rest="\n  ".join(f"{name} = no" for name in _NETDATA_FILES),
    )
    config.write_text(text, "utf-8")
    command = ["netdata", "-D", "-P", str(own / "pid"), "-c", str(config)]
    page = "/api/v1/allmetrics?format=prometheus"
    name = f"netdata {version_of('netdata-core')}"
    with running(name, _with_sys(root, command), port, page) as program:
        yield program


def _with_sys(root: Path, command: list[str]) -> list[str]:
    """Run a command that finds the node's files at /sys; the process is the same."""
    mount = f"mount --bind {shlex.quote(str(root / 'sys'))} /sys"
    return ["unshare", "--mount", "sh", "-c", f"{mount} && exec {shlex.join(command)}"]


NODE_EXPORTER = Peer("node_exporter", "prometheus-node-exporter", node_exporter)

PEERS = (
    NODE_EXPORTER,
    Peer("+ netclass", "prometheus-node-exporter", node_exporter_netclass),
    Peer("collectd", "collectd", collectd, needs_root=True),
    Peer("netdata", "netdata", netdata, needs_root=True),
)


def available() -> tuple[Peer, ...]:
    """Return those that can be run; say of the others why not."""
    found = []
    for peer in PEERS:
        if peer.missing is None:
            found.append(peer)
        else:
            print(f"MISSING {peer.name}: {peer.missing}", file=sys.stderr)
    return tuple(found)
