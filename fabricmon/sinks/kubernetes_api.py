"""The few calls to the Kubernetes API: a node's condition, and events about it.

lightkube speaks to the server: TLS, tokens that are renewed, kubeconfig files. It is
imported by who turns this on, for it takes 6 MiB.

The status of a node is only ever patched, by the strategic merge that knows conditions
by their type. The answer to a patch shows the node, so the right to read nodes, which
tells much more of the cluster, is not needed.
"""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fabricmon.config import Kubernetes
from fabricmon.sinks.kubernetes_series import Told
from fabricmon.sinks.kubernetes_words import CONDITION, Condition, Status, bounded
from fabricmon.value import Value

if TYPE_CHECKING:
    from lightkube import Client

CONTROLLER = "fabricmon.io/agent"
NAMESPACE = "default"
"""Where events about things without a namespace lie."""

MOST_NAME = 128  # bytes of reportingInstance
_MOST_ERROR = 300
_TOO_MANY = 429


class Known(Value, frozen=True):
    """The condition as the server has it; ``changed`` is its lastTransitionTime."""

    status: str
    reason: str
    message: str
    changed: str | None


class ApiError(Exception):
    """The server did not do what it was asked; ``status`` is 0 if it did not answer.

    ``wait`` is the pause in seconds that it asks for.
    """

    def __init__(self, message: str, status: int = 0, wait: float = 0.0) -> None:
        super().__init__(bounded(message, _MOST_ERROR))
        self.status = status
        self.wait = wait


def is_installed() -> bool:
    """Tell whether the library is there."""
    return find_spec("lightkube") is not None


class Api:
    """A connection to the API server for one node; for one thread."""

    def __init__(self, settings: Kubernetes, node: str) -> None:
        """Read accounts; raises `ApiError` where there are none."""
        from lightkube import Client  # noqa: PLC0415 - only where it is turned on

        self._node = node
        self._client: Client = self._guarded(
            Client,
            config=_account(settings),
            timeout=settings.timeout_seconds,
            field_manager="fabricmon",
        )

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def condition(self) -> Known | None:
        """Return the condition, None if the node has none: asked by an empty patch."""
        return self._patch_node({}, dry_run=True)

    def set_condition(self, condition: Condition, at: float, changed: str) -> None:
        """Write the condition, whole."""
        told = {
            "type": CONDITION,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
            "lastHeartbeatTime": seconds_text(at),
            "lastTransitionTime": changed,
        }
        self._patch_node({"status": {"conditions": [told]}})

    def remove_condition(self) -> None:
        """Take the condition off the node."""
        gone = {"$patch": "delete", "type": CONDITION}
        self._patch_node({"status": {"conditions": [gone]}})

    def write(self, told: Told) -> None:
        """Write an event, or count it in its series; `ApiError` 404 if that is gone."""
        from lightkube.resources.events_v1 import Event  # noqa: PLC0415
        from lightkube.types import PatchType  # noqa: PLC0415

        if told.is_repeat:
            seen = micro_text(told.at)
            series = {"series": {"count": told.count, "lastObservedTime": seen}}
            self._guarded(
                self._client.patch,
                Event,
                told.name,
                series,
                namespace=NAMESPACE,
                patch_type=PatchType.MERGE,
            )
        else:
            event = Event.from_dict(_event(told, self._node))
            self._guarded(self._client.create, event, namespace=NAMESPACE)

    def _patch_node(
        self, patch: dict[str, Any], *, dry_run: bool = False
    ) -> Known | None:
        from lightkube.resources.core_v1 import Node  # noqa: PLC0415

        node = self._guarded(
            self._client.patch, Node.Status, self._node, patch, dry_run=dry_run
        )
        conditions = (node.status and node.status.conditions) or ()
        found = (each for each in conditions if each.type == CONDITION)
        return next((_known(each) for each in found), None)

    def _guarded(self, call: Any, *args: Any, **options: Any) -> Any:
        """Call the library; whatever goes wrong there is an `ApiError`."""
        try:
            return call(*args, **options)
        except Exception as error:
            raise _failure(error) from error


def _account(settings: Kubernetes) -> Any:
    from lightkube import KubeConfig  # noqa: PLC0415

    try:
        if settings.kubeconfig is not None:
            return KubeConfig.from_file(settings.kubeconfig)
        return KubeConfig.from_service_account(settings.service_account)
    except KeyError as error:
        raise ApiError(f"not in a pod: {error} is not set") from error
    except Exception as error:
        raise ApiError(f"no account: {error}") from error


def _failure(error: Exception) -> ApiError:
    response = getattr(error, "response", None)
    if response is None:
        return ApiError(f"{type(error).__name__}: {error}")
    status = int(response.status_code)
    wait = response.headers.get("Retry-After", "")
    seconds = float(wait) if wait.isdecimal() and len(wait) < 5 else 0.0  # noqa: PLR2004 - digits
    return ApiError(f"{status}: {error}", status, seconds)


def _known(condition: Any) -> Known:
    changed = condition.lastTransitionTime
    return Known(
        condition.status,
        condition.reason or "",
        condition.message or "",
        None if changed is None else seconds_text(changed.timestamp()),
    )


def _event(told: Told, node: str) -> dict[str, Any]:
    return {
        "metadata": {"name": told.name, "namespace": NAMESPACE},
        "eventTime": micro_text(told.at),
        "reportingController": CONTROLLER,
        "reportingInstance": bounded(node, MOST_NAME),
        "action": told.text.action,
        "reason": told.text.reason,
        "type": told.text.kind,
        "note": told.text.note,
        # The kubelet says of nodes that their UID is their name; tools look for both.
        "regarding": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node},
    }


def seconds_text(unix_seconds: float) -> str:
    """Return a time as a condition has it."""
    moment = datetime.fromtimestamp(int(unix_seconds), UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_text(unix_seconds: float) -> str:
    """Return a time as an event has it: always with six digits after the second.

    Never zeros: the library leaves these out, and the server refuses that.
    """
    moment = datetime.fromtimestamp(unix_seconds, UTC)
    moment = moment.replace(microsecond=moment.microsecond or 1)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def status_of(known: Known | None) -> Status | None:
    """Return the status that the server has, None if it has none that means anything."""
    words: tuple[Status, ...] = ("True", "False", "Unknown")
    return next((w for w in words if known is not None and known.status == w), None)
