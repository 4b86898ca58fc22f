"""Names and addresses in documents and text: none survives, and joins still work."""

import json
import re
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricmon.support.anonymise import Anonymiser
from fabricmon.support.pseudonyms import Pseudonyms

KEY = b"0123456789abcdef"
GUID = "a088c20300100001"

_word = st.from_regex(r"[a-z]{2,8}[0-9]{1,4}(-[a-z0-9]{2,6})?", fullmatch=True).filter(
    lambda name: not name.startswith(("mlx", "host", "job", "user"))
)
_address4 = st.integers(0x0B000001, 0x7EFFFFFF).map(lambda n: str(IPv4Address(n)))
_address6 = st.integers(0x2000 << 112, 0x3FFF << 112).map(lambda n: str(IPv6Address(n)))
_guid = st.from_regex(r"[0-9a-f]{8}[a-f][0-9a-f]{7}", fullmatch=True)
_mac = st.integers(1, (1 << 40) - 1).map(
    lambda n: ":".join(f"04{n:010x}"[at : at + 2] for at in range(0, 12, 2))
)


def anonymiser(key: bytes = KEY) -> Anonymiser:
    """Return one that knows no name."""
    return Anonymiser(Pseudonyms(key))


def colons(guid: str) -> str:
    """Write a GUID as sysfs does."""
    return ":".join(guid[at : at + 4] for at in range(0, 16, 4))


def occurs(name: str, text: str) -> bool:
    """Tell whether a name is there as a word of its own."""
    edge = "[A-Za-z0-9]"
    found = re.search(rf"(?<!{edge}){re.escape(name)}(?!{edge})", text, re.IGNORECASE)
    return found is not None


class TestNothingSurvives:
    @given(
        host=_word,
        peer=_word,
        job=_word | st.integers(1000, 10**9).map(str),
        user=_word,
        serial=st.from_regex(r"[A-Z]{2}[0-9]{8}", fullmatch=True),
        v4=_address4,
        v6=_address6,
        guid=_guid,
        mac=_mac,
    )
    def test_in_documents_and_in_prose(
        self,
        *,
        host: str,
        peer: str,
        job: str,
        user: str,
        serial: str,
        v4: str,
        v6: str,
        guid: str,
        mac: str,
    ) -> None:
        """Of no kind of name, in any of the places where they occur."""
        names = (host, peer, job, user, serial, v4, v6, guid, colons(guid), mac)
        document: Any = {
            "node": f"{host}.example.org",
            "jobs": [{"job": job, "ports": ["mlx5_0/1"]}],
            "peers": {v4: peer},
            "user": user,
            "ports": [{"guid": guid, "node_guid": f"0x{guid}", "netdev": "ib0"}],
            "module": {"mlx5_0/1": {"serial": serial}},
            "findings": [
                {"subject": {"node": host, "peer": v6, "job": job},
                 "summary": f"{peer} ({v4}) answers {host.upper()} no more, job {job}"}
            ],
            "set": {
                "/sys/class/infiniband/mlx5_0/node_guid": f"{colons(guid)}\n",
                "/sys/class/net/ib0/address": f"{mac}\n",
                f"/sys/fs/cgroup/job_{job}/x": "",
            },
        }  # fmt: skip
        prose = (
            f"{host}.example.org kernel: {mac} {v4}:18515 [{v6}]:80 0x{guid}\n"
            f"/home/{user}/{job}/log job={job} user={user} {serial} ({peer})\n"
            f'"job": "{job}", peer={peer}'
        )
        made = anonymiser()
        made.learn_from(document)
        told = json.dumps(made.value(document)) + made.text(prose)
        assert [name for name in names if occurs(name, told)] == []
        assert "example" not in told

    @given(st.text())
    def test_any_text_is_survived(self, text: str) -> None:
        """Whatever stands in a log."""
        made = anonymiser()
        made.learn("host", ["gpu17"])
        assert isinstance(made.text(text), str)

    @given(st.text(alphabet="0123456789abcdef:. /x-", max_size=400))
    def test_what_looks_like_addresses(self, text: str) -> None:
        """Half of one, or many in a row."""
        assert isinstance(anonymiser().text(text), str)


