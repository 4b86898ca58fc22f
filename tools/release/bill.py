"""The bill of materials of a package: CycloneDX, the same bytes from the same parts."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from tools.package.commands import BuildError
from tools.release.parts import DebianPart, PythonPart

SCHEMA = SchemaVersion.V1_6
_NAMESPACE = uuid.UUID("3f9ab3f0-5b0a-5d0b-9d2e-0a8f2f0c7d11")
_SPDX = LicenseFactory()


@dataclass(frozen=True, slots=True)
class Package:
    """What a bill is of: a file by its name and hash, and the agent's wheel in it.

    ``epoch`` is as of when it was built, Unix seconds.
    """

    name: str
    sha256: str
    agent: PythonPart
    epoch: int


def bill(
    package: Package, parts: Sequence[PythonPart], debian: Sequence[DebianPart] = ()
) -> str:
    """Return the bill of a package as JSON.

    Raises `BuildError` if it does not fit the schema.
    """
    own = package.agent
    root = Component(
        name="fabricmon",
        version=own.version,
        type=ComponentType.APPLICATION,
        bom_ref=package.name,
        purl=PackageURL("pypi", None, "fabricmon", own.version),
        hashes=[_hash(package.sha256)],
        licenses=[_SPDX.make_from_string(own.licence)],
        properties=[Property(name="fabricmon:package", value=package.name)],
    )
    components = {part.name: _of_python(part) for part in parts}
    others = [_of_debian(part) for part in debian]
    made = Bom(
        components=[*components.values(), *others],
        serial_number=uuid.uuid5(_NAMESPACE, f"{package.name} {package.sha256}"),
        metadata=BomMetaData(
            component=root, timestamp=datetime.fromtimestamp(package.epoch, UTC)
        ),
    )
    for part in parts:
        made.register_dependency(components[part.name], _known(components, part.needs))
    made.register_dependency(root, [*_known(components, own.needs), *others])
    text: str = JsonV1Dot6(made).output_as_string(indent=1)
    problem = JsonStrictValidator(SCHEMA).validate_str(text)
    if problem is not None:
        raise BuildError(f"the bill of {package.name} is no CycloneDX: {problem}")
    return f"{text}\n"


def _of_python(part: PythonPart) -> Component:
    return Component(
        name=part.name,
        version=part.version,
        type=ComponentType.LIBRARY,
        bom_ref=f"pypi/{part.name}",
        purl=PackageURL("pypi", None, part.name, part.version),
        hashes=[_hash(part.sha256)],
        licenses=[_SPDX.make_from_string(part.licence)],
        description=part.summary or None,
    )


def _of_debian(part: DebianPart) -> Component:
    return Component(
        name=part.name,
        version=part.version,
        type=ComponentType.LIBRARY,
        bom_ref=f"deb/{part.name}",
        purl=PackageURL(
            "deb", "debian", part.name, part.version, {"distro": part.suite}
        ),
        # Debian's short names are like those of SPDX, but not all of them are such.
        licenses=[DisjunctiveLicense(name=name) for name in part.licences],
    )


def _known(components: dict[str, Component], names: Iterable[str]) -> list[Component]:
    return [components[name] for name in names if name in components]


def _hash(digest: str) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=digest)
