"""Which names and texts a sink may let leave the node."""

from __future__ import annotations

from typing import Literal

from fabricmon.config.words import Section

Exposure = Literal["keep", "pseudonym", "remove"]
"""What becomes of a name: itself, a keyed code that is the same each time, nothing."""


class Redaction(Section, frozen=True):
    """What findings and states that leave the node may name."""

    jobs: Exposure = "keep"
    """Names of jobs and hashes of their communicators: a gate asks by job."""
    peers: Exposure = "keep"
    """Names and addresses of other nodes: several nodes naming one peer convict it."""
    users: Exposure = "remove"
    """Names of users, as paths of home folders tell them: nobody acts on them."""
    log_text: Literal["keep", "remove"] = "remove"
    """Text of job logs and of the kernel's log: anybody can write there.

    Numbers in them, the rule that matched and how often it did always stay."""
    key_file: str | None = None
    """File with the key of pseudonyms, 16 bytes or more, the same on all nodes that are
    to be joined; null: a random key of this node, kept in the state folder."""


class LineRedaction(Redaction, frozen=True):
    """What lines of the agent's own log may name. Needs a restart.

    A node's journal is read by who runs the node, so all is kept; where lines are
    collected, as those of pods are, they leave it.
    """

    jobs: Exposure = "keep"
    """Names of jobs and hashes of their communicators."""
    peers: Exposure = "keep"
    """Names and addresses of other nodes."""
    users: Exposure = "keep"
    """Names of users, as paths of home folders tell them."""
    log_text: Literal["keep", "remove"] = "keep"
    """Text of job logs and of the kernel's log that a finding quotes."""
    key_file: str | None = None
    """File with the key of pseudonyms; as ``mqtt.redact.key_file``."""


class LabelRedaction(Section, frozen=True):
    """What the labels ``job`` and ``peer`` may name."""

    jobs: Exposure = "keep"
    """Names of jobs; rules over the fleet need them or one key for all nodes."""
    peers: Exposure = "keep"
    """Names and addresses of other nodes."""
    key_file: str | None = None
    """File with the key of pseudonyms; as ``mqtt.redact.key_file``."""
