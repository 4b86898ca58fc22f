"""Addresses by which other nodes name this one: those of its own interfaces.

What containers and services use repeats on every node and is left out.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from fabricmon.config import Config
from fabricmon.host.protocol import Host, ReadError
from fabricmon.model import NodeAddresses, Target
from fabricmon.parse.address import is_routable, plain_peer

MOST_ADDRESSES = 256
"""A node has fewer of its own; one that routes for containers may have thousands."""

PRIVATE = (
    *("lo", "docker*", "podman*", "virbr*", "lxc*", "lxdbr*", "veth*", "cni*"),
    *("flannel*", "cali*", "tunl*", "vxlan.*", "cilium*", "weave*", "kube-*"),
    *("nodelocaldns*", "ovn-*", "antrea-*", "dummy*"),
)
"""Interfaces of container networks, virtual machines and services, by usual names."""


def poll(host: Host, _target: Target, _config: Config) -> tuple[NodeAddresses, ...]:
    """List the addresses; none where the network is not that of the node."""
    found = host.addresses()
    if isinstance(found, ReadError):
        return ()
    plain = (plain_peer(each.address) for each in found if _is_own(each.netdev))
    kept = tuple(dict.fromkeys(address for address in plain if is_routable(address)))
    return (NodeAddresses(host.monotonic(), kept[:MOST_ADDRESSES]),)


def _is_own(netdev: str) -> bool:
    return not any(fnmatchcase(netdev, pattern) for pattern in PRIVATE)
