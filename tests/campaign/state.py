"""The little that is kept: disks that take nothing, files that others wrote."""

from __future__ import annotations

import os
from pathlib import Path
from resource import RLIMIT_FSIZE, prlimit

import msgspec

from fabricmon.saved import VERSION
from tests.campaign.row import Fault, Guard
from tests.campaign.scene import Scene
from tests.support.agent import AgentProcess, Json, in_own_mounts

STORE = "host/store.py"
FILE = "state.msgpack"
OLD = Path(__file__).parent.parent / "data" / "state" / "version-1.msgpack"
OLD_FINDING = "2614a00bda9d39ee"


def _disk(scene: Scene, mount: str, errno: str) -> None:
    folder = scene.folder / "disk"
    folder.mkdir()
    config = {"state_folder": str(folder)}
    agent = scene.make(config, in_own_mounts(mount.replace("DISK", str(folder))))
    scene.begin(agent)
    scene.node.state("mlx5_0", "1: DOWN", "2: Polling")
    scene.finding("port_down", "mlx5_0")
    scene.value("state_saved", 0)
    error = scene.error(None, errno)
    assert error["file"] == str(folder / FILE)
    assert errno in scene.line("state_unsaved")["err"]


def full_disk(scene: Scene) -> None:
    fill = "cat /dev/zero >DISK/full 2>&- || true"
    _disk(scene, f"mount -t tmpfs -o size=4k none DISK && {fill}", "ENOSPC")


def read_only(scene: Scene) -> None:
    _disk(scene, "mount -t tmpfs -o ro none DISK", "EROFS")


def full_disk_of_history(scene: Scene) -> None:
    folder = scene.folder / "disk"
    folder.mkdir()
    mount = "mount -t tmpfs -o size=64k none DISK && cat /dev/zero >DISK/full 2>&-"
    config = {"state_folder": str(folder), "history": {"minutes": 10}}
    script = f"{mount.replace('DISK', str(folder))} || true"
    agent = scene.begin(scene.make(config, in_own_mounts(script)))
    scene.value("history_kept", 0)
    told = {each["file"]: each["message"] for each in agent.check()["errors"]}
    assert "No space left" in told[f"{folder}/history"]
    assert "No space left" in scene.line("history_ended")["err"]
    scene.node.state("mlx5_0", "1: DOWN", "2: Polling")
    scene.finding("port_down", "mlx5_0")


def file_limit(scene: Scene) -> None:
    """Let every write fail with EFBIG, that of the log too (RLIMIT_FSIZE)."""
    agent = scene.begin()
    scene.value("state_saved", 1)
    prlimit(agent.pid, RLIMIT_FSIZE, (0, -1))
    scene.node.state("mlx5_0", "1: DOWN", "2: Polling")
    scene.finding("port_down", "mlx5_0")
    scene.error(None, "EFBIG")
    prlimit(agent.pid, RLIMIT_FSIZE, (-1, -1))
    scene.node.state("mlx5_0", "4: ACTIVE")
    scene.until(lambda: not agent.check()["errors"], "it is saved again")


def removed_folder(scene: Scene) -> None:
    agent = scene.begin()
    scene.value("state_saved", 1)
    scene.take_away(agent.state_folder)
    scene.node.state("mlx5_0", "1: DOWN", "2: Polling")
    finding = scene.finding("port_down", "mlx5_0")
    _saved_with(scene, finding["id"])


def _saved_with(scene: Scene, text: str) -> None:
    file = scene.agent.state_folder / FILE
    scene.until(
        lambda: file.exists() and text.encode() in file.read_bytes(), "it is saved"
    )


def _prepared(scene: Scene, content: bytes) -> AgentProcess:
    agent = scene.make()
    agent.state_folder.mkdir()
    (agent.state_folder / FILE).write_bytes(content)
    return agent


