import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.errors import TraceError
from fabricmon.host.replay import ReplayHost
from fabricmon.host.trace import (
    Header,
    TraceRecord,
)
from fabricmon.host.trace_read import TraceReader
from fabricmon.host.trace_write import TraceWriter
from tests.trace_keys import EVERY_KEY
from tests.traces import HEADER, read_all, write

texts = st.text(
    st.characters(codec="utf-8")
    | st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF)
)


@given(st.dictionaries(texts, texts), st.floats(0, 7 * 86400))
def test_any_text_survives(
    tmp_path_factory: pytest.TempPathFactory, texts: dict[str, str], t: float
) -> None:
    """Every string of bytes can be a file's content and a file's name."""
    path = tmp_path_factory.mktemp("trace") / "a"
    with TraceWriter(path, Header(node="n")) as writer:
        writer.write(TraceRecord(t=t, set=texts))
    records, problems = read_all(path)
    assert [record.set for record in records] == [texts]
    assert problems == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["/a", "/a/b", "ethtool:e", "eth0", "seconds", "x"]), inner
        )
    ),
    max_leaves=8,
)
wild_records = st.dictionaries(
    st.sampled_from(sorted(EVERY_KEY)), json_values, max_size=6
).map(lambda record: json.dumps({"t": 0, **record}))


@given(st.lists(wild_records, max_size=6))
def test_any_value_in_any_place(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    """Whatever stands under a key, the trace is read and replayed to its end."""
    folder = tmp_path_factory.mktemp("trace")
    host = ReplayHost(TraceReader(write(folder, lines)))
    host.advance(1e9)
    host.read_many(["/a", "/a/b"])
    host.names("/a")
    host.statistics("eth0")
    host.command("x", 1)


@given(st.lists(st.binary(max_size=60), max_size=6), st.booleans())
def test_any_bytes(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[bytes],
    headed: bool,  # noqa: FBT001
) -> None:
    """Bytes of any kind end in records, problems, or the one error of a trace."""
    path = tmp_path_factory.mktemp("trace") / "a"
    head = json.dumps(HEADER).encode() + b"\n" if headed else b""
    path.write_bytes(head + b"\n".join(lines))
    try:
        host = ReplayHost(TraceReader(path))
    except TraceError:
        assert not headed
        return
    host.advance(1e9)
    assert host.end < 1e9


@given(st.binary(max_size=400))
def test_any_bytes_after_the_gzip_header(
    tmp_path_factory: pytest.TempPathFactory, rest: bytes
) -> None:
    """Damaged compression is never more than the one error of a trace."""
    path = tmp_path_factory.mktemp("trace") / "a"
    path.write_bytes(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + rest)
    with pytest.raises(TraceError):
        TraceReader(path)
