"""Errors that fabricmon raises on purpose; all else is a bug.

::

    FabricmonError
    ├── ConfigError   the configuration cannot be used
    ├── ParseError    a text is not what it claims to be
    │   └── AbsentError   a file that was named is not there
    ├── TraceError    a line of a trace cannot be used
    └── HostError     the node cannot be asked for something

Each prints as one line for a human; its parts are attributes.
"""

from __future__ import annotations


class FabricmonError(Exception):
    """Base of everything that fabricmon raises on purpose."""


class ConfigError(FabricmonError):
    """The configuration cannot be used.

    ``file``, ``key`` (dotted path) and ``line`` (from 1) say where, as far as known;
    ``remedy`` says what to write instead.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        key: str | None = None,
        line: int | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.key = key
        self.line = line
        self.remedy = remedy

    def __str__(self) -> str:
        place = _place(self.file, self.line)
        key = f"{self.key}: " if self.key else ""
        remedy = f" ({self.remedy})" if self.remedy else ""
        return f"{place}{key}{self.message}{remedy}"


class ParseError(FabricmonError):
    """A text is not what it claims to be.

    ``source`` names the file or tool, ``line`` counts from 1.
    """

    def __init__(
        self, message: str, *, source: str | None = None, line: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.source = source
        self.line = line

    def __str__(self) -> str:
        return _place(self.source, self.line) + self.message


class AbsentError(ParseError):
    """A file that was named is not there: whoever named it is wrong."""


class TraceError(FabricmonError):
    """A line of a trace cannot be used; ``line`` counts from 1."""

    def __init__(
        self, message: str, *, path: str | None = None, line: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.line = line

    def __str__(self) -> str:
        return _place(self.path, self.line) + self.message


class HostError(FabricmonError):
    """The node cannot be asked for something; ``errno`` is a name such as EINVAL."""

    def __init__(
        self, message: str, *, path: str | None = None, errno: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.errno = errno

    def __str__(self) -> str:
        why = f" ({self.errno})" if self.errno else ""
        return f"{_place(self.path, None)}{self.message}{why}"


def _place(file: str | None, line: int | None) -> str:
    if file is None and line is None:
        return ""
    if line is None:
        return f"{file}: "
    return f"{file}:{line}: " if file is not None else f"line {line}: "
