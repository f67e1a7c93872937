"""Provision volumes of the test cluster: directories that are pinned to a node and removed with their claim.

The controllers' own hostPath provisioner would do, but the kubelet does not apply fsGroup to hostPath
volumes. Usage: python -m testkit.kubernetes.provisioner KUBECONFIG DIRECTORY
"""

import itertools
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import httpx

from testkit.kubernetes.api import Api

NAME = "codehub.test/local"
# The default waits for the first Pod, like node-local volumes; the other binds at once, like network volumes.
DEFAULT_CLASS = "local"
IMMEDIATE_CLASS = "immediate"
CLASSES = {DEFAULT_CLASS: "WaitForFirstConsumer", IMMEDIATE_CLASS: "Immediate"}
POLL_SECONDS = 0.2
CLASSES_PATH = "/apis/storage.k8s.io/v1/storageclasses"
CLAIMS_PATH = "/api/v1/persistentvolumeclaims"
VOLUMES_PATH = "/api/v1/persistentvolumes"
SELECTED_NODE = "volume.kubernetes.io/selected-node"

Resource = dict[str, Any]


def storage_class(name: str, binding: str) -> Resource:
    return {
        "metadata": {"name": name},
        "provisioner": NAME,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": binding,
        "allowVolumeExpansion": True,
    }


def volume_of(claim: Resource, node: str, directory: Path) -> Resource:
    """Return the volume for a claim, in a directory of this node."""
    metadata, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{metadata['uid']}"
    hostname = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    reference = {key: metadata[key] for key in ("namespace", "name", "uid")}
    return {
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": NAME}},
        "spec": {
            "capacity": spec["resources"]["requests"],
            "accessModes": spec["accessModes"],
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": spec["storageClassName"],
            "local": {"path": str(directory / name)},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [hostname]}]}},
        },
    }


class Provisioner:
    """Creates, grows and removes volumes. Each pass looks at everything, so it may be killed at any time."""

    def __init__(self, api: Api, directory: Path) -> None:
        self._api = api
        self._directory = directory
        self._turn = itertools.count()
        self._has_classes = False

    def one_pass(self) -> None:
        if not self._has_classes:
            self._create_classes()
        volumes = {each["metadata"]["name"]: each for each in self._api.list(VOLUMES_PATH)}
        for claim in self._api.list(CLAIMS_PATH):
            if claim["spec"].get("storageClassName") not in CLASSES:
                continue
            volume = volumes.get(f"pvc-{claim['metadata']['uid']}")
            if volume is None:
                self._provision(claim)
            else:
                self._grow(claim, volume)
        for volume in volumes.values():
            released = volume["status"]["phase"] in {"Released", "Failed"}
            if released and volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete":
                self._remove(volume)

    def _create_classes(self) -> None:
        existing = {each["metadata"]["name"] for each in self._api.list(CLASSES_PATH)}
        for name in CLASSES.keys() - existing:
            self._api.create(CLASSES_PATH, storage_class(name, CLASSES[name]))
        self._has_classes = True

    def _provision(self, claim: Resource) -> None:
        node = self._node_for(claim)
        if node is None or claim["spec"].get("volumeName"):
            return
        volume = volume_of(claim, node, self._directory)
        Path(volume["spec"]["local"]["path"]).mkdir(exist_ok=True)
        self._api.create(VOLUMES_PATH, volume)

    def _node_for(self, claim: Resource) -> str | None:
        if claim["spec"]["storageClassName"] == IMMEDIATE_CLASS:
            nodes = [each["metadata"]["name"] for each in self._api.list("/api/v1/nodes")]
            return str(nodes[next(self._turn) % len(nodes)])
        annotations: dict[str, str] = claim["metadata"].get("annotations", {})
        return annotations.get(SELECTED_NODE)

    def _grow(self, claim: Resource, volume: Resource) -> None:
        """Report what was requested as the capacity: a directory has no size of its own."""
        requested = claim["spec"]["resources"]["requests"]
        if claim["status"]["phase"] != "Bound" or claim["status"]["capacity"] == requested:
            return
        metadata = claim["metadata"]
        self._api.patch(f"{VOLUMES_PATH}/{volume['metadata']['name']}", {"spec": {"capacity": requested}})
        path = f"/api/v1/namespaces/{metadata['namespace']}/persistentvolumeclaims/{metadata['name']}/status"
        self._api.patch(path, {"status": {"capacity": requested, "conditions": None}})

    def _remove(self, volume: Resource) -> None:
        shutil.rmtree(volume["spec"]["local"]["path"], ignore_errors=True)
        self._api.delete(f"{VOLUMES_PATH}/{volume['metadata']['name']}")


def main(kubeconfig: str, directory: str) -> None:
    with Api(Path(kubeconfig)) as api:
        provisioner = Provisioner(api, Path(directory))
        while True:
            try:
                provisioner.one_pass()
            except httpx.HTTPError as error:
                print(error, flush=True)  # noqa: T201 (a log)
            time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
