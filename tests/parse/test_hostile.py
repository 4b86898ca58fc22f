"""No text makes a parser raise, and what comes out can always be printed."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricmon.cli.document import check_document, dump
from fabricmon.parse.text import decode
from fabricmon.parse.tools import TOOLS, Tool
from tests.parse.cases import Case, load

CASES = load()
each_tool = pytest.mark.parametrize("tool", TOOLS, ids=[tool.kind for tool in TOOLS])
# Words that get a random text past the first test of some parser.
WORDS = (
    *("CA 'mlx5_0'\n", "Port 1:\n", "State: Active\n", "hca_id: x\n", "port: 1\n"),
    *("link a/1 ", "0/1: a/1: ", "state ACTIVE ", "x: 5\n", "# Port counters: Lid 1"),
    *(" port 1\n", "GUID 0x1 port ALL: [A == 1]\n", "## Summary: 1 nodes checked\n"),
    *("CA 1 1 0x1 4x EDR - SW 2 1 0x2 ( 'a' - 'b' )\n", "==( 4X 53.125 Gbps "),
    *("Active/ LinkUp)==>", '"x" (Could be 4X )\n', "Switch: 0x1 y:\n", "1 1[ ] "),
    *('{"result":{"output":{"Module Info":', '{"Temperature [C]":"61 [1..2]"}}}}'),
    *('[{"ifname":"a","port":1,"x":', "5}]", '"b"}]'),
    *("Module Info\n---\n", "ibpanic: [1] main: ", "\x1b[", "'", "/", ":", "\n", " "),
)
hostile = st.one_of(
    st.binary(max_size=300).map(decode),
    st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=5)), max_size=20).map(
        "".join
    ),
)


def printed(tool: Tool, stdout: str, stderr: str = "") -> dict[str, object]:
    """Return the document as a strict reader sees it."""
    raw = dump(check_document(tool.parse(stdout, stderr, None)))
    document = json.loads(raw.decode("utf-8"))
    assert isinstance(document, dict)
    return document


@each_tool
@given(stdout=hostile, stderr=hostile)
def test_any_text_gives_a_document(tool: Tool, stdout: str, stderr: str) -> None:
    """Nothing raises, and the document is strict JSON in UTF-8."""
    assert printed(tool, stdout, stderr)["schema"] == "fabricmon.check/1"


@each_tool
def test_no_text_is_no_health(tool: Tool) -> None:
    """A tool that printed nothing proves nothing."""
    document = printed(tool, "")
    assert document["verdict"] == "unknown"
    assert document["errors"]


@given(case=st.sampled_from(CASES), data=st.data())
def test_a_text_that_breaks_off_is_parsed_up_to_there(
    case: Case, data: st.DataObject
) -> None:
    """A pipe that closed early costs the rest and nothing more."""
    text = case.text("stdout")
    cut = data.draw(st.integers(0, len(text)))
    tool = next(tool for tool in TOOLS if tool.kind == case.kind)
    printed(tool, text[:cut], case.text("stderr"))


@given(case=st.sampled_from(CASES), tool=st.sampled_from(TOOLS))
def test_the_text_of_another_tool_is_not_health(case: Case, tool: Tool) -> None:
    """A wrong KIND finds nothing to call healthy in most texts, and never raises."""
    printed(tool, case.text("stdout"), case.text("stderr"))


@each_tool
@settings(max_examples=10)
@given(st.sampled_from([*WORDS, "[", "(", "- ", "==", "'", '{"a":', "[["]))
def test_a_long_text_takes_linear_time(tool: Tool, word: str) -> None:
    """A megabyte of anything is read within the time that a test may take."""
    tool.parse(word * (1_000_000 // len(word)), "", None)


@each_tool
def test_half_a_surrogate_does_not_reach_the_output(tool: Tool) -> None:
    """JSON may hold escapes that are no characters."""
    escaped = '{"result":{"output":{"Operational Info":{"State":"\\ud800"}}}}'
    printed(tool, escaped, "error: \ud800 failed")
