r"""Sysfs trees of the recorded cases: one text file each, laid out or held in memory.

The grammar: `path<TAB>content`, a newline is added unless the content ends with `\c`;
`@dir`, `@link TARGET` and `@errno NAME` stand for what they say.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parent / "data"
SYSFS = DATA / "sysfs"
RXE = DATA / "rxe"

_FAILING_FILES = {"EINVAL": "/sys/class/net/lo/speed", "EIO": "/proc/self/mem"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One path: a folder, a link, a file that fails, or text."""

    path: str
    text: str = ""
    link: str | None = None
    errno: str | None = None
    is_folder: bool = False


def entries(manifest: Path) -> Iterator[Entry]:
    """Yield what a manifest describes, paths from the root without a slash before."""
    for line in manifest.read_text(encoding="utf-8").split("\n"):
        if not line or line.startswith("#"):
            continue
        path, content = line.split("\t", 1)
        if content == "@dir":
            yield Entry(path, is_folder=True)
        elif content.startswith("@link "):
            yield Entry(path, link=content.removeprefix("@link "))
        elif content.startswith("@errno "):
            yield Entry(path, errno=content.removeprefix("@errno "))
        else:
            yield Entry(path, text=_unescape(content))


def lay_out(manifest: Path, root: Path) -> None:
    """Make real files below a folder; errors come from real files that fail so."""
    for entry in entries(manifest):
        place = root / entry.path
        if entry.is_folder:
            place.mkdir(parents=True, exist_ok=True)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if entry.link is not None:
            place.symlink_to(entry.link)
        elif entry.errno is not None:
            place.symlink_to(_FAILING_FILES[entry.errno])
        else:
            place.write_text(entry.text, encoding="utf-8")


def _unescape(content: str) -> str:
    end = "\n"
    if content.endswith("\\c"):
        content, end = content[:-2], ""
    for escape, meant in (("\\\\", "\0"), ("\\n", "\n"), ("\\t", "\t"), ("\0", "\\")):
        content = content.replace(escape, meant)
    return content + end
