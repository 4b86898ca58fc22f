"""What goes to a package index: the wheel and the source archive."""

import email.parser
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.support.packages import make_wheel

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel."""
    return make_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source archive."""
    return make_wheel(tmp_path_factory.mktemp("sdist"), "sdist")


def test_metadata(wheel: Path, sdist: Path) -> None:
    """An index takes both, without a warning."""
    command = [
        sys.executable,
        "-m",
        "twine",
        "check",
        "--strict",
        str(wheel),
        str(sdist),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout


def test_typed(wheel: Path) -> None:
    """Whoever imports it gets its types, and can see so beforehand."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith("/METADATA"))
        text = archive.read(metadata).decode()
    classifiers = email.parser.Parser().parsestr(text).get_all("Classifier")

    assert "fabricmon/py.typed" in names
    assert classifiers
    assert "Typing :: Typed" in classifiers


def test_twice_the_same(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    """A second build gives the same bytes."""
    assert make_wheel(tmp_path / "wheel").read_bytes() == wheel.read_bytes()
    assert make_wheel(tmp_path / "sdist", "sdist").read_bytes() == sdist.read_bytes()


def test_source_archive_makes_the_same_wheel(
    wheel: Path, sdist: Path, tmp_path: Path
) -> None:
    """Everything that the wheel is made of is in the source archive."""
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        check=True,
        cwd=source,
        env={"SOURCE_DATE_EPOCH": "1700000000"},
        capture_output=True,
    )

    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def test_source_archive_builds_packages(sdist: Path) -> None:
    """The source archive has what the packages, the image and the tests are made of."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    for folder in ("deploy", "systemd", "tools/package", "tests/deploy"):
        wanted = {
            str(path.relative_to(ROOT))
            for path in (ROOT / folder).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert wanted <= names
