"""The scripts for Slurm, run as slurmd runs them, against what they ask of Slurm."""

import grp
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.deploy.cluster import DEPLOY, NODE_NAME, Cluster, down, finding
from tests.support.agent import CLASS, AgentProcess
from tests.support.programs import require

DOWN = (
    f"update nodename={NODE_NAME} state=drain reason=fabricmon: mlx5_4/1 DOWN down=41s"
)
FLAP = (
    f"update nodename={NODE_NAME} state=drain "
    "reason=fabricmon: mlx5_4/1 FLAP 3x/3h down=41s"
)
RESUME = f"update nodename={NODE_NAME} state=resume"
JOB = {"SLURM_JOB_ID": "4711", "SLURM_JOB_UID": str(os.getuid())}
SCRIPTS = ("healthcheck.sh", "prolog.sh", "epilog.sh", "resume.sh")


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """Return a node whose ports are all well and that Slurm holds to be idle."""
    return Cluster(tmp_path)


def ran(cluster: Cluster, script: str) -> list[str]:
    """Run a script that must succeed; return what it asked of `scontrol`."""
    result = cluster.run(script, **JOB)
    assert result.status == 0, result.err
    return cluster.calls


class TestHealthCheck:
    def test_a_healthy_node_is_left_alone(self, cluster: Cluster) -> None:
        """Not even its state is asked for."""
        with cluster.agent():
            assert ran(cluster, "healthcheck.sh") == []
        assert not (cluster.folder / "sinfo.calls").exists()

    def test_a_port_that_is_down_drains(self, cluster: Cluster) -> None:
        """With a reason that says which, what and since when, in one line."""
        with cluster.agent(down()):
            assert ran(cluster, "healthcheck.sh") == [DOWN]

    def test_what_can_wait_waits(self, cluster: Cluster) -> None:
        """A job that still runs on a link that flaps is not to be disturbed."""
        with cluster.agent(finding()):
            assert ran(cluster, "healthcheck.sh") == []

    @pytest.mark.parametrize("role", ["victim", "observer"])
    def test_who_only_suffers_stays(self, cluster: Cluster, role: str) -> None:
        """The fault is elsewhere: draining here would take out the wrong node."""
        with cluster.agent(down(role=role, action="none")):
            assert ran(cluster, "healthcheck.sh") == []
        with cluster.agent(down(role=role)):
            assert ran(cluster, "healthcheck.sh") == []

    @pytest.mark.parametrize(
        "change", [{"dry_run": True}, {"state": "resolved"}, {"severity": "info"}]
    )
    def test_what_is_no_alarm_drains_nothing(
        self, cluster: Cluster, change: dict[str, object]
    ) -> None:
        """Kinds in shadow, what is over, and what is only for information."""
        with cluster.agent(down(**change)):
            assert ran(cluster, "healthcheck.sh") == []

    def test_unknown_never_drains(self, cluster: Cluster) -> None:
        """A monitor that cannot see is no reason to lose a node."""
        stale = finding(kind="telemetry_stale", action="none", severity="warning")
        with cluster.agent(stale, verdict="unknown"):
            assert ran(cluster, "healthcheck.sh") == []

    def test_drained_by_a_human_keeps_his_reason(self, cluster: Cluster) -> None:
        """His ticket number is in it."""
        cluster.stands("drained", "INC-4711 swap of DIMM")
        with cluster.agent(down()):
            assert ran(cluster, "healthcheck.sh") == []

    @pytest.mark.parametrize("state", ["draining", "drained*", "down*", "failing"])
    def test_a_node_that_is_out_is_not_touched(
        self, cluster: Cluster, state: str
    ) -> None:
        """Also not by its own reason again, a minute later."""
        cluster.stands(state, "fabricmon: mlx5_4/1 DOWN down=41s")
        with cluster.agent(down()):
            assert ran(cluster, "healthcheck.sh") == []

    def test_the_second_minute_changes_nothing(self, cluster: Cluster) -> None:
        """The first reason stays, with the time at which it was given."""
        with cluster.agent(down()):
            ran(cluster, "healthcheck.sh")
            assert ran(cluster, "healthcheck.sh") == [DOWN]

    @pytest.mark.parametrize("trouble", ["sinfo.fails", "sinfo.hangs"])
    def test_a_controller_that_is_away(self, cluster: Cluster, trouble: str) -> None:
        """What is not known of the node is not changed, and soon."""
        (cluster.folder / trouble).touch()
        begun = time.monotonic()
        with cluster.agent(down()):
            assert ran(cluster, "healthcheck.sh") == []
        assert time.monotonic() - begun < 15

    def test_several_partitions_tell_the_node_twice(self, cluster: Cluster) -> None:
        """The first line is enough."""
        text = "mixed|none\nmixed|none\n"
        (cluster.folder / "state").write_text(text)
        with cluster.agent(down()):
            assert ran(cluster, "healthcheck.sh") == [DOWN]

    def test_a_hostile_name_is_one_harmless_word(self, cluster: Cluster) -> None:
        """Names of devices come from the kernel, and from who may rename them."""
        evil = {"node": NODE_NAME, "device": "mlx\n$(reboot)`x`'\"é", "port": 1}
        with cluster.agent(down(subject=evil)):
            (call,) = ran(cluster, "healthcheck.sh")
        assert call.partition("reason=")[2].startswith("fabricmon: mlx??(reboot)")
        assert not set("$`'\"\\") & set(call)