def _ignored(scene: Scene, said: str) -> None:
    """Expect one line, a healthy node, and a good file in place of the bad one."""
    scene.begin()
    assert said in scene.line("state_ignored")["err"]
    scene.verdict("mlx5_0", "healthy")
    file = scene.agent.state_folder / FILE

    def is_good() -> bool:
        try:
            tree: Json = msgspec.msgpack.decode(file.read_bytes())
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        return bool(tree["version"] == VERSION and tree["node"] == "node01")

    scene.until(is_good, "a good one is written")


def corrupt(scene: Scene) -> None:
    _prepared(scene, b"\xc1 damaged")
    _ignored(scene, "damaged")


def truncated(scene: Scene) -> None:
    raw = OLD.read_bytes()
    _prepared(scene, raw[: len(raw) // 2])
    _ignored(scene, "damaged")


def not_text(scene: Scene) -> None:
    tree: Json = msgspec.msgpack.decode(OLD.read_bytes())
    raw = msgspec.msgpack.encode(tree).replace(b"node01", b"node\xff\xfe", 1)
    _prepared(scene, raw)
    _ignored(scene, "damaged")


def newer(scene: Scene) -> None:
    tree: Json = msgspec.msgpack.decode(OLD.read_bytes())
    raw = msgspec.msgpack.encode({**tree, "version": VERSION + 1})
    _prepared(scene, raw)
    _ignored(scene, "written by a newer fabricmon")


def older(scene: Scene) -> None:
    _prepared(scene, OLD.read_bytes())
    scene.node.state("mlx5_0", "1: DOWN", "2: Polling")
    agent = scene.begin()
    assert scene.finding("port_down", "mlx5_0")["id"] == OLD_FINDING
    assert agent.lines("state_ignored") == []
    assert [x for x in agent.lines("finding_open") if x["kind"] == "port_down"] == []


def huge(scene: Scene) -> None:
    agent = _prepared(scene, b"")
    os.truncate(agent.state_folder / FILE, 300 << 20)
    _ignored(scene, "larger than")


def fifo(scene: Scene) -> None:
    agent = scene.make()
    agent.state_folder.mkdir()
    os.mkfifo(agent.state_folder / FILE)
    _ignored(scene, FILE)


def planted_link(scene: Scene) -> None:
    """Let a link lie where the next state is written: to a file of somebody else."""
    victim = scene.folder / "victim"
    victim.write_text("precious")
    agent = scene.make()
    agent.state_folder.mkdir()
    (agent.state_folder / f".{FILE}.new").symlink_to(victim)
    scene.begin()
    scene.value("state_saved", 1)
    assert victim.read_text() == "precious"
    assert (agent.state_folder / FILE).stat().st_mode & 0o777 == 0o600


def crash(scene: Scene) -> None:
    agent = scene.begin()
    scene.node.state("mlx5_0", "1: DOWN", "2: Polling")
    before = scene.finding("port_down", "mlx5_0")
    _saved_with(scene, before["id"])
    agent.kill()
    scene.begin()
    assert scene.finding("port_down", "mlx5_0")["id"] == before["id"]
    told = [x for x in agent.lines("finding_open") if x["kind"] == "port_down"]
    assert len(told) == 1


def two_agents(scene: Scene) -> None:
    """Start a second agent on the same state folder."""
    first = scene.begin()
    scene.value("state_saved", 1)
    second = scene.make({"state_folder": str(first.state_folder)}, name="second")
    scene.begin(second)
    scene.until(lambda: second.lines("state_unsaved"), "the second one says so")
    assert "another agent" in second.lines("state_unsaved")[0]["err"]
    scene.node.state("mlx5_0", "1: DOWN", "2: Polling")
    scene.finding("port_down", "mlx5_0")
    scene.until(lambda: second.findings("port_down"), "the second one finds it too")
    assert first.lines("state_unsaved") == []
    scene.goes_on(second)
    first.stop()
    scene.node.state("mlx5_0", "4: ACTIVE")
    scene.until(lambda: second.metric("state_saved") == 1, "the second one takes over")


FAULTS = (
    Fault(
        "state-disk-full",
        "the disk of the state folder is full",
        "findings made and served, state_saved 0, ENOSPC in check, one log line",
        Guard(
            STORE,
            "            _sync_folder(self._folder)\n        except OSError as error:",
            "            _sync_folder(self._folder)\n        except KeyError as error:",
        ),
        full_disk,
    ),
    Fault(
        "history-disk-full",
        "the disk of the last minutes (`history`) is full",
        "the history ends: history_kept 0, an error in check, one log line; all else goes on",
        Guard(
            "agent.py",
            "        self._pipeline.unrecorded = ReadFailure("
            "None, None, folder, None, error)\n",
            "        pass\n",
        ),
        full_disk_of_history,
    ),
    Fault(
        "state-read-only",
        "the state folder is mounted read-only",
        "the same with EROFS",
        Guard(
            "agent.py",
            "            self._pipeline.unsaved = _failure(problem)\n",
            "            pass\n",
        ),
        read_only,
    ),
    Fault(
        "state-file-limit",
        "every write fails (RLIMIT_FSIZE 0), then works again",
        "it goes on, EFBIG told; nothing is told once it works again",
        Guard(
            "runtime/logging.py",
            "        except (OSError, ValueError):  # nobody reads, disk full, closed",
            "        except KeyError:",
        ),
        file_limit,
    ),
    Fault(
        "state-folder-removed",
        "the state folder is removed while the agent runs",
        "it is made again, and the next finding is in it",
        Guard(
            STORE,
            "            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)\n",
            "",
        ),
        removed_folder,
    ),
    Fault(
        "state-corrupt",
        "the saved state holds bytes that are no MessagePack",
        "ignored with one line, and replaced",
        Guard(
            "saved.py",
            "except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:",
            "except (msgspec.ValidationError, UnicodeDecodeError) as error:",
        ),
        corrupt,
    ),
    Fault(
        "state-truncated",
        "the saved state ends in the middle",
        "ignored with one line, and replaced",
        Guard(
            STORE,
            '            return StoreProblem(self.path, f"ignored: {error}")',
            "            raise",
        ),
        truncated,
    ),
    Fault(
        "state-not-text",
        "a name in the saved state is no UTF-8",
        "ignored with one line, and replaced",
        Guard(
            "saved.py",
            "except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:",
            "except (UnicodeDecodeError, RecursionError) as error:",
        ),
        not_text,
    ),
    Fault(
        "state-newer",
        "the saved state is of a later version",
        "passed over with one line that says so, and replaced",
        Guard("saved.py", "if version > VERSION:", "if False:"),
        newer,
    ),
    Fault(
        "state-older",
        "the saved state is of the first version",
        "taken: the open finding keeps its id and is not told again",
        Guard(
            "agent.py",
            "for reason in self._pipeline.restore(saved) if saved is not None else ():",
            "for reason in ():",
        ),
        older,
    ),
    Fault(
        "state-huge",
        "the saved state is a file of 300 MiB",
        "ignored with one line, never read into memory",
        Guard(STORE, "file.read(MAX_BYTES + 1)", "file.read()"),
        huge,
    ),
    Fault(
        "state-is-pipe",
        "a pipe lies in the place of the saved state",
        "the start does not wait for it; it is ignored and replaced",
        Guard(STORE, "os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK", "os.O_RDONLY"),
        fifo,
    ),
    Fault(
        "state-planted-link",
        "a link to a file of somebody else lies where the state is written",
        "that file is untouched, the state saved, readable for its owner alone",
        Guard(
            STORE,
            "    path.unlink(missing_ok=True)\n"
            "    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL"
            " | os.O_CLOEXEC | os.O_NOFOLLOW\n",
            "    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC\n",
        ),
        planted_link,
    ),
    Fault(
        "killed",
        "SIGKILL after a finding was told",
        "after the restart it goes on under its id and is not told again",
        Guard(
            "agent.py",
            "        self._save(changed=bool(changes))\n",
            "        self._save(changed=False)\n",
        ),
        crash,
    ),
    Fault(
        "two-agents-one-state",
        "a second agent is started on the same state folder",
        "it says that it does not save, watches all the same, and saves once it is alone",
        Guard(STORE, "if not self._holds_folder():", "if False:"),
        two_agents,
    ),
)
