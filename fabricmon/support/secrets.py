"""A configuration as others may see it: secrets hidden, files that hold them named.

Pure.
"""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "(hidden)"

_SECRET = re.compile(r"pass(?:word|wd|phrase)|secret|token|credential|key|auth|cookie")
"""Words in a key that say that its value may be one."""

_SECRET_FIELD = re.compile(r"password|passwd|passphrase|secret|token|credential")
"""The same in a line of a log, where a key is most often one of the configuration."""

_IN_URL = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]{0,30}://)[^/@\s]{1,256}@")
_IN_TEXT = re.compile(
    r"(?i)(?P<name>[\w.-]{0,64}(?:password|passwd|passphrase|secret|token|credential)"
    r"[\w.-]{0,64}[\"']?\s{0,8}[=:]\s{0,8})(?P<value>\"[^\"\n]{0,512}\"|'[^'\n]{0,512}'"
    r"|[^\s,;}]{1,512})"
)


def without_secrets(tree: Any, key: str = "") -> Any:
    """Return a tree of a configuration in which no value can be a secret.

    A path stays, because it only says where one lies; so do numbers and switches.
    """
    if isinstance(tree, dict):
        return {name: without_secrets(each, str(name)) for name, each in tree.items()}
    if isinstance(tree, list | tuple):
        return [without_secrets(each, key) for each in tree]
    if not isinstance(tree, str):
        return tree
    if _SECRET.search(key.lower()) and tree and not tree.startswith("/"):
        return HIDDEN
    return _IN_URL.sub(rf"\g<scheme>{HIDDEN}@", tree)


def line_without_secrets(tree: Any, key: str = "") -> Any:
    """Return a line of a log, taken apart, in which nothing is told of such a name."""
    if isinstance(tree, dict):
        return {name: line_without_secrets(each, name) for name, each in tree.items()}
    if isinstance(tree, list):
        return [line_without_secrets(each, key) for each in tree]
    if not isinstance(tree, str):
        return tree
    if _SECRET_FIELD.search(key.lower()) and tree and not tree.startswith("/"):
        return HIDDEN
    return text_without_secrets(tree)


def text_without_secrets(text: str) -> str:
    """Return text, such as a unit's, in which nothing is assigned to such a name."""
    text = _IN_URL.sub(rf"\g<scheme>{HIDDEN}@", text)
    return _IN_TEXT.sub(_hidden, text)


def _hidden(found: re.Match[str]) -> str:
    value = found["value"].strip("\"'")
    return found[0] if value.startswith("/") else f"{found['name']}{HIDDEN}"
