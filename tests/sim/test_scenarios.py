"""The shipped scenarios are sound, and every class has one."""

from collections import defaultdict
from functools import cache
from importlib.resources import files

import pytest

from fabricmon.errors import ConfigError
from fabricmon.sim.effects import Made
from fabricmon.sim.faults import FAULTS, check, class_of
from fabricmon.sim.load import load, read, shipped
from fabricmon.sim.profiles import PROFILES
from fabricmon.sim.scenario import Injection, Scenario
from fabricmon.sim.settling import settle
from fabricmon.sim.staging import injected

NAMES = shipped()

PAIRS = {
    "incast-or-pcie": {"F30", "F20"}, "storm-or-tree": {"F34", "F35"},
    "link-or-spine": {"F01", "F38"}, "sender-or-dead-peer": {"F02", "F50"},
    "leaf-or-ports": {"F40", "F06"}, "rate-or-collision": {"F11", "F31"},
    "rail-or-compute": {"F54", "F53"}, "reload-or-gone": {"N03", "F24"},
    "unused-or-dead": {"N08", "F10"}, "reorder-or-loss": {"N24", "F38"},
    "saturated-or-flapping": {"N05", "F06"}, "stale-or-ended": {"F51", "N19"},
}  # fmt: skip
"""The look-alikes of the catalogue, each told apart by one thing; files add others."""


@cache
def scenario(name: str) -> Scenario:
    """Return a shipped scenario, read once."""
    return load(name)


@cache
def made(name: str, seed: int = 1) -> Made:
    """Return what all injections of a scenario make together."""
    plan, parts = injected(scenario(name), seed)
    return settle(parts, [plan.node_name(node) for node in range(plan.nodes)])


def test_there_is_one_for_each_class() -> None:
    """Whoever asks for a class finds a file to look at."""
    used = {each.what for name in NAMES for each in scenario(name).inject}
    assert {row.id for row in FAULTS} == used


@pytest.mark.parametrize("name", NAMES)
def test_file_is_named_after_its_scenario(name: str) -> None:
    """The random numbers hang on the name."""
    assert scenario(name).name == name


@pytest.mark.parametrize("name", NAMES)
def test_file_says_what_is_right(name: str) -> None:
    """A person finds on top what happens and what a good monitor says."""
    text = files("fabricmon").joinpath("sim", "scenarios", f"{name}.yaml").read_text()
    head = text.split("name:")[0]
    assert head.startswith("# ")
    assert "Right: " in head or scenario(name).negative is False
    assert max(map(len, text.splitlines())) < 400


@pytest.mark.parametrize("name", [n for n in NAMES if scenario(n).negative])
def test_negative_has_no_fault(name: str) -> None:
    """Nothing there may be told at warning or above."""
    assert made(name).faults == ()
    assert all(class_of(each.what).silent for each in scenario(name).inject)


def test_what_holds_only_negatives_is_negative() -> None:
    """But for those of which a warning about somebody else is right."""
    for name in NAMES:
        rows = [class_of(each.what) for each in scenario(name).inject]
        silent = all(row.is_negative and row.silent for row in rows)
        assert scenario(name).negative is silent, name


@pytest.mark.parametrize("name", [n for n in NAMES if not scenario(n).negative])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_answer_is_due_before_the_end(name: str, seed: int) -> None:
    """A scenario that ends too soon would count as missed what was not yet due."""
    for fault in made(name, seed).faults:
        if fault.visible:
            assert fault.onset + fault.deadline <= scenario(name).duration


def test_masks_hide_what_they_say() -> None:
    """A file with a fault that nothing shows says so: it is there to abstain on."""
    hidden = {
        name for name in NAMES for fault in made(name).faults if not fault.visible
    }
    assert hidden == {name for name in NAMES if "hidden" in scenario(name).tags}
    for row in ("F01", "F02", "F13", "F15", "F20", "F38"):
        assert any(name.startswith(row.lower()) for name in hidden)


def test_every_profile_has_a_healthy_life() -> None:
    """False alarms are measured on each."""
    healthy = {
        scenario(name).profile for name in NAMES if "healthy" in scenario(name).tags
    }
    assert healthy == set(PROFILES)


def test_pairs_are_whole() -> None:
    """Two files each, of which another answer is right; all of the catalogue."""
    found: dict[str, list[set[str]]] = defaultdict(list)
    for name in NAMES:
        for tag in scenario(name).tags:
            if tag.startswith("pair:"):
                whats = {each.what for each in scenario(name).inject}
                found[tag.removeprefix("pair:")].append(whats)
    for pair, two in found.items():
        assert len(two) == 2, pair
        assert two[0] != two[1], pair
    whole = {pair: set().union(*two) for pair, two in found.items()}
    assert PAIRS.items() <= whole.items()


@pytest.mark.parametrize("name", NAMES)
def test_nothing_forbids_the_answer(name: str) -> None:
    """Compounds do not contradict themselves: a culprit may be named."""
    result = made(name)
    victims = {(place.node, place.device) for place in result.victims}
    for fault in result.faults:
        if fault.device is not None and class_of(fault.fault).id != "F39":
            assert (fault.node, fault.device) not in victims


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"beer": 1e-12}, "F01 has no parameter 'beer' .did you mean ber"),
        ({"ber": 1.0}, "F01: ber is 1.0 .from 1e-14 to 1e-06"),
        ({"ber": (1e-11, 1e-12)}, "the lower one first"),
        ({"ber": "high"}, "a number, or"),
        ({"ber": True}, "a number, or"),
    ],
)
def test_wrong_parameter_is_refused(
    parameters: dict[str, float | tuple[float, float] | str | bool], message: str
) -> None:
    """The message says what to write instead."""
    injection = Injection(what="F01", parameters=parameters)
    with pytest.raises(ConfigError, match=message) as caught:
        check(Scenario(name="x", summary="", inject=(injection,)))
    assert (caught.value.key or "").startswith("inject[0].parameters.")


def test_wrong_word_is_refused() -> None:
    """The message lists the words."""
    injection = Injection(what="F14", parameters={"scope": "rack"})
    with pytest.raises(ConfigError, match="one of: port, leaf"):
        check(Scenario(name="x", summary="", inject=(injection,)))


def test_wrong_switch_is_refused() -> None:
    """A number is no switch."""
    injection = Injection(what="F10", parameters={"unplugged": 1.0})
    with pytest.raises(ConfigError, match="true or false"):
        check(Scenario(name="x", summary="", inject=(injection,)))


def test_negative_has_no_deadline() -> None:
    """There is nothing to be answered."""
    injection = Injection(what="N25", parameters={"deadline": 5.0})
    with pytest.raises(ConfigError, match="N25 has no parameter 'deadline'"):
        check(Scenario(name="x", summary="", inject=(injection,)))


def test_error_names_the_line() -> None:
    """Whoever wrote the file finds the place."""
    text = "name: x\nsummary: y\ninject:\n  - what: F01\n    parameters: {bear: 1}\n"
    with pytest.raises(ConfigError) as caught:
        read(text, "x.yaml")
    assert caught.value.line == 5
