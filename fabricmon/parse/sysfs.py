"""Value grammars of the files below /sys/class/infiniband and of PCI devices.

Each takes the content of one file and returns a value, or None where the file does
not say; none of them raises. The forms that are accepted are those seen in the
field: with and without number, name, blanks and final newline.
"""

from __future__ import annotations

from fabricmon.parse.text import (
    MAX_WORD,
    decimal,
    decode,
    fold,
    hexadecimal,
    number,
)
from fabricmon.parse.words import LinkLayer, PhysState, PortState, Rate
from fabricmon.value import Value

NO_LID = 0xFFFF  # the permissive LID stands for "none assigned"
MAX_COUNTER = (1 << 64) - 1
MAX_REASON = 80  # characters kept of a text that stands in place of a number
PCI_WIDTHS = frozenset({1, 2, 4, 8, 12, 16, 32})  # a dead device answers 63 or 255

_STATE_NUMBERS = dict(enumerate(PortState))
# Words of sysfs and `rdma link`, then those of ibstat and iblinkinfo.
_STATE_WORDS = {fold(state): state for state in PortState} | {
    "initialize": PortState.INIT,
    "initializing": PortState.INIT,
}
_STATE_FILES = {f"{n}: {state}\n".encode(): state for n, state in enumerate(PortState)}
_PHYS_NUMBERS = dict(enumerate(PhysState, start=1))
# After sysfs's own: `rdma link` shortens one and calls number 4 ARMED; ibv_devinfo
# has one misspelt. ACTIVE is no physical state: beside a number it contradicts it.
_PHYS_WORDS: dict[str, PhysState | None] = {
    **{fold(state): state for state in PhysState},
    "linkerrorrecover": PhysState.RECOVERY,
    "armed": PhysState.TRAINING,
    "portconfigurationtrainning": PhysState.TRAINING,
    "active": None,
}
_LAYERS = {fold(layer): layer for layer in LinkLayer} | {
    # What ibstat and ibstatus print where the file is missing: kernels without it
    # knew no other layer.
    "ib": LinkLayer.INFINIBAND,
    "unspecified": LinkLayer.UNKNOWN,
}


class AerCount(Value, frozen=True):
    """One kind of PCIe error and how often it was seen since boot."""

    name: str
    value: int


class AerTable(Value, frozen=True):
    """One aer_dev_* file; ``total`` is its TOTAL_ERR_* line, None without one."""

    counts: tuple[AerCount, ...] = ()
    total: int | None = None


def parse_state(text: str | bytes) -> PortState | None:
    """Take the word of ``4: ACTIVE``, ``DOWN`` or ``PORT_INIT (2)``, else the number."""
    if text in _STATE_FILES:  # as the kernel writes it, which is read most of all
        return _STATE_FILES[text]
    word, value = _word_and_number(decode(text))
    known = _STATE_WORDS.get(fold(word).removeprefix("port"))
    return known if known is not None else _STATE_NUMBERS.get(value)


def parse_phys_state(text: str | bytes) -> PhysState | None:
    """Take the word of ``5: LinkUp`` or ``LINK_UP (5)``, else the number."""
    word, value = _word_and_number(decode(text))
    folded = fold(word)
    return _PHYS_WORDS[folded] if folded in _PHYS_WORDS else _PHYS_NUMBERS.get(value)


def _word_and_number(text: str) -> tuple[str, int]:
    """Split ``4: WORD``, ``WORD (4)``, ``WORD``; a missing number is -1."""
    before, colon, after = text.strip().partition(":")
    if colon:
        word, value = after.partition("(")[0], decimal(before.strip())
    else:
        word, _, rest = before.partition("(")
        value = decimal(rest.partition(")")[0].strip() or word.strip())
    return word, -1 if value is None else value


