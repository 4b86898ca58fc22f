"""What in Python source opens a hole: found in its syntax, not in its text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

_CALLS = {
    "eval": "runs text",
    "exec": "runs text",
    "compile": "makes code of text",
    "__import__": "loads what text names",
    "breakpoint": "opens a debugger",
    "os.system": "has a shell",
    "os.popen": "has a shell",
    "subprocess.getoutput": "has a shell",
    "subprocess.getstatusoutput": "has a shell",
    "asyncio.create_subprocess_shell": "has a shell",
    "pty.spawn": "runs a program",
    "code.interact": "runs text",
    "yaml.load": "makes objects of text",
    "yaml.load_all": "makes objects of text",
    "yaml.unsafe_load": "makes objects of text",
    "yaml.full_load": "makes objects of text",
    "logging.config.fileConfig": "runs text",
    "tempfile.mktemp": "gives a name that others can take first",
    "ssl._create_unverified_context": "trusts everybody",
    "ssl.wrap_socket": "trusts everybody",
    "hashlib.md5": "can be forged",
    "hashlib.sha1": "can be forged",
    "hashlib.new": "can be any hash",
    "os.chmod": "follows a link",
    "os.umask": "is of the whole process",
    "os.setuid": "changes who it is",
    "os.seteuid": "changes who it is",
    "shutil.unpack_archive": "writes where an archive says",
    "socket.fromfd": "takes over a descriptor",
}
_PREFIXES = {"os.exec": "runs a program", "os.spawn": "runs a program"}
_METHODS = {"extractall": "writes where an archive says"}
_MODULES = {
    "pickle": "runs what it reads",
    "cPickle": "runs what it reads",
    "dill": "runs what it reads",
    "joblib": "runs what it reads",
    "marshal": "runs what it reads",
    "shelve": "runs what it reads",
    "xml": "expands entities without end",
    "telnetlib": "sends secrets in the clear",
    "ftplib": "sends secrets in the clear",
    "xmlrpc": "makes objects of text",
    "codeop": "runs text",
    "imp": "loads what text names",
    "multiprocessing.connection": "runs what it reads",
}
_KEYWORDS = {
    ("shell", True): "has a shell",
    ("verify", False): "trusts everybody",
    ("check_hostname", False): "trusts everybody",
    ("tls_insecure", True): "trusts everybody",
}
_ATTRIBUTES = {
    ("check_hostname", False): "trusts everybody",
    ("verify_mode", "CERT_NONE"): "trusts everybody",
    ("verify_mode", "CERT_OPTIONAL"): "trusts who shows nothing",
}
_SHARED_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
RUNS = frozenset({"subprocess", "pty", "multiprocessing"})


@dataclass(frozen=True, slots=True)
class Hole:
    """A place in the source, and what is wrong with it."""

    line: int
    what: str


@dataclass(slots=True)
class Look(ast.NodeVisitor):
    """Goes through a module; ``holes`` is what it finds, ``imports`` what it takes in."""

    holes: list[Hole] = field(default_factory=list)
    imports: set[str] = field(default_factory=set)
    _names: dict[str, str] = field(default_factory=dict)

    def visit_Import(self, node: ast.Import) -> None:
        """Remember what a name stands for."""
        for alias in node.names:
            self._take_in(node, alias.name)
            first = alias.name.partition(".")[0]
            self._names[alias.asname or first] = alias.name if alias.asname else first

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Remember what a name stands for."""
        module = node.module or ""
        self._take_in(node, module)
        for alias in node.names:
            self._names[alias.asname or alias.name] = f"{module}.{alias.name}"

    def visit_Call(self, node: ast.Call) -> None:
        """Look at what is called, and with what."""
        name = self._name_of(node.func)
        why = _CALLS.get(name, "")
        for prefix, reason in _PREFIXES.items():
            why = reason if name.startswith(prefix) else why
        if isinstance(node.func, ast.Attribute):
            why = why or _METHODS.get(node.func.attr, "")
        if name == "importlib.import_module" and not _is_constant(node.args[:1]):
            why = "loads what a value names"
        if why:
            self._note(node, f"{name} {why}")
        for keyword in node.keywords:
            self._judge_keyword(keyword)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Look at what is switched off."""
        for target in node.targets:
            if isinstance(target, ast.Attribute):
                value = _value_of(node.value)
                why = _ATTRIBUTES.get((target.attr, value))
                if why:
                    self._note(node, f"{target.attr} = {value} {why}")
        self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        """An assertion is gone under ``python -O``."""
        self._note(node, "assert is gone under python -O")

    def visit_Constant(self, node: ast.Constant) -> None:
        """A fixed path in a folder of all is there before us, as a link."""
        text = node.value
        if isinstance(text, str) and any(
            text == folder or text.startswith(f"{folder}/")
            for folder in _SHARED_FOLDERS
        ):
            self._note(node, f"{text!r} is a name that others can take first")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Look at what trusts everybody without being called."""
        if self._name_of(node) in {"ssl.CERT_NONE", "yaml.Loader", "yaml.UnsafeLoader"}:
            self._note(node, f"{self._name_of(node)} trusts everybody")
        self.generic_visit(node)

    def _judge_keyword(self, keyword: ast.keyword) -> None:
        value = keyword.value
        if keyword.arg is None or not isinstance(value, ast.Constant):
            return
        why = _KEYWORDS.get((keyword.arg, value.value))  # type: ignore[arg-type]
        if why and isinstance(value.value, bool):
            self._note(value, f"{keyword.arg}={value.value} {why}")

    def _take_in(self, node: ast.AST, module: str) -> None:
        self.imports.add(module)
        for name, why in _MODULES.items():
            if module == name or module.startswith(f"{name}."):
                self._note(node, f"{name} {why}")

    def _name_of(self, node: ast.AST) -> str:
        if isinstance(node, ast.Name):
            return self._names.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            return f"{self._name_of(node.value)}.{node.attr}"
        return ""

    def _note(self, node: ast.AST, what: str) -> None:
        self.holes.append(Hole(getattr(node, "lineno", 0), what))


def look_at(source: str) -> Look:
    """Return what is in a module."""
    look = Look()
    look.visit(ast.parse(source))
    return look


def _is_constant(nodes: list[ast.expr]) -> bool:
    return all(isinstance(node, ast.Constant) for node in nodes)


def _value_of(node: ast.expr) -> object:
    if isinstance(node, ast.Constant):
        return node.value
    return node.attr if isinstance(node, ast.Attribute) else None


def modules(names: Iterator[str] | set[str]) -> set[str]:
    """Return the first parts of names of modules."""
    return {name.partition(".")[0] for name in names}