class TestWithoutAnAgent:
    def test_absent(self, cluster: Cluster) -> None:
        """One sample of a node that is well takes nothing out."""
        assert ran(cluster, "healthcheck.sh") == []

    def test_absent_and_a_port_down(self, cluster: Cluster) -> None:
        """A single look cannot tell a dead link from one that is just training."""
        cluster.node.state("mlx5_0", "1: DOWN", "2: Polling")
        assert ran(cluster, "healthcheck.sh") == []

    def test_no_devices(self, cluster: Cluster) -> None:
        """A driver that is not loaded is unknown."""
        cluster.node.remove(CLASS)
        assert ran(cluster, "healthcheck.sh") == []

    def test_a_read_that_hangs(self, cluster: Cluster) -> None:
        """The answer comes in time: it is unknown, and nobody waits for the read."""
        cluster.configure({"deadlines": {"read_seconds": 300}})
        cluster.node.hang(cluster.node.port("mlx5_0", "state"))
        begun = time.monotonic()
        result = cluster.run("healthcheck.sh")
        assert (result.status, cluster.calls) == (0, [])
        assert time.monotonic() - begun < 10
        assert "no answer within 3 s" in result.err

    @pytest.mark.parametrize(
        "text",
        [
            'echo "Traceback (most recent call last):" >&2; exit 1\n',
            "echo ImportError; exit 1\n",
            "exit 127\n",
            "exit 78\n",
            "kill -9 $$\n",
        ],
    )
    @pytest.mark.parametrize("script", SCRIPTS)
    def test_a_program_that_breaks_down(
        self, cluster: Cluster, script: str, text: str
    ) -> None:
        """Whatever status it leaves, the node and the job go on."""
        cluster.command("fabricmon", text)
        cluster.stands("drained", "fabricmon: mlx5_4/1 DOWN down=41s")
        if script != "resume.sh":
            cluster.stands("idle", "none")
        assert ran(cluster, script) == []

    def test_a_wrong_configuration(self, cluster: Cluster) -> None:
        """It is said, and drains nothing."""
        cluster.config.write_text("nodes: n1\n")
        result = cluster.run("healthcheck.sh")
        assert (result.status, cluster.calls) == (0, [])
        assert "nodes" in result.err


