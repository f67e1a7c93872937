"""Claims of homes: creating, marking and growing them."""

import logging
from http import HTTPStatus
from uuid import uuid4

import httpx2
from lightkube.models.core_v1 import PersistentVolumeClaimSpec, VolumeResourceRequirements
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import PersistentVolumeClaim

from codehub.adapters.kubernetes.client import Kubernetes, error_text, status_of
from codehub.adapters.kubernetes.options import USER_ANNOTATION, Component, KubernetesOptions
from codehub.adapters.kubernetes.quantities import parse_bytes
from codehub.domain.conditions import WorkspaceId
from codehub.domain.failures import Transient
from codehub.domain.naming import volume_name
from codehub.domain.states import ErrorReason

_log = logging.getLogger(__name__)


def wanted_claim(workspace_id: WorkspaceId, options: KubernetesOptions) -> PersistentVolumeClaim:
    claims = options.claims
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=volume_name(workspace_id), labels=options.labels(workspace_id, Component.HOME)
        ),
        spec=PersistentVolumeClaimSpec(
            accessModes=[claims.access_mode],
            storageClassName=claims.storage_class,
            resources=VolumeResourceRequirements(requests={"storage": str(claims.size_bytes)}),
        ),
    )


async def find_claim(
    kubernetes: Kubernetes, options: KubernetesOptions, workspace_id: WorkspaceId
) -> PersistentVolumeClaim | None:
    """Return the claim of the home, also a pending or terminating one; None if it does not exist."""
    claim = await kubernetes.find(PersistentVolumeClaim, volume_name(workspace_id))
    if claim is None or options.workspace_of(claim.metadata, Component.HOME) != workspace_id:
        return None
    return claim


async def mark_claim(
    kubernetes: Kubernetes, options: KubernetesOptions, workspace_id: WorkspaceId
) -> PersistentVolumeClaim:
    """Mark the claim as used and return it. Raise Transient(ACTION_FAILED) unless a Pod can use it.

    Call this before and after the creation of a Pod with the home, and remove the Pod if the second call
    fails. A removal reads the claim, sees no Pod, and deletes the claim only if its resource version is
    still the same. So either it sees the Pod, or a mark makes it fail, or the second call notices it.
    """
    patch = {"metadata": {"annotations": {USER_ANNOTATION: str(uuid4())}}}
    try:
        claim = await kubernetes.client.patch(PersistentVolumeClaim, volume_name(workspace_id), patch)
    except httpx2.HTTPStatusError as error:
        if status_of(error) == HTTPStatus.NOT_FOUND:
            raise absent_claim() from error
        raise
    if options.workspace_of(claim.metadata, Component.HOME) != workspace_id:
        raise absent_claim()
    if claim.metadata and claim.metadata.deletionTimestamp:
        raise Transient(ErrorReason.ACTION_FAILED, "The volume of this workspace is being removed.")
    return claim


def absent_claim() -> Transient:
    return Transient(ErrorReason.ACTION_FAILED, "The volume of this workspace does not exist.")


async def grow_claim(
    kubernetes: Kubernetes, options: KubernetesOptions, claim: PersistentVolumeClaim
) -> None:
    """Request the configured size if the claim is smaller and its storage class allows that."""
    requests = (claim.spec.resources.requests if claim.spec and claim.spec.resources else None) or {}
    size = options.claims.size_bytes
    bound = claim.status is not None and claim.status.phase == "Bound"
    if not bound or parse_bytes(requests.get("storage", "0")) >= size:
        return
    name = claim.metadata.name if claim.metadata and claim.metadata.name else ""
    patch = {"spec": {"resources": {"requests": {"storage": str(size)}}}}
    try:
        await kubernetes.client.patch(PersistentVolumeClaim, name, patch)
    except httpx2.HTTPStatusError as error:
        if status_of(error) not in {HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY}:
            raise
        _log.warning("The claim %s keeps its size: %s", name, error_text(error))
