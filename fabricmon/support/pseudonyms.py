"""Keyed codes in the place of names and addresses, each in the shape of its kind. Pure.

A code is an HMAC (RFC 2104, SHA-256) of the kind and the name: the same name is the
same code in every file of a bundle, and in those of every node with the same key.
"""

from __future__ import annotations

import hmac
from ipaddress import IPv4Address, IPv6Address, ip_address

SHORTEST_KEY = 16
"""Bytes of a key; with less, names could be tried."""

_DIGITS = 12
_GUID_DIGITS = 16
_MAC_BYTES = 6
_EUI_BYTES = 8
_IPOIB_BYTES = 20  # of which the last 16 are a GID
_LOCAL = 0x02  # a MAC address that no vendor gave
_LINK_LOCAL = "fe80000000000000"
_MAPPED = "00000000000000000000ffff"  # an IPv4 address within a GID
_TEN = 10 << 24


class Pseudonyms:
    """Codes of one key."""

    def __init__(self, key: bytes) -> None:
        """Raise ValueError for a key that is too short."""
        if len(key) < SHORTEST_KEY:
            raise ValueError(f"a key has {SHORTEST_KEY} bytes or more")
        self._key = key

    def name(self, kind: str, text: str) -> str:
        """Return the code of a name, whatever its case: ``host-3f9a…``."""
        return f"{kind}-{self._hash(kind, text.lower())[:_DIGITS]}"

    def guid(self, digits: str) -> str:
        """Return the code of a GUID: 16 hexadecimal digits for 16."""
        if not digits.strip("0"):
            return digits
        return self._hash("guid", digits.lower())[:_GUID_DIGITS]

    def digits(self, digits: str) -> str:
        """Return the code of hexadecimal digits, an address or none: as many digits."""
        if len(digits) == _GUID_DIGITS:
            return self.guid(digits)
        if len(digits) == 2 * _GUID_DIGITS:
            return self._v6(digits.lower())
        return self._hash("digits", digits.lower())[: len(digits)]

    def bytes_of(self, text: str) -> str:
        """Return the code of ``aa:bb:cc…``: of a MAC address, or one of IPoIB."""
        digits = text.replace(":", "").lower()
        if not digits.strip("0") or not digits.strip("f"):
            return text
        count = len(digits) // 2
        if count == _MAC_BYTES:
            found = f"{_LOCAL:02x}{self._hash('mac', digits)[:10]}"
        elif count == _EUI_BYTES:
            found = self.guid(digits)
        elif count == _IPOIB_BYTES:
            found = f"{self._hash('qp', digits[:8])[:8]}{self._v6(digits[8:])}"
        else:
            found = (self._hash("bytes", digits) * 2)[: len(digits)]
        return ":".join(found[at : at + 2] for at in range(0, len(found), 2))

    def address(self, text: str) -> str:
        """Return the code of an IP address; raises ValueError if it is none."""
        address = ip_address(text)
        if address.is_loopback or address.is_unspecified:
            return text
        if isinstance(address, IPv4Address):
            return text if address.is_multicast else str(self._v4(address))
        coded = IPv6Address(int(self._v6(f"{int(address):032x}"), 16))
        is_whole = "::" not in text and all(len(part) == 4 for part in text.split(":"))  # noqa: PLR2004 - as sysfs writes a GID
        return coded.exploded if is_whole else str(coded)

    def uuid(self, text: str) -> str:
        """Return the code of a UUID."""
        found = self._hash("uuid", text.lower())
        cuts = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
        return "-".join(found[start:end] for start, end in cuts)

    def _v4(self, address: IPv4Address) -> IPv4Address:
        if int(address) == (1 << 32) - 1:
            return address
        return IPv4Address(_TEN | int(self._hash("v4", str(address))[:6], 16))

    def _v6(self, digits: str) -> str:
        """Return 32 digits for 32: a GID is a prefix and the GUID of a port."""
        if not digits.strip("0"):
            return digits
        if digits.startswith(_MAPPED):
            inner = IPv4Address(int(digits[-8:], 16))
            return f"{_MAPPED}{int(self._v4(inner)):08x}"
        prefix, guid = digits[:_GUID_DIGITS], digits[_GUID_DIGITS:]
        if prefix != _LINK_LOCAL and prefix.strip("0"):
            prefix = f"fd{self._hash('prefix', prefix)[:14]}"
        return f"{prefix}{self.guid(guid)}"

    def _hash(self, kind: str, text: str) -> str:
        message = f"{kind}\0{text}".encode("utf-8", "surrogatepass")
        return hmac.digest(self._key, message, "sha256").hex()
