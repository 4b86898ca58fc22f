"""The key of pseudonyms: from a file that is named, else one of this node's own."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from fabricmon.config import Config
from fabricmon.errors import ConfigError
from fabricmon.redaction import SHORTEST_KEY

FILE = "redaction.key"
"""Name of the node's own key in the state folder."""

_BYTES = 32
_MOST_BYTES = 4096
_MODE = 0o600


def load_key(file: str | None, config: Config, key: str) -> bytes:
    """Return the key in ``file``, else the node's own, which is made if need be.

    A state folder that takes none gives a key that changes with the next start. Raises
    `ConfigError` naming the configuration's ``key`` for a file that is no key.
    """
    if file is None:
        return _own_key(Path(config.state_folder) / FILE)
    remedy = f"name a readable file of {SHORTEST_KEY} bytes or more"
    try:
        found = _read(Path(file))
    except OSError as error:
        message = f"{file}: {error.strerror or error}"
        raise ConfigError(message, key=key, remedy=remedy) from None
    if len(found) < SHORTEST_KEY:
        raise ConfigError(f"{file}: too short for a key", key=key, remedy=remedy)
    return found


def _own_key(path: Path) -> bytes:
    try:
        found = _read(path)
    except OSError:
        found = b""
    if len(found) >= SHORTEST_KEY:
        return found
    made = secrets.token_hex(_BYTES).encode()
    new = path.with_name(f".{path.name}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new.unlink(missing_ok=True)  # what a crash left may have another mode
        with os.fdopen(os.open(new, flags, _MODE), "wb") as file:
            file.write(made)
        new.replace(path)
    except OSError:
        return made
    return made


def _read(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_MOST_BYTES).strip()
