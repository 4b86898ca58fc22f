"""Access Control Services out of a PCI function's configuration space.

From PCI Express Base Specification, 7.7 (extended capabilities) and 7.7.8 (ACS).
"""

from __future__ import annotations

import struct

EXTENDED = 0x100
"""Where extended capabilities begin; others than root see 64 bytes only."""

_ACS = 0x0D
_CONTROL = 6  # offset of the control register within the capability
_REDIRECTS = 0x04 | 0x08  # peer-to-peer requests and completions go up to the root
_MOST = 64  # capabilities; a list that goes in a circle ends here
_WORD, _HALF = struct.Struct("<I"), struct.Struct("<H")


def redirects_peers(config: bytes) -> bool | None:
    """Tell whether a port sends traffic between its neighbours up to the root.

    None where that cannot be seen: others than root are shown 64 bytes only.
    """
    if len(config) <= EXTENDED:
        return None
    offset = EXTENDED
    for _ in range(_MOST):
        if offset < EXTENDED or offset + _CONTROL + _HALF.size > len(config):
            return False
        (head,) = _WORD.unpack_from(config, offset)
        if head in {0, 0xFFFFFFFF}:
            return False
        if head & 0xFFFF == _ACS:
            (control,) = _HALF.unpack_from(config, offset + _CONTROL)
            return bool(control & _REDIRECTS)
        offset = head >> 20
    return False
