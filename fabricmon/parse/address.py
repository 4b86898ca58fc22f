"""Addresses by which nodes name each other, in one form, so that two of them compare.

Logs add ports (``10.0.0.1<4567>``), zones (``fe80::1%eth0``), brackets; a RoCE GID is
an IPv6 address, of IPv4 the mapped one. What is left is an IPv4 address as dotted
decimal, an IPv6 address as RFC 5952 writes it, or a host name as it stands.
"""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address, IPv6Address

_MAPPED = "::ffff:"


def plain_peer(text: str) -> str:
    """Return an address or host name without port, zone, brackets and mapping."""
    name = text.strip().partition("<")[0].partition("%")[0].strip("[]")
    if ":" not in name:
        return name
    try:
        address = IPv6Address(name)
    except AddressValueError:
        return name.lower().removeprefix(_MAPPED)
    mapped = address.ipv4_mapped
    return str(address if mapped is None else mapped)


def is_routable(text: str) -> bool:
    """Tell whether a plain address may be one by which other nodes know this one.

    Loopback and link-local addresses are the same on many nodes.
    """
    try:
        kind = IPv6Address if ":" in text else IPv4Address
        address = kind(text)
    except AddressValueError:
        return False
    return not (
        address.is_loopback
        or address.is_link_local
        or address.is_unspecified
        or address.is_multicast
    )
