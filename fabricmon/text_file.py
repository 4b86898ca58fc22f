"""Files that people write: bounded, UTF-8, and one clear error where they are not."""

from __future__ import annotations

from pathlib import Path

from fabricmon.errors import ConfigError


def read_text(file: Path, most_bytes: int, remedy: str) -> str:
    """Return the text of a file; ``remedy`` is for one that cannot be read.

    Raises `ConfigError` that names the file, and the line that is not UTF-8.
    """
    try:
        with file.open("rb") as stream:
            data = stream.read(most_bytes + 1)
    except OSError as error:
        message = error.strerror or str(error)
        raise ConfigError(message, file=str(file), remedy=remedy) from None
    if len(data) > most_bytes:
        raise ConfigError(f"larger than {most_bytes} bytes", file=str(file))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError("not UTF-8 text", file=str(file), line=line) from None
