"""The kubelet's answer, as a real gRPC server encoded it."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.parse.pod_resources import PodDevices, parse_pod_resources

# One pod with two GPUs and a virtual function, encoded by protobuf.
ANSWER = (
    b"\nR\n\x07train-0\x12\x02ml\x1aC\n\x07pytorch\x12\x1e\n\x0envidia.com/gpu\x12\x05"
    b"GPU-1\x12\x05GPU-2\x12\x18\n\x08rdma/hca\x12\x0c0000:81:00.2"
)
TRAIN = PodDevices(
    "ml", "train-0", ("nvidia.com/gpu", "rdma/hca"), ("GPU-1", "GPU-2", "0000:81:00.2")
)


def test_pods_and_their_devices() -> None:
    """Names, resources and the ids of devices."""
    assert parse_pod_resources(ANSWER * 2) == (TRAIN, TRAIN)


def test_fields_of_later_versions_are_passed_over() -> None:
    """Numbers, fixed sizes and texts that nobody knows."""
    more = b"\x28\x96\x01" + b"\x31" + b"x" * 8 + b"\x3d" + b"x" * 4 + b"\x42\x01x"
    assert parse_pod_resources(more + ANSWER + more) == (TRAIN,)


@pytest.mark.parametrize("cut", range(1, len(ANSWER) - 1, 7))
def test_a_cut_message_is_none(cut: int) -> None:
    """Half of it may name half of the devices."""
    with pytest.raises(ValueError):
        parse_pod_resources(ANSWER[:cut])


@given(st.binary())
def test_any_bytes(raw: bytes) -> None:
    """They are a message or a ValueError."""
    with contextlib.suppress(ValueError):
        parse_pod_resources(raw)
