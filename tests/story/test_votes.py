"""Who names whom, and whom that accuses."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from fabricmon.stories.votes import Shape, Suspect, Votes, rail_suspects, suspects

NODES = [f"node{number}" for number in range(8)]


def table(pairs: Iterable[tuple[str, str]]) -> Votes:
    """Return votes for these pairs."""
    votes = Votes()
    for observer, peer in pairs:
        votes.add(observer, peer)
    return votes


def accused(votes: Votes) -> tuple[Suspect, ...]:
    """Return the suspects by the usual thresholds."""
    return suspects(votes, 3, 0.5)


def test_many_observers_accuse_the_peer_they_name() -> None:
    """A column: three observers of three."""
    (suspect,) = accused(table((node, "bad") for node in NODES[:3]))
    assert (suspect.shape, suspect.name, suspect.votes) == (Shape.COLUMN, "bad", 3)
    assert suspect.certain


def test_one_observer_of_many_accuses_itself() -> None:
    """A row: all its peers fail, so it is what they have in common."""
    (suspect,) = accused(table(("bad", node) for node in NODES[:4]))
    assert (suspect.shape, suspect.name) == (Shape.ROW, "bad")


def test_one_pair_accuses_the_path() -> None:
    """A cell, both ways as one, and no certainty."""
    (suspect,) = accused(table([("a", "b"), ("b", "a")]))
    assert suspect.shape is Shape.CELL
    assert not suspect.certain
    assert suspect.reports == 2


def test_two_observers_are_too_few() -> None:
    """They leave two pairs, no suspect."""
    found = accused(table([("a", "x"), ("b", "x")]))
    assert [one.shape for one in found] == [Shape.CELL, Shape.CELL]


def test_observers_must_be_half_of_those_that_talk_to_the_peer() -> None:
    """Three of ten that have connections to it prove nothing against it."""
    votes = table((node, "x") for node in NODES[:3])
    for number in range(10):
        votes.add_talk("x", f"other{number}")
    assert all(one.shape is Shape.CELL for one in accused(votes))


def test_what_a_bad_node_names_is_not_accused() -> None:
    """Victims that both name it and are named by it stay out."""
    pairs = [(node, "bad") for node in NODES[:5]] + [
        ("bad", node) for node in NODES[:5]
    ]
    (suspect,) = accused(table(pairs))
    assert suspect.name == "bad"


def test_two_bad_nodes_are_both_found() -> None:
    """The second is looked for among what the first does not explain."""
    pairs = [(node, bad) for node in NODES for bad in ("bad1", "bad2")]
    assert {one.name for one in accused(table(pairs))} == {"bad1", "bad2"}


def test_everybody_against_everybody_is_no_link() -> None:
    """Software or configuration fails on every NIC at once."""
    pairs = [(one, other) for one in NODES[:5] for other in NODES[:5] if one != other]
    (suspect,) = accused(table(pairs))
    assert suspect.shape is Shape.EVERYONE


def test_a_ring_in_which_all_quarrel_is_no_link() -> None:
    """Each names only its neighbour, as in a job that uses rings."""
    pairs = zip(NODES, [*NODES[1:], NODES[0]], strict=True)
    (suspect,) = accused(table(pairs))
    assert suspect.shape is Shape.EVERYONE


def test_a_node_that_names_itself_does_not_vote() -> None:
    """Its own proxy died: that says nothing of a peer."""
    assert accused(table([("a", "a")])) == ()


def test_addresses_are_the_nodes_that_have_them() -> None:
    """Rails of one peer are one peer."""
    votes = table((node, f"10.0.0.{n}") for n, node in enumerate(NODES[:3]))
    names = {f"10.0.0.{n}": "bad" for n in range(3)}
    (suspect,) = accused(votes.renamed(names))
    assert suspect.name == "bad"


def test_one_rail_of_many_nodes_accuses_the_rail() -> None:
    """The same index, whatever the device is called on each node."""
    votes, rails = Votes(), {}
    for number, node in enumerate(NODES[:4]):
        rails[node] = {f"mlx5_{number}{rail}": rail for rail in range(4)}
        votes.add_port(node, f"mlx5_{number}2")
    (suspect,) = rail_suspects(votes, rails, 3)
    assert (suspect.shape, suspect.name) == (Shape.RAIL, "rail 2")


def test_all_rails_of_all_nodes_accuse_none() -> None:
    """Every NIC of every node at once is software."""
    votes, rails = Votes(), {}
    for node in NODES[:3]:
        rails[node] = {f"mlx5_{rail}": rail for rail in range(4)}
        for device in rails[node]:
            votes.add_port(node, device)
    (suspect,) = rail_suspects(votes, rails, 3)
    assert suspect.shape is Shape.EVERYONE


def test_nodes_with_one_nic_say_nothing_of_rails() -> None:
    """Their only rail fails whatever the reason."""
    votes = Votes()
    for node in NODES[:4]:
        votes.add_port(node, "mlx5_0")
    assert rail_suspects(votes, {node: {"mlx5_0": 0} for node in NODES}, 3) == ()


def test_old_votes_are_forgotten() -> None:
    """What was cast again stays."""
    votes = Votes()
    votes.add("a", "x", when=100.0)
    votes.add("b", "x", when=100.0)
    votes.add("b", "x", when=500.0)
    votes.forget(300.0)
    assert list(votes.pairs) == [("b", "x")]


def test_the_table_is_bounded() -> None:
    """Votes without room are counted."""
    votes = Votes()
    for number in range(5000):
        votes.add("a", f"peer{number}")
    assert len(votes.pairs) == 4096
    assert votes.dropped == 904


@given(st.lists(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)), max_size=40))
def test_every_vote_is_told_once_at_least(pairs: list[tuple[str, str]]) -> None:
    """No pair is lost, whatever the table looks like."""
    votes = table(pairs)
    found = accused(votes)
    told = {node for one in found for node in (*one.observers, *one.named, one.name)}
    assert {node for pair in votes.pairs for node in pair} <= told | {
        "all nodes"
    } or any(one.shape is Shape.EVERYONE for one in found)
