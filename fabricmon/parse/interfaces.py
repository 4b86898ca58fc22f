"""Names of network interfaces that no traffic between nodes should use."""

from __future__ import annotations

LOOPBACK = "lo"

CONTAINER_PREFIXES = (
    "docker", "veth", "br-", "virbr", "cni", "flannel", "cali", "tun", "tap",
    "vxlan", "kube-ipvs", "nodelocaldns", "lxc", "lxdbr", "podman", "dummy", "weave",
)  # fmt: skip
"""How names begin that Docker, Kubernetes, libvirt and tunnels give."""


def is_made_for_containers(name: str) -> bool:
    """Tell whether a name is one that container and tunnel software gives."""
    return name.startswith(CONTAINER_PREFIXES)
