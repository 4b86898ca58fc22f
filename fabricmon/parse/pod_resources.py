"""The kubelet's list of which devices its pods have, out of its protobuf message.

The shape is ``ListPodResourcesResponse`` of the kubelet's podresources v1 API; its
fields are numbered there. Fields that are not needed are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricmon.value import Value

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MOST_BITS = 64
_MORE = 0x80  # the number goes on in the next byte
_PODS = _NAME = 1
_NAMESPACE = _DEVICE_IDS = 2
_CONTAINERS = 3
_DEVICES = 2


class PodDevices(Value, frozen=True):
    """A pod and the ids of the devices it was given, by the name of the resource."""

    namespace: str
    pod: str
    resources: tuple[str, ...]
    ids: tuple[str, ...]


def parse_pod_resources(message: bytes) -> tuple[PodDevices, ...]:
    """Return every pod in the message.

    Raises ValueError for what is no such message.
    """
    return tuple(_pod(raw) for raw in _texts(message, _PODS))


def _pod(raw: bytes) -> PodDevices:
    resources: dict[str, None] = {}
    ids: dict[str, None] = {}
    for container in _texts(raw, _CONTAINERS):
        for device in _texts(container, _DEVICES):
            resources.update((_decode(name), None) for name in _texts(device, _NAME))
            ids.update((_decode(item), None) for item in _texts(device, _DEVICE_IDS))
    name = next(map(_decode, _texts(raw, _NAME)), "")
    namespace = next(map(_decode, _texts(raw, _NAMESPACE)), "")
    return PodDevices(namespace, name, tuple(resources), tuple(ids))


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _texts(message: bytes, wanted: int) -> Iterator[bytes]:
    """Yield the values of a field that has a length."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == _BYTES:
            size, at = _varint(message, at)
            if at + size > len(message):
                raise ValueError("a protobuf field that ends beyond its message")
            if number == wanted:
                yield message[at : at + size]
            at += size
        elif kind == _VARINT:
            _, at = _varint(message, at)
        elif kind in {_FIXED64, _FIXED32}:
            at += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"no protobuf: wire type {kind}")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, _MOST_BITS, 7):
        if at >= len(message):
            raise ValueError("a protobuf number that ends beyond its message")
        byte = message[at]
        at += 1
        value |= (byte & ~_MORE) << shift
        if not byte & _MORE:
            return value, at
    raise ValueError("a protobuf number of more than 64 bits")