@pytest.mark.slow
class TestWithARealAgent:
    def test_from_fault_to_repair(self, cluster: Cluster, tmp_path: Path) -> None:
        """A port fails, the node is drained; it heals, and the node comes back."""
        agent = AgentProcess(tmp_path)
        cluster.configure({"run_folder": str(agent.run_folder)})
        try:
            agent.start()
            assert ran(cluster, "healthcheck.sh") == []
            cluster.node.state("mlx5_0", "1: DOWN", "2: Polling")
            agent.until(lambda: agent.findings("port_down"), "the port is down")
            (call,) = ran(cluster, "healthcheck.sh")
            assert "reason=fabricmon: mlx5_0/1 DOWN" in call
            cluster.stands("drained", call.partition("reason=")[2])
            assert ran(cluster, "resume.sh") == [call]
            cluster.node.state("mlx5_0", "4: ACTIVE")
            agent.until(lambda: not agent.findings("port_down"), "the port is up")
            assert ran(cluster, "resume.sh") == [call, RESUME]
        finally:
            agent.close()

    def test_a_hung_agent(self, cluster: Cluster, tmp_path: Path) -> None:
        """It is passed over after 2 s; a sample is no reason for anything."""
        agent = AgentProcess(tmp_path)
        cluster.configure({"run_folder": str(agent.run_folder)})
        cluster.stands("drained", "fabricmon: mlx5_0/1 DOWN down=3s")
        try:
            agent.start()
            agent.signal(signal.SIGSTOP)
            begun = time.monotonic()
            assert ran(cluster, "healthcheck.sh") == []
            assert ran(cluster, "resume.sh") == []
            assert time.monotonic() - begun < 20
        finally:
            agent.signal(signal.SIGCONT)
            agent.close()


