"""What is published beside the packages: bills of materials, checksums, an audit."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.packages import EPOCH, ROOT, Packages
from tests.support.programs import MISSING
from tools.package.__main__ import CACHE, UNREACHABLE
from tools.package.commands import BuildError, UnreachableError
from tools.package.stage import LOCK, locked
from tools.release.audit import audit
from tools.release.parts import wheel_part

Json = dict[str, Any]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SERVICE = """
import json
print(json.dumps({{"dependencies": {dependencies}}}))
"""


def bills_of(dist: Path) -> tuple[Json, Json]:
    """Return the bills of the wheel and of the .deb."""
    read = [json.loads(path.read_text()) for path in sorted(dist.glob("*.cdx.json"))]
    wheel, deb = read
    return wheel, deb


def release(dist: Path) -> subprocess.CompletedProcess[str]:
    """Make a folder of packages a release, as ``make release`` does."""
    architecture = next(dist.glob("*.deb")).stem.rpartition("_")[2]
    return subprocess.run(
        [
            *(sys.executable, "-m", "tools.release", "--dist", str(dist)),
            *("--wheels", str(CACHE / "wheels" / architecture), "--epoch", EPOCH),
        ],
        check=False,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=110,
    )


@pytest.fixture(scope="module")
def dist(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel and a .deb that is a release."""
    pytest.importorskip("cyclonedx", reason=f"{MISSING}the group release")
    folder = tmp_path_factory.mktemp("dist")
    for path in (packages.wheel, packages.deb):
        shutil.copy(path, folder)
    done = release(folder)
    assert done.returncode in {0, UNREACHABLE}, done.stderr
    return folder


class TestBills:
    def test_fit_the_schema(self, dist: Path) -> None:
        """Both are CycloneDX as strictly as its schema says, and a broken one is not."""
        from cyclonedx.schema import SchemaVersion  # noqa: PLC0415 - may be missing
        from cyclonedx.validation.json import (  # noqa: PLC0415
            JsonStrictValidator,
        )

        validator = JsonStrictValidator(SchemaVersion.V1_6)
        for bill in bills_of(dist):
            assert validator.validate_str(json.dumps(bill)) is None
            bill["components"][0]["hashes"] = "none"
            assert validator.validate_str(json.dumps(bill)) is not None

    def test_list_what_is_locked_and_nothing_else(self, dist: Path) -> None:
        """Name and version of each dependency, in the wheel's and in the .deb's bill."""
        for bill in bills_of(dist):
            listed = {
                c["name"]: c["version"]
                for c in bill["components"]
                if c["purl"].startswith("pkg:pypi/")
            }
            assert listed == locked()

    def test_have_hashes_of_the_lock(self, dist: Path) -> None:
        """Each is the hash of a file that the lock accepts."""
        accepted = set(re.findall(r"sha256:([0-9a-f]{64})", LOCK.read_text()))
        for bill in bills_of(dist):
            for component in bill["components"]:
                if component["purl"].startswith("pkg:pypi/"):
                    (given,) = component["hashes"]
                    assert (given["alg"], given["content"] in accepted) == (
                        "SHA-256",
                        True,
                    )

    def test_have_licences(self, dist: Path) -> None:
        """Of everything, also of what Debian brings."""
        for bill in bills_of(dist):
            for component in bill["components"]:
                assert component["licenses"], component["name"]

    def test_tell_the_interpreter(self, dist: Path) -> None:
        """What of Debian is in the package, with its versions; none in the wheel."""
        wheel, deb = bills_of(dist)
        of_debian = {
            c["name"]: c["version"]
            for c in deb["components"]
            if c["purl"].startswith("pkg:deb/debian/")
        }
        assert set(of_debian) == {
            *("expat", "libffi", "openssl", "python3.11", "sqlite3", "zlib")
        }
        assert of_debian["python3.11"].startswith("3.11.")
        assert not any(c["purl"].startswith("pkg:deb") for c in wheel["components"])

    def test_say_what_needs_what(self, dist: Path) -> None:
        """The agent's own needs, and those of its dependencies."""
        for bill in bills_of(dist):
            root = bill["metadata"]["component"]["bom-ref"]
            needs = {d["ref"]: d.get("dependsOn", []) for d in bill["dependencies"]}
            assert {"pypi/msgspec", "pypi/psutil"} <= set(needs[root])
            assert needs["pypi/aiomqtt"] == ["pypi/paho-mqtt"]

    def test_are_the_same_bytes_again(self, dist: Path) -> None:
        """Everybody who builds gets the same."""
        before = {p.name: p.read_bytes() for p in dist.iterdir()}
        release(dist)
        assert {p.name: p.read_bytes() for p in dist.iterdir()} == before


def test_sums_are_of_all(dist: Path) -> None:
    """Whoever downloads can check each file, and none is left out."""
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"],
        check=False,
        cwd=dist,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    names = {line.split(":")[0] for line in done.stdout.splitlines()}
    assert names == {p.name for p in dist.iterdir()} - {"SHA256SUMS"}


class TestAudit:
    def ask(self, *dependencies: Json) -> int:
        """Ask a service that gives this answer."""
        code = SERVICE.format(dependencies=list(dependencies))
        return audit(LOCK, (sys.executable, "-c", code))

    def test_what_is_whole(self) -> None:
        """Everything was asked about, and nothing is known."""
        whole = {"name": "idna", "version": "3.20", "vulns": []}
        assert self.ask(whole) == 1

    def test_a_known_hole_ends_it(self) -> None:
        """It says which, and where it is mended."""
        hole = {"id": "PYSEC-1", "fix_versions": ["3.21"]}
        with pytest.raises(BuildError, match=r"idna 3.20: PYSEC-1.*3.21") as caught:
            self.ask({"name": "idna", "version": "3.20", "vulns": [hole]})
        assert not isinstance(caught.value, UnreachableError)

    def test_what_nobody_knows_is_not_whole(self) -> None:
        """A dependency that was left out was not asked about."""
        with pytest.raises(UnreachableError, match="does not know idna"):
            self.ask({"name": "idna", "skip_reason": "not found"})

    def test_a_service_that_is_away(self) -> None:
        """No answer is no clean bill."""
        with pytest.raises(UnreachableError, match="no answer"):
            audit(LOCK, (sys.executable, "-c", "raise SystemExit('away')"))

    def test_of_what_is_locked(self) -> None:
        """The real service, where it can be asked: no dependency has a known hole."""
        pytest.importorskip("pip_audit", reason=f"{MISSING}the group release")
        try:
            assert audit(LOCK) == len(locked())
        except UnreachableError as error:
            pytest.skip(f"{MISSING}the advisory service of PyPI ({error})"[:200])


def test_licences_are_read_in_every_spelling(dist: Path) -> None:
    """The agent's own wheel says its licence as an expression."""
    (wheel,) = dist.glob("*.whl")
    assert wheel_part(wheel).licence == "Apache-2.0"
