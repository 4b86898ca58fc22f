"""Settings in files, and what they name."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.parse.library_settings import (
    NamedValue,
    debug_pattern,
    library_version,
    named_devices,
    parse_configuration,
)


class TestConfiguration:
    def test_lines_of_the_libraries_alone(self) -> None:
        """A file may hold anything; comments and other names are none."""
        raw = b"# NCCL_A=1\nNCCL_DEBUG = WARN\nTOKEN=x\nOFI_NCCL_B=2\nNCCL_C\n\xff=1\n"
        assert parse_configuration(raw) == (
            NamedValue("NCCL_DEBUG", "WARN"),
            NamedValue("OFI_NCCL_B", "2"),
        )

    def test_a_file_without_end_is_cut(self) -> None:
        """NCCL knows some 150 settings."""
        raw = b"".join(b"NCCL_%d=%s\n" % (n, b"x" * 9000) for n in range(1000))
        found = parse_configuration(raw)
        assert (len(found), len(found[0].value)) == (256, 4096)


class TestDebugFile:
    @pytest.mark.parametrize(
        ("value", "host", "pid", "pattern"),
        [
            ("/t/nccl.%h.%p.log", "n1", 7, "/t/nccl.n1.7.log"),
            ("/t/nccl.%h.%p.log", None, None, "/t/nccl.*.*.log"),
            ("/t/100%%.%q", "n1", 7, "/t/100%.%q"),
            ("/t/%", "n1", 7, "/t/%"),
            ("/t/a[1]*?.log", "n1", 7, "/t/a[[]1][*][?].log"),
            ("nccl.log", "n1", 7, "nccl.log"),
        ],
    )
    def test_patterns(
        self, value: str, host: str | None, pid: int | None, pattern: str
    ) -> None:
        """NCCL replaces host and process, nothing else; all else is literal."""
        assert debug_pattern(value, host, pid) == pattern

    @pytest.mark.parametrize("value", ["", "/dev/stderr", "/proc/self/fd/2"])
    def test_what_is_no_file(self, value: str) -> None:
        """Output is found otherwise."""
        assert debug_pattern(value, "n1", 7) is None

    @given(st.text(st.characters(exclude_characters="%"), min_size=1))
    def test_any_name_matches_itself(self, name: str) -> None:
        """Whatever a user calls it."""
        pattern = debug_pattern(f"/t/{name}", "n1", 7)
        assert pattern is not None
        assert fnmatchcase(f"/t/{name}", pattern)


@pytest.mark.parametrize(
    ("value", "devices"),
    [
        ("mlx5_0,mlx5_1:1", ("mlx5_0*", "mlx5_1*/1")),
        ("=mlx5_0:1,=x", ("mlx5_0/1", "=x")),
        ("^mlx5_0", ()),
        ("mlx5:1:2", ("mlx5*/1",)),
        ("", ()),
    ],
)
def test_named_devices(value: str, devices: tuple[str, ...]) -> None:
    """Names are beginnings unless ``=`` says otherwise; ``^`` names none to use."""
    assert named_devices(value) == devices


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("/usr/lib/libnccl.so.2.21.5", "2.21.5"),
        ("/opt/rocm/lib/librccl.so.1.0.60102", "1.0.60102"),
        ("/usr/lib/libnccl.so.2", None),
        ("/usr/lib/libnccl-net.so.0.0.1", "0.0.1"),
        ("/usr/lib/libc.so.6", None),
    ],
)
def test_version_of_a_library(path: str, version: str | None) -> None:
    """The file's name has it where it is not just a link's."""
    assert library_version(path) == version