class TestProlog:
    def test_names_the_job(self, cluster: Cluster) -> None:
        """The agent learns of it by a drop file, with its logs where they are kept."""
        logs = self._logs(cluster, grp.getgrgid(os.getgid()).gr_name)
        (entry,) = json.loads((cluster.jobs / "4711.json").read_text())
        assert entry == {"job": "4711", "logs": [f"{logs}/4711/*.log"]}

    def test_logs_are_for_user_and_agent(self, cluster: Cluster) -> None:
        """By the agent's group, so that it needs no right over all files."""
        folder = self._logs(cluster, grp.getgrgid(os.getgid()).gr_name) / "4711"
        assert folder.stat().st_mode & 0o7777 == 0o2750

    def test_logs_without_the_agent_s_group(self, cluster: Cluster) -> None:
        """The job has its folder all the same, and nobody else gets in."""
        logs = self._logs(cluster, "no-such-group")
        assert (logs / "4711").stat().st_mode & 0o7777 == 0o700
        (entry,) = json.loads((cluster.jobs / "4711.json").read_text())
        assert entry["logs"] == [f"{logs}/4711/*.log"]

    def test_a_link_in_the_folder_of_logs(self, cluster: Cluster) -> None:
        """What it leads to is given to nobody; the job runs without logs."""
        target = cluster.folder / "etc"
        target.mkdir(mode=0o711)
        (cluster.folder / "nccl").mkdir()
        (cluster.folder / "nccl" / "4711").symlink_to(target)
        self._logs(cluster, grp.getgrgid(os.getgid()).gr_name)
        assert target.stat().st_mode & 0o7777 == 0o711
        (entry,) = json.loads((cluster.jobs / "4711.json").read_text())
        assert entry == {"job": "4711", "logs": []}

    def _logs(self, cluster: Cluster, group: str) -> Path:
        """Let the prolog make a folder for logs, readable for a group."""
        logs = cluster.folder / "nccl"
        keys = f"jobs={cluster.jobs}\nnccl_logs={logs}\nnccl_group={group}\n"
        cluster.settings(keys)
        with cluster.agent():
            assert ran(cluster, "prolog.sh") == []
        return logs

    def test_gives_the_job_back(self, cluster: Cluster) -> None:
        """From a node with a dead port, which is drained; no drop file stays."""
        with cluster.agent(down()):
            assert cluster.run("prolog.sh", **JOB).status == 1
        assert cluster.calls == [DOWN]
        assert list(cluster.jobs.iterdir()) == []

    def test_a_human_s_drain_gives_the_job_back_too(self, cluster: Cluster) -> None:
        """The port is dead all the same; his reason stays."""
        cluster.stands("draining", "INC-4711")
        with cluster.agent(down()):
            assert cluster.run("prolog.sh", **JOB).status == 1
        assert cluster.calls == []

    def test_what_can_wait_does_not_stop_a_job(self, cluster: Cluster) -> None:
        """The epilog is the place for that."""
        with cluster.agent(finding()):
            assert ran(cluster, "prolog.sh") == []

    def test_another_job_s_port(self, cluster: Cluster) -> None:
        """Only what is on the ports of this job keeps it off."""
        jobs = [{"job": "4711", "ports": ["mlx5_0/1"]}]
        with cluster.agent(down(), jobs=jobs):
            assert ran(cluster, "prolog.sh") == []
        with cluster.agent(down(), jobs=[{"job": "4711", "ports": ["mlx5_4/1"]}]):
            assert cluster.run("prolog.sh", **JOB).status == 1

    @pytest.mark.parametrize("job", ["", "../../etc/x", "1;reboot"])
    def test_a_job_that_is_no_number(self, cluster: Cluster, job: str) -> None:
        """Nothing is written under such a name."""
        with cluster.agent(down()):
            assert cluster.run("prolog.sh", SLURM_JOB_ID=job).status == 0
        assert (cluster.calls, list(cluster.jobs.iterdir())) == ([], [])

    def test_a_link_in_the_drop_folder(self, cluster: Cluster) -> None:
        """The folder is the agent's, the script root's: no link is written through."""
        target = cluster.folder / "shadow"
        target.write_text("root")
        (cluster.jobs / ".4711.new").symlink_to(target)
        (cluster.jobs / "4711.json").symlink_to(target)
        with cluster.agent():
            ran(cluster, "prolog.sh")
        assert target.read_text() == "root"
        assert not (cluster.jobs / "4711.json").is_symlink()


class TestEpilog:
    def test_what_waited_drains_now(self, cluster: Cluster) -> None:
        """The link flapped under the job; the next one should not have it."""
        with cluster.agent(finding()):
            assert ran(cluster, "epilog.sh") == [FLAP]

    def test_a_job_that_used_other_ports(self, cluster: Cluster) -> None:
        """Its end is no reason to judge what it did not use."""
        jobs = [{"job": "4711", "ports": ["mlx5_0/1", "mlx5_1/1"]}]
        with cluster.agent(finding(), jobs=jobs):
            assert ran(cluster, "epilog.sh") == []

    def test_the_device_of_one_of_its_ports(self, cluster: Cluster) -> None:
        """A fault of the whole card is one of its ports."""
        subject = {"node": NODE_NAME, "device": "mlx5_4"}
        card = finding(kind="pcie_degraded", subject=subject, evidence=[])
        with cluster.agent(card, jobs=[{"job": "4711", "ports": ["mlx5_4/1"]}]):
            (call,) = ran(cluster, "epilog.sh")
        assert call.endswith("reason=fabricmon: mlx5_4 PCIE")

    def test_takes_the_drop_file_away(self, cluster: Cluster) -> None:
        """After it asked: until then the agent knows the job's ports by it."""
        (cluster.jobs / "4711.json").write_text("[]")
        with cluster.agent():
            ran(cluster, "epilog.sh")
        assert list(cluster.jobs.iterdir()) == []


