"""Files that people write: bounded, UTF-8, and one clear error where they are not."""

from __future__ import annotations

from pathlib import Path

from fabricmon.errors import ConfigError

_MIB = 1 << 20


def read_text(
    file: Path,
    most_bytes: int,
    remedy: str,
    *,
    key: str | None = None,
    shorten: str | None = None,
) -> str:
    """Return the text of a file that ``key`` names, if a key does.

    ``remedy`` is for one that cannot be read, ``shorten`` for one of more than
    ``most_bytes``, which is told in MiB. Raises `ConfigError` that names the file,
    the key, and the line that is not UTF-8.
    """
    place = str(file)
    try:
        with file.open("rb") as stream:
            data = stream.read(most_bytes + 1)
    except (OSError, ValueError) as error:  # no name that a file can have
        message = getattr(error, "strerror", None) or str(error)
        raise ConfigError(message, file=place, key=key, remedy=remedy) from None
    if len(data) > most_bytes:
        message = f"larger than {most_bytes // _MIB} MiB"
        raise ConfigError(message, file=place, key=key, remedy=shorten)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        message, remedy = "not UTF-8 text", "write the file as UTF-8"
        raise ConfigError(
            message, file=place, key=key, line=line, remedy=remedy
        ) from None
