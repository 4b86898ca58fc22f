"""The symbolic links of a tree: where a path leads.

Places are paths without links; the place of the root is the empty text.
"""

from __future__ import annotations

from fabricmon.host.protocol import ReadError

MAX_LINKS = 40
"""Links followed on the way to a file, as in Linux (path_resolution(7))."""

MAX_PATH = 4096
"""Longest path and longest target of a link, as in Linux."""

MAX_REMEMBERED = 200_000
"""Paths whose place is remembered; a node has some thousands."""

_ABSENT = ReadError("ENOENT")
_LOOP = ReadError("ELOOP")
_TOO_LONG = ReadError("ENAMETOOLONG")


class Links:
    """Targets of links by the link's own place."""

    def __init__(self) -> None:
        self._targets: dict[str, str] = {}
        self._places: dict[str, str | ReadError] = {}
        self._own: dict[str, str | ReadError] = {}

    def at(self, place: str) -> str | None:
        """Return the target of the link at a place, None if there is none."""
        return self._targets.get(place)

    def all(self) -> dict[str, str]:
        """Return the target of every link by its place."""
        return dict(self._targets)

    def put(self, place: str, target: str) -> None:
        """Let there be a link at a place."""
        self._targets[place] = target
        self._forget()

    def drop(self, place: str) -> bool:
        """Take the link at a place away; False if there is none."""
        if self._targets.pop(place, None) is None:
            return False
        self._forget()
        return True

    def follow(self, path: str) -> str | ReadError:
        """Return the place that a path leads to, whether anything is there or not."""
        return self._remembered(path, self._places, follow_last=True)

    def own(self, path: str) -> str | ReadError:
        """Return the place of the last name itself, also where that is a link."""
        return self._remembered(path, self._own, follow_last=False)

    def _remembered(
        self, path: str, places: dict[str, str | ReadError], *, follow_last: bool
    ) -> str | ReadError:
        place = places.get(path)
        if place is None:
            if len(places) >= MAX_REMEMBERED:
                places.clear()
            place = places[path] = self._resolve(path, follow_last=follow_last)
        return place

    def _forget(self) -> None:
        """Drop what is remembered: a link that is new or gone leads elsewhere."""
        self._places.clear()
        self._own.clear()

    def _resolve(self, path: str, *, follow_last: bool) -> str | ReadError:
        if path[:1] != "/":
            return _ABSENT
        if len(path) > MAX_PATH:
            return _TOO_LONG
        place = ""
        followed = 0
        parts = path.split("/")[::-1]
        while parts:
            name = parts.pop()
            if name in {"", "."}:
                continue
            if name == "..":
                place = place.rpartition("/")[0]
                continue
            here = f"{place}/{name}"
            target = self._targets.get(here)
            if target is None or not (follow_last or any(parts)):
                place = here
                continue
            followed += 1
            if followed > MAX_LINKS:
                return _LOOP
            if target[:1] == "/":
                place = ""
            parts += target.split("/")[::-1]
        return place if len(place) <= MAX_PATH else _TOO_LONG