def parse_rate(text: str | bytes) -> Rate:
    """Read ``400 Gb/sec (4X NDR)`` and its shorter forms, ibstat's among them.

    The number of lanes is what stands before the X, never worked out from the rate.
    """
    head, _, tail = decode(text).partition("(")
    value, _, unit = head.strip().partition(" ")
    in_gigabit = fold(unit).startswith("g") or not unit.strip()
    gbps = number(value) if in_gigabit else None
    width = speed = None
    for word in tail[:MAX_WORD].partition(")")[0].split()[:2]:
        lanes = parse_lanes(word)
        if lanes is not None:
            width = lanes
        elif word.isascii() and word.isalnum():
            speed = word.upper()
    return Rate(gbps if gbps is not None and gbps >= 0 else None, width, speed)


def parse_lanes(word: str) -> int | None:
    """Return the number of ``4X`` or ``4x``."""
    return decimal(word[:-1]) if word[-1:] in {"x", "X"} else None


def parse_lid(text: str | bytes) -> int | None:
    """Return a LID, hexadecimal with 0x (sysfs) or decimal; None if none is assigned."""
    value = parse_sm_lid(text)
    return None if value == NO_LID else value


def parse_sm_lid(text: str | bytes) -> int | None:
    """Return the subnet manager's LID as it stands; here 0 means none."""
    word = decode(text).strip().lower()
    value = hexadecimal(word) if word.startswith("0x") else decimal(word)
    return value if value is not None and value <= NO_LID else None


def parse_guid(text: str | bytes) -> str | None:
    """Return 0x and 16 digits for every spelling of a GUID, zeros included.

    Tools print it in groups of four with colons, or without leading zeros.
    """
    word = decode(text).strip().lower()
    groups = word.split(":", 4)
    if len(groups) == 4 and all(0 < len(group) <= 4 for group in groups):  # noqa: PLR2004
        word = "".join(group.zfill(4) for group in groups)
    value = hexadecimal(word)
    return None if value is None else f"0x{value:016x}"


def parse_link_layer(text: str | bytes) -> LinkLayer | None:
    """Return the link layer; blanks and empty lines around it do not matter."""
    return _LAYERS.get(fold(decode(text)))


def parse_counter(raw: bytes) -> int | str:
    """Return the number, or what stands in its place (``N/A (no PMA)``, empty)."""
    digits = raw.strip()
    if digits.isdigit() and len(digits) <= 20:  # noqa: PLR2004 - a literal is faster
        value = int(digits)
        if value <= MAX_COUNTER:
            return value
    return digits[: 4 * MAX_REASON].decode("utf-8", "replace")[:MAX_REASON] or "empty"


def parse_pci_speed(text: str | bytes) -> float | None:
    """Return GT/s of ``16.0 GT/s PCIe``; None for ``Unknown``."""
    words = decode(text).split(None, 2)
    if len(words) < 2 or fold(words[1]) != "gts":  # noqa: PLR2004
        return None
    speed = number(words[0])
    return speed if speed is not None and speed > 0 else None


def parse_pci_width(text: str | bytes) -> int | None:
    """Return the lanes of a PCIe link; None for 0 (no link) and impossible numbers."""
    width = decimal(decode(text).strip())
    return width if width in PCI_WIDTHS else None


def parse_aer(text: str | bytes) -> AerTable:
    """Read a table of ``NAME VALUE`` lines that ends with ``TOTAL_ERR_COR VALUE``."""
    counts = []
    total = None
    for line in decode(text).split("\n"):
        name, _, digits = line.strip().rpartition(" ")
        value = decimal(digits)
        if value is None or not name:
            continue
        if name.startswith("TOTAL_"):
            total = value
        else:
            counts.append(AerCount(name.strip(), value))
    return AerTable(tuple(counts), total)


def parse_uptime(text: str | bytes) -> float | None:
    """Return the seconds since boot of /proc/uptime."""
    words = decode(text).split(None, 1)
    seconds = number(words[0]) if words else None
    return seconds if seconds is not None and seconds >= 0 else None
