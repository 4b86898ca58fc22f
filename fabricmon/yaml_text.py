"""YAML as configuration needs it: positions kept, duplicates and surprises refused.

Only ``true`` and ``false`` are booleans (``off`` and ``no`` stay words) and ``1e-14``
is a number, as in YAML 1.2.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from fabricmon.errors import ConfigError
from fabricmon.value import Value

LARGEST = 2**63 - 1
"""Largest size of an integer."""

MAX_NODES = 100_000
"""Nodes of one document; aliases that expand without end stop here."""

Tree = dict[str, Any]


MOST_DEPTH = 64
"""Brackets within each other: PyYAML looks at all of them for every further token."""

TOO_DEEP = "nested too deeply"


class _Loader(yaml.SafeLoader):
    """Safe loader with the scalars of YAML 1.2, and with bounded nesting."""

    def fetch_flow_collection_start(self, token: type[yaml.Token]) -> None:
        """Begin a list or mapping in brackets."""
        if self.flow_level >= MOST_DEPTH:
            mark = self.get_mark()
            raise yaml.scanner.ScannerError(None, None, TOO_DEEP, mark)
        super().fetch_flow_collection_start(token)


_OLD_SCALARS = ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:float")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag not in _OLD_SCALARS]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$"
    ),
    list("-+.0123456789"),
)


class Document(Value, frozen=True):
    """A mapping read from YAML, and the line of every key by its dotted path."""

    tree: Tree
    lines: dict[str, int]


def around(key: str) -> str:
    """Return the dotted path that holds a key or an item; empty for an outermost one.

    Always shorter, also for a key that has brackets of its own.
    """
    return key[: max(key.rfind("."), key.rfind("["), 0)]


def placed(error: ConfigError, document: Document, file: str) -> ConfigError:
    """Return an error of a key with the line in which the key, or a part of it, stands."""
    key = error.key or ""
    while key and key not in document.lines:
        key = around(key)
    return ConfigError(
        error.message,
        file=file,
        line=document.lines.get(key),
        key=error.key,
        remedy=error.remedy,
    )


def parse(text: str, file: str) -> Document:
    """Read one document; raises `ConfigError` that names file, line and key."""
    try:
        loader = _Loader(text)
    except yaml.YAMLError as error:  # characters that YAML does not allow
        raise _readable(error, file) from None
    try:
        node = loader.get_single_node()
        if node is None:
            return Document({}, {})
        if not isinstance(node, yaml.MappingNode):
            message = "a configuration is a mapping of keys to values"
            raise ConfigError(message, file=file, line=node.start_mark.line + 1)
        walk = _Walk(loader, file)
        return Document(walk.mapping(node, ""), walk.lines)
    except yaml.YAMLError as error:
        raise _readable(error, file) from None
    except RecursionError:
        raise ConfigError(TOO_DEEP, file=file) from None
    finally:
        loader.dispose()


class _Walk:
    """Turns nodes into values, and notes where each key stands."""

    def __init__(self, loader: yaml.SafeLoader, file: str) -> None:
        self._loader = loader
        self._file = file
        self._count = 0
        self.lines: dict[str, int] = {}

    def mapping(self, node: yaml.MappingNode, path: str) -> Tree:
        tree: Tree = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = str(self._value(key_node, path))
            dotted = f"{path}.{key}" if path else key
            if key in tree:
                message = f"key stands twice, first in line {self.lines[dotted]}"
                remedy = "keep one of the two"
                raise ConfigError(
                    message, file=self._file, line=line, key=dotted, remedy=remedy
                )
            self.lines[dotted] = line
            tree[key] = self._value(value_node, dotted)
        return tree

    def _value(self, node: yaml.Node, path: str) -> Any:
        self._count += 1
        if self._count > MAX_NODES:
            raise ConfigError(f"more than {MAX_NODES} values", file=self._file)
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [
                self._value(item, f"{path}[{index}]")
                for index, item in enumerate(node.value)
            ]
        return self._scalar(node, path)

    def _scalar(self, node: yaml.Node, path: str) -> Any:
        try:
            value = self._loader.construct_object(node)
            problem = _unusable(value)
        except yaml.YAMLError:
            raise
        except Exception as error:  # noqa: BLE001 - any, by what stands there
            problem = f"not what its tag or form says: {error!s:.80}"
        if problem is None:
            return value
        raise ConfigError(
            problem,
            file=self._file,
            line=node.start_mark.line + 1,
            key=path or None,
            remedy="put text in quotes",
        )


def _unusable(value: object) -> str | None:
    """Say why a value can be none of a configuration, None if it can."""
    if isinstance(value, str):
        is_text = value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value)
        return None if is_text else "half a character (a lone surrogate)"
    if isinstance(value, (int, float)) and not -LARGEST <= value <= LARGEST:
        return "no number of a size that can be used"
    return None


_NO_VALUE = "expected the node content, but found "
_PLAIN_PROBLEMS = {
    "found unexpected end of stream": "a quote is not closed",
    "mapping values are not allowed here": "a colon where none can stand",
}


def _readable(error: yaml.YAMLError, file: str) -> ConfigError:
    mark = getattr(error, "problem_mark", None)
    said = getattr(error, "problem", None) or getattr(error, "reason", None)
    problem = _PLAIN_PROBLEMS.get(str(said), str(said))
    if "'<stream end>'" in problem:
        problem = "a bracket is not closed"
    elif problem.startswith(_NO_VALUE):
        problem = f"{problem.removeprefix(_NO_VALUE)} where a value should stand"
    return ConfigError(
        f"not YAML: {problem}",
        file=file,
        line=mark.line + 1 if mark else None,
        remedy="put text with special characters in quotes",
    )
