"""Keeps the volume of a home on a lost node, so that its claim can be given up."""

import json
from http import HTTPStatus

import httpx2
from lightkube.resources.core_v1 import PersistentVolume, PersistentVolumeClaim

from codehub.adapters.kubernetes.client import Kubernetes, metadata_of, status_of, uid_of
from codehub.adapters.kubernetes.options import SET_ASIDE_ANNOTATION, Component, KubernetesOptions
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason

RETAIN = "Retain"


async def retain_volume(
    kubernetes: Kubernetes,
    options: KubernetesOptions,
    workspace_id: WorkspaceId,
    claim: PersistentVolumeClaim,
) -> None:
    """Make the volume outlive its claim, and name the workspace on it.

    Raise Transient(ACTION_FAILED) unless the API confirms that: without it, the end of the claim would be the
    end of the files as soon as the node is back.
    """
    name = (claim.spec.volumeName if claim.spec else None) or ""
    volume = await kubernetes.client.get(PersistentVolume, name)
    owner = volume.spec.claimRef if volume.spec else None
    if owner is None or owner.uid != uid_of(claim):
        raise Transient(
            ErrorReason.ACTION_FAILED,
            f"The volume {name} does not say that it belongs to the claim {metadata_of(claim).name}, so "
            "nothing was given up.",
        )
    try:
        volume = await kubernetes.client.patch(
            PersistentVolume, name, _patch(kubernetes, options, workspace_id, volume)
        )
    except httpx2.HTTPStatusError as error:
        if status_of(error) != HTTPStatus.FORBIDDEN:
            raise
    if _policy_of(volume) != RETAIN:
        raise _not_retained(name)


def _patch(
    kubernetes: Kubernetes, options: KubernetesOptions, workspace_id: WorkspaceId, volume: PersistentVolume
) -> dict[str, object]:
    # With the version that was read: the volume of another claim by now is left alone.
    metadata = {
        "resourceVersion": metadata_of(volume).resourceVersion,
        "labels": options.labels(workspace_id, Component.SET_ASIDE_HOME),
        "annotations": {SET_ASIDE_ANNOTATION: kubernetes.now().isoformat()},
    }
    return {"metadata": metadata, "spec": {"persistentVolumeReclaimPolicy": RETAIN}}


def _policy_of(volume: PersistentVolume) -> str | None:
    return volume.spec.persistentVolumeReclaimPolicy if volume.spec else None


def _not_retained(name: str) -> Transient:
    patch = json.dumps({"spec": {"persistentVolumeReclaimPolicy": RETAIN}})
    return Transient(
        ErrorReason.ACTION_FAILED,
        f"CodeHub may not make the volume {name} outlive its claim, so the home is not given up. Ask an "
        f"administrator to allow workers to patch persistentvolumes, or to run: kubectl patch pv {name} -p "
        f"'{patch}'. Then it continues by itself.",
    )
