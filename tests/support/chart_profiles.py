"""Values of the chart, by what they turn on; and the configuration that they make."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fabricmon.config_load import Loaded, load
from tests.support.chart import Chart

Json = dict[str, Any]

PROFILES: dict[str, Json] = {
    "defaults": {},
    "roce": {"network": {"host": True}, "tls": {"secretName": "fabricmon-tls"}},
    "roce-plain": {"network": {"host": True, "allowPlain": True}},
    "mutual-tls": {"tls": {"secretName": "t", "clientAuthority": True}},
    "processes": {"processes": {"enabled": True}},
    "kernel-log": {"kernelLog": {"enabled": True}},
    "pod-resources": {"podResources": {"enabled": True}},
    "logs": {
        "logs": {
            "nccl": True,
            "pods": True,
            "ncclConf": True,
            "folders": ["/scratch/logs"],
            "groups": [2000],
        }
    },
    "host-folders": {
        "state": {"type": "host"},
        "run": {"type": "host"},
        "maintenance": {"source": "host"},
    },
    "maintenance": {"maintenance": {"source": "configMap", "configMap": "works"}},
    "mqtt": {
        "mqtt": {"secretName": "broker"},
        "config": {
            "mqtt": {
                "host": "broker.example",
                "tls": True,
                "user_file": "/etc/fabricmon-mqtt/user",
                "password_file": "/etc/fabricmon-mqtt/password",
            }
        },
    },
    "kubernetes": {"kubernetes": {"enabled": True}},
    "monitoring": {
        "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True},
        "dashboards": {"enabled": True, "annotations": {"grafana_folder": "Fabric"}},
        "config": {"cluster": "alpha"},
    },
    "network-policy": {
        "networkPolicy": {
            "enabled": True,
            "from": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
            "restrictEgress": True,
            "egress": [{"ports": [{"port": 8883, "protocol": "TCP"}]}],
        }
    },
    "scheduling": {
        "nodeSelector": {"pool": "gpu"},
        "nodeLabels": [{"key": "rdma", "operator": "In", "values": ["true"]}],
        "tolerations": [],
        "priorityClassName": "system-node-critical",
        "maxUnavailable": 3,
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}},
        "pod": {
            "labels": {"team": "fabric"},
            "annotations": {"note": "x"},
            "seLinuxOptions": {"type": "spc_t"},
        },
        "image": {"digest": f"sha256:{'0' * 64}", "pullSecrets": [{"name": "pull"}]},
    },
    "gate": {
        "gate": {"enabled": True, "token": {"secretName": "gate-token"}},
        "config": {"cluster": "alpha"},
    },
    "gate-acts": {
        "gate": {
            "enabled": True,
            "token": {"secretName": "gate-token"},
            "tls": {"secretName": "gate-tls", "clientAuthority": True},
            "script": {"configMap": "site", "secretName": "slurm"},
            "maintenance": {"configMap": "works"},
            "mqtt": {"secretName": "broker"},
            "image": {"repository": "registry.example/gate", "tag": "7"},
            "journal": {"storageClassName": "fast", "accessMode": "ReadWriteOncePod"},
            "networkPolicy": {
                "from": [{"podSelector": {"matchLabels": {"app": "alertmanager"}}}],
                "restrictEgress": True,
                "egress": [{"ports": [{"port": 6817, "protocol": "TCP"}]}],
            },
            "nodeSelector": {"role": "admin"},
            "tolerations": [{"key": "role", "operator": "Exists"}],
            "priorityClassName": "system-cluster-critical",
            "resources": {"requests": {"memory": "64Mi"}},
            "config": {
                "act": True,
                "caution": {"cluster_nodes": 1000},
                "choice": {"never_nodes": ["login*"]},
                "mqtt": {
                    "host": "broker.example",
                    "user_file": "/etc/fabricmon-mqtt/u",
                },
                "script": {"environment": {"PATH": "/opt/slurm/bin:/bin"}},
            },
        },
        "podMonitor": {"enabled": True},
        "image": {"pullSecrets": [{"name": "pull"}]},
        "pod": {"labels": {"team": "fabric"}, "annotations": {"note": "x"}},
    },
    "gate-in-pod": {
        "gate": {
            "enabled": True,
            "tls": {"secretName": "t", "scraper": {"serverName": "gate"}},
            "token": {"secretName": "gate-token"},
            "journal": {"type": "pod"},
            "config": {"act": False},
            "networkPolicy": {"enabled": False},
        },
        "podMonitor": {"enabled": True},
        "networkPolicy": {"enabled": True},
    },
    "names": {
        "fullnameOverride": "rdma-monitor",
        "nameOverride": "rdma",
        "labels": {"team": "fabric"},
        "serviceAccount": {"create": False, "name": "mine"},
        "page": {"enabled": False},
    },
}
"""Values by what they turn on."""

ROOT = ("processes", "kernel-log", "pod-resources")


def merged(*profiles: Json) -> Json:
    """Return values with all of these."""
    found: Json = {}
    for profile in profiles:
        for key, value in profile.items():
            both = isinstance(value, dict) and isinstance(found.get(key), dict)
            found[key] = merged(found[key], value) if both else value
    return found


def loaded(helm: Chart, values: Json, folder: Path) -> Loaded:
    """Return the configuration as the agent of a pod reads it."""
    file = folder / "fabricmon.yaml"
    maps = [each["data"] for each in helm.all("ConfigMap", values)]
    (text,) = (data[file.name] for data in maps if file.name in data)
    file.write_text(text)
    addresses = {"NODE_NAME": "123", "ADDRESS": "10.0.0.7"}
    given = {
        each["name"]: re.sub(
            r"\$\((\w+)\)", lambda found: addresses[found[1]], each["value"]
        )
        for each in helm.agent(values)["env"]
        if "value" in each
    }
    return load(file, given)