class TestJoins:
    def test_a_guid_in_all_its_shapes(self) -> None:
        """A port is found again, also by the GID that is made of it."""
        made = anonymiser()
        shapes = f"{GUID} 0x{GUID} {colons(GUID)} fe80:0000:0000:0000:{colons(GUID)}"
        bare, with_x, with_colons, gid = made.text(shapes).split()
        assert with_x == f"0x{bare}"
        assert with_colons == colons(bare)
        assert gid == f"fe80:0000:0000:0000:{with_colons}"
        assert bare != GUID

    def test_an_address_within_a_gid(self) -> None:
        """RoCE puts the IPv4 address of the interface there."""
        made = anonymiser()
        gid = made.text("0000:0000:0000:0000:0000:ffff:0b01:0203")
        plain = IPv4Address(made.text("11.1.2.3"))
        assert int(IPv6Address(gid)) & 0xFFFFFFFF == int(plain)

    def test_a_host_by_any_of_its_names(self) -> None:
        """Short, whole, and in capitals."""
        made = anonymiser()
        made.learn("host", ["gpu17.athena.example.org"])
        words = made.text("gpu17 GPU17 gpu17.athena.example.org gpu17_ib0").split()
        assert len({word.removesuffix("_ib0") for word in words}) == 1

    def test_documents_and_prose_agree(self) -> None:
        """A number that is a job in one file is the same job in the other."""
        made = anonymiser()
        made.learn_from({"job": 47110})
        assert made.value({"job": "47110"})["job"] in made.text("the job 47110 ended")

    def test_the_key_decides(self) -> None:
        """The same key joins bundles of two nodes; another one does not."""
        text = f"job=x1234 {GUID}"
        assert anonymiser().text(text) == anonymiser().text(text)
        assert anonymiser(b"f" * 16).text(text) != anonymiser().text(text)

    def test_a_short_key_is_refused(self) -> None:
        """Who has the bundle could try names."""
        with pytest.raises(ValueError, match="16 bytes"):
            Pseudonyms(b"short")


class TestWhatStays:
    @pytest.mark.parametrize(
        "text",
        [
            "2026-01-01T12:34:56.789Z 12:34:56",
            "0000:17:00.0 mlx5_0/1 ibp23s0 eth0",
            "1234567890123456",
            "0000:0000:0000:0000",
            "::1 127.0.0.1 0.0.0.0 ::",
            "00:00:00:00:00:00 ff:ff:ff:ff:ff:ff",
            "400 Gb/sec (4X NDR)",
            "User=fabricmon /home/ std::string",
        ],
    )
    def test_what_names_nobody(self, text: str) -> None:
        """Times, PCI addresses, counters, and the addresses that all nodes have."""
        assert anonymiser().text(text) == text

    def test_words_and_versions_of_documents(self) -> None:
        """A firmware's version may look like an address."""
        tree = {"fw": "231.1.162.1", "kind": "port_down", "value": 12, "lid": 5}
        assert anonymiser().value(tree) == tree

    def test_a_counter_that_equals_a_job(self) -> None:
        """Its file is a number, and no name."""
        made = anonymiser()
        made.learn("job", ["123456"])
        tree = {"set": {"/sys/class/infiniband/mlx5_0/x/symbol_error": "123456\n"}}
        assert made.value(tree) == tree

    def test_a_name_that_is_a_word_of_paths(self) -> None:
        """Nobody could read the trace any more; where a key names it, it is coded."""
        made = anonymiser()
        made.learn("host", ["node", "sys"])
        path = "/sys/class/infiniband"
        assert made.text(path) == path
        assert made.value({"node": "node"})["node"].startswith("host-")