class TestResume:
    @pytest.fixture(autouse=True)
    def drained(self, cluster: Cluster) -> None:
        """Let fabricmon have drained the node."""
        cluster.stands("drained", "fabricmon: mlx5_4/1 DOWN down=41s")

    def test_a_healed_node_comes_back(self, cluster: Cluster) -> None:
        """Its own agent says that nothing is left."""
        with cluster.agent():
            assert ran(cluster, "resume.sh") == [RESUME]

    @pytest.mark.parametrize(
        "reason", ["INC-4711", "fabric: x", "none", "not fabricmon: x", "FABRICMON: x"]
    )
    def test_any_other_reason_stays(self, cluster: Cluster, reason: str) -> None:
        """Whoever drained it takes it back."""
        cluster.stands("drained", reason)
        with cluster.agent():
            assert ran(cluster, "resume.sh") == []

    @pytest.mark.parametrize("state", ["down", "drained*", "idle", "mixed"])
    def test_any_other_state_stays(self, cluster: Cluster, state: str) -> None:
        """A node that does not answer is not ours to bring up."""
        cluster.stands(state, "fabricmon: mlx5_4/1 DOWN down=41s")
        with cluster.agent():
            assert ran(cluster, "resume.sh") == []

    @pytest.mark.parametrize("left", [down(), finding()])
    def test_what_would_drain_it_again_keeps_it(
        self, cluster: Cluster, left: dict[str, object]
    ) -> None:
        """Or it would go in and out."""
        with cluster.agent(left):
            assert ran(cluster, "resume.sh") == []

    @pytest.mark.parametrize("verdict", ["unknown", "down"])
    def test_a_node_that_is_not_known_to_work(
        self, cluster: Cluster, verdict: str
    ) -> None:
        """No finding is not yet health."""
        with cluster.agent(verdict=verdict):
            assert ran(cluster, "resume.sh") == []

    def test_old_counters_do_not_keep_it(self, cluster: Cluster) -> None:
        """They degrade a port for as long as nobody clears them."""
        with cluster.agent(verdict="degraded"):
            assert ran(cluster, "resume.sh") == [RESUME]

    def test_a_sample_does_not_take_it_back(self, cluster: Cluster) -> None:
        """It cannot see that the port flaps."""
        assert ran(cluster, "resume.sh") == []

    def test_the_health_check_only_where_the_site_wants_it(
        self, cluster: Cluster
    ) -> None:
        """Somebody may want to see the node first."""
        with cluster.agent():
            assert ran(cluster, "healthcheck.sh") == []
            cluster.settings(f"jobs={cluster.jobs}\nresume=yes\n")
            assert ran(cluster, "healthcheck.sh") == [RESUME]


class TestScripts:
    def test_shellcheck(self) -> None:
        """No quotes are missing, nothing expands that should not."""
        files = [
            *sorted((DEPLOY / "slurm").glob("*.sh")),
            *sorted((DEPLOY / "npd").glob("*.sh")),
            *sorted((DEPLOY / "nhc").glob("*.nhc")),
        ]
        assert len(files) == 7
        command = [require("shellcheck"), "-x", "-P", "SCRIPTDIR", "-S", "style"]
        result = subprocess.run(
            [*command, *map(str, files)], capture_output=True, text=True, check=False
        )
        assert (result.returncode, result.stdout) == (0, "")

    @pytest.mark.parametrize("script", SCRIPTS)
    def test_without_a_path(self, cluster: Cluster, script: str) -> None:
        """Slurm gives a prolog no PATH at all."""
        text = f"fabricmon={cluster.folder}/bin/fabricmon\njobs={cluster.jobs}\n"
        cluster.settings(f"{text}PATH=$PATH:{cluster.folder}/bin\n")
        with cluster.agent():
            result = subprocess.run(
                ["env", "-i", *(f"{k}={v}" for k, v in JOB.items()),
                 str(cluster.folder / "slurm" / script)],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
        assert result.returncode == 0
        assert "not found" not in result.stderr
