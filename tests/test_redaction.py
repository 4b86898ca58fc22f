"""What a sink may not tell is in no part of a finding; what it may stays joinable."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.config import LabelRedaction, Redaction
from fabricmon.finding_document import FindingDocument, finding_document
from fabricmon.label_redaction import make_redactor, redacted
from fabricmon.model import (
    Evidence,
    JobFacts,
    JobUse,
    JobView,
    OutageBudget,
    PeerVotes,
    Subject,
)
from fabricmon.parse.nccl_rules import RULES
from fabricmon.redaction import WITHHELD, Names, Redactor
from tests.sinks import nodes

KEY = b"k" * 16
OPEN = Redaction(users="keep", log_text="keep")
JOB, PEER = "llama-70b", "gpu-node-17"


def document(
    summary: str = "down",
    subject: Subject | None = None,
    evidence: tuple[Evidence, ...] = (),
    kind: str = "nccl_error",
) -> FindingDocument:
    """Return a finding that says this."""
    base = nodes.incident(kind)
    finding = replace(
        base.finding,
        summary=summary,
        subject=subject or Subject(device="mlx5_0", port=1, peer=PEER, job=JOB),
        evidence=evidence or base.finding.evidence,
    )
    return finding_document(replace(base, finding=finding))


def text(finding: FindingDocument) -> str:
    """Return all of a finding as it is sent."""
    return msgspec.json.encode(finding).decode()


def log_line(value: str, row: str = "own_row") -> Evidence:
    """Return evidence out of a log."""
    return Evidence(f"{row} operator_rule", value, "1 lines", "nccl_log")


class TestNames:
    def test_kept(self) -> None:
        """A policy that keeps everything changes nothing."""
        told = document(f"{JOB} towards {PEER}, /home/alice/x")
        assert Redactor(OPEN, KEY).finding(told) == told

    @pytest.mark.parametrize("exposure", ["pseudonym", "remove"])
    def test_gone_everywhere(self, exposure: str) -> None:
        """From subject, summary and evidence, with or without a code instead."""
        policy = msgspec.convert({"jobs": exposure, "peers": exposure}, Redaction)
        evidence = (Evidence("peer", PEER, "", f"job/{JOB}", threshold=PEER),)
        told = document(f"{JOB}: failed towards {PEER}.", evidence=evidence)
        shown = text(Redactor(policy, KEY).finding(told))
        assert JOB not in shown
        assert PEER not in shown
        assert ("peer-" in shown) == (exposure == "pseudonym")

    def test_the_same_name_is_the_same_code(self) -> None:
        """With one key two nodes can be joined; with another nothing can."""
        policy = Redaction(peers="pseudonym", jobs="pseudonym")
        one, other = Redactor(policy, KEY), Redactor(policy, b"x" * 16)
        assert one.peer(PEER) == Redactor(policy, KEY).peer(PEER) != other.peer(PEER)
        assert one.peer("a") != one.job("a")

    def test_names_that_the_subject_lacks(self) -> None:
        """Names that are known on the node are found in prose as well."""
        policy = Redaction(peers="pseudonym")
        told = document("others name gpu-node-18 too", Subject(device="mlx5_0"))
        known = Names(peers=frozenset({"gpu-node-18"}))
        assert "gpu-node-18" not in text(Redactor(policy, KEY).finding(told, known))

    def test_addresses(self) -> None:
        """Addresses of peers go; PCI addresses, times and versions stay."""
        policy = Redaction(peers="remove")
        told = "10.1.2.3:4791 and fe80::1 at 12:34:56 on 0000:5e:00.0 fw 28.41.1000"
        assert Redactor(policy, KEY).text(told) == (
            "(peer):4791 and (peer) at 12:34:56 on 0000:5e:00.0 fw 28.41.1000"
        )

    def test_a_name_that_was_cut_off(self) -> None:
        """The beginning of a name at the end of a summary is one, too."""
        policy = Redaction(peers="remove")
        told = document(f"{'x' * 110} {PEER} and more that finds no room")
        assert told.summary.endswith("gpu-node…")
        assert "gpu-" not in text(Redactor(policy, KEY).finding(told))

    def test_numbers_are_no_jobs(self) -> None:
        """A job called 8 does not take the eights out of what is said."""
        policy = Redaction(jobs="remove")
        told = document("8 lines of job 8", Subject(job="8"))
        shown = Redactor(policy, KEY).finding(told)
        assert shown.summary == "8 lines of job (job)"

    def test_identity(self) -> None:
        """An identity made of a hidden name is hidden: it could be tried."""
        policy = Redaction(peers="pseudonym")
        told = document(kind="peer_suspect", subject=Subject(peer=PEER))
        shown = Redactor(policy, KEY).finding(told)
        assert shown.id not in {None, told.id}
        assert Redactor(policy, KEY).finding(told).id == shown.id
        port = document(kind="port_down")
        assert Redactor(policy, KEY).finding(port).id == port.id

    def test_users(self) -> None:
        """Home folders tell users; the default removes them."""
        told = "no space in /home/alice/run and /u/bob, owner=carol"
        shown = Redactor(Redaction(), KEY).text(told)
        assert shown == "no space in /home/(user)/run and /u/(user), owner=(user)"

    def test_short_keys(self) -> None:
        """A key that could be guessed is refused."""
        with pytest.raises(ValueError, match="16 bytes"):
            Redactor(OPEN, b"short")

    @given(
        peer=st.text(st.characters(codec="ascii", categories=["L"]), min_size=5),
        before=st.text(max_size=60),
        after=st.text(max_size=120),
    )
    def test_nothing_slips_through(self, peer: str, before: str, after: str) -> None:
        """Whatever stands around a name, as a word it is gone."""
        told = document(f"{before} {peer} {after}", Subject(peer=peer))
        shown = Redactor(Redaction(peers="remove"), KEY).finding(told)
        assert shown.subject.peer is None
        assert peer not in shown.summary.split()


class TestLogText:
    def test_removed(self) -> None:
        """Text of a log goes, also where the summary quotes it; its row stays."""
        told = document(
            "NCCL rule (tokens of alice: hunter2) on mlx5_0/1",
            evidence=(log_line("tokens of alice: hunter2"),),
        )
        shown = Redactor(Redaction(), KEY).finding(told)
        assert shown.summary == f"NCCL rule ({WITHHELD}) on mlx5_0/1"
        assert shown.evidence[0].value is None
        assert shown.evidence[0].signal == "own_row operator_rule"

    def test_quoted_in_part(self) -> None:
        """A summary that quotes the beginning of a line is replaced."""
        line = "mlx5_core 0000:5e:00.0: secret device said a lot of things"
        item = Evidence("kmsg", line, "", "kernel log")
        told = document(f"does not work: {line[:40]}", evidence=(item,))
        shown = text(Redactor(Redaction(), KEY).finding(told))
        assert "secret" not in shown
        assert WITHHELD in shown

    def test_words_of_built_in_rows_stay(self) -> None:
        """What fabricmon's own rules recognise is no secret; numbers never are."""
        items = (
            log_line("port error", RULES[0].id),
            Evidence("x completion", 12, "3 lines", "nccl_log"),
        )
        shown = Redactor(Redaction(), KEY).finding(document(evidence=items))
        assert [item.value for item in shown.evidence] == ["port error", 12]

    def test_kept(self) -> None:
        """A sink that may have it gets it."""
        told = document("says hello", evidence=(log_line("hello"),))
        assert Redactor(OPEN, KEY).finding(told) == told


class TestLabels:
    SHOWN = nodes.node(
        nodes.port(),
        job=JobView(jobs=(JobUse(JOB, "slurm"),)),
        job_facts=JobFacts((OutageBudget(JOB, 9.0),), (PeerVotes(PEER, 3, 1.0),)),
    )

    def test_codes(self) -> None:
        """Jobs and peers have the codes that they have in findings of the same key."""
        policy = LabelRedaction(jobs="pseudonym", peers="pseudonym")
        shown = redacted(self.SHOWN, make_redactor(policy, KEY))
        same = Redactor(Redaction(jobs="pseudonym", peers="pseudonym"), KEY)
        assert [use.job for use in shown.job.jobs] == [same.job(JOB)]
        assert shown.job_facts.votes[0].peer == same.peer(PEER)

    def test_removed(self) -> None:
        """What may not be told has no series, rather than one without a name."""
        policy = LabelRedaction(jobs="remove", peers="remove")
        shown = redacted(self.SHOWN, make_redactor(policy, KEY))
        facts = shown.job_facts
        assert not any((shown.job.jobs, facts.budgets, facts.votes))
