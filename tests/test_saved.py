"""What survives a restart, as bytes and back."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.model import (
    Action,
    Evidence,
    Finding,
    Incident,
    IncidentState,
    Part,
    Severity,
    Subject,
)
from fabricmon.saved import (
    VERSION,
    SavedState,
    UnusableStateError,
    decode,
    encode,
)

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
NUMBER = st.floats(allow_nan=False)
VALUE = st.one_of(NUMBER, st.integers(-(2**63), 2**64 - 1), TEXT, st.none())
RAIL = st.one_of(st.none(), st.integers(0, 64), TEXT)

SUBJECTS = st.builds(
    Subject,
    device=st.none() | TEXT,
    port=st.none() | st.integers(0, 255),
    rail=RAIL,
    netdev=st.none() | TEXT,
    peer=st.none() | TEXT,
    leaf=st.none() | TEXT,
)
EVIDENCE = st.builds(
    Evidence,
    signal=TEXT,
    value=VALUE,
    unit=TEXT,
    source=TEXT,
    threshold=VALUE,
    window_seconds=st.none() | NUMBER,
)
FINDINGS = st.builds(
    Finding,
    kind=TEXT,
    subject=SUBJECTS,
    onset=NUMBER,
    evidence=st.lists(EVIDENCE, max_size=4).map(tuple),
    summary=TEXT,
    severity=st.sampled_from(Severity),
    part=st.sampled_from(Part),
    action=st.sampled_from(Action),
    confidence=NUMBER,
)
INCIDENTS = st.builds(
    Incident,
    id=TEXT,
    seq=st.integers(0, 2**60),
    state=st.sampled_from(IncidentState),
    time=NUMBER,
    finding=FINDINGS,
    node=TEXT,
    runbook=TEXT,
    dry_run=st.booleans(),
    last_seen=NUMBER,
)
STATES = st.builds(
    SavedState,
    node=TEXT,
    boot_id=TEXT,
    seq=st.integers(0, 2**60),
    written=NUMBER,
    ever_active=st.lists(TEXT, max_size=4).map(tuple),
    detectors=st.dictionaries(TEXT, st.binary(max_size=20), max_size=4),
    incidents=st.lists(INCIDENTS, max_size=3).map(tuple),
    inventory=st.binary(max_size=20),
    counters=st.binary(max_size=20),
)

STATE = SavedState(node="node-1", boot_id="boot-1", seq=7, written=1.5)


@given(STATES)
def test_what_is_written_is_read(state: SavedState) -> None:
    """Every state comes back as it was."""
    assert decode(encode(state)) == state


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(raw: bytes) -> None:
    """A damaged file is refused in one way, whatever is in it."""
    with pytest.raises(UnusableStateError):
        decode(raw)


@given(st.integers(0, 200), st.integers(0, 255))
def test_a_damaged_byte_is_survived(place: int, value: int) -> None:
    """One wrong byte gives a state or a refusal, nothing else."""
    raw = bytearray(encode(STATE))
    raw[place % len(raw)] = value
    try:
        state = decode(bytes(raw))
    except UnusableStateError:
        return
    assert isinstance(state, SavedState)


def test_a_newer_version_is_refused() -> None:
    """What a newer agent wrote may mean something else."""
    newer = msgspec.structs.replace(STATE, version=VERSION + 1)
    with pytest.raises(UnusableStateError, match="newer fabricmon"):
        decode(encode(newer))


def test_fields_of_later_are_passed_over() -> None:
    """A field that this version does not know is no reason to forget everything."""
    later = {**msgspec.to_builtins(STATE, builtin_types=(bytes,)), "later": [1, 2]}
    assert decode(msgspec.msgpack.encode(later)) == STATE


def test_names_that_are_no_text_are_refused() -> None:
    """Lone surrogates cannot be written; that is an error, not a crash."""
    with pytest.raises(UnusableStateError, match="cannot be written"):
        encode(msgspec.structs.replace(STATE, node="node-\udc80"))


def test_one_name_that_is_no_text_costs_only_its_own() -> None:
    """A device of a broken name is left out; the rest of the state is kept."""
    odd, sound = "mlx\udcff/1", "mlx5_0/1"
    state = msgspec.structs.replace(STATE, ever_active=(odd, sound))
    assert decode(encode(state)).ever_active == (sound,)
