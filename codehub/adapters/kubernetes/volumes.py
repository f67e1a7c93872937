"""Homes as PersistentVolumeClaims."""

from collections.abc import Sequence
from datetime import timedelta
from http import HTTPStatus

import httpx2
from lightkube.resources.core_v1 import PersistentVolumeClaim, Pod

from codehub.adapters.kubernetes.claims import find_claim, grow_claim, wanted_claim
from codehub.adapters.kubernetes.client import (
    Kubernetes,
    ignore_statuses,
    metadata_of,
    status_of,
    translate_change_errors,
    translate_read_errors,
    uid_of,
)
from codehub.adapters.kubernetes.following import wait_until_gone
from codehub.adapters.kubernetes.jobs.leftovers import end_leftover_job
from codehub.adapters.kubernetes.options import Component, KubernetesOptions
from codehub.adapters.kubernetes.reach import find_lost_node, require_reachable
from codehub.adapters.kubernetes.set_aside import retain_volume
from codehub.domain.conditions import VolumeFact, WorkspaceId
from codehub.domain.failures import Transient, within_reach
from codehub.domain.naming import volume_name
from codehub.domain.states import ErrorReason

CHUNK = 500
# A claim that has terminated for long gets a little time at each attempt.
SHORTEST_WAIT_SECONDS = 5.0


class KubernetesVolumes:
    """A home is present while its claim exists, also while no volume is bound and while it terminates."""

    def __init__(self, kubernetes: Kubernetes, options: KubernetesOptions) -> None:
        self._kubernetes = kubernetes
        self._options = options

    async def observe(self, workspace_id: WorkspaceId) -> VolumeFact:
        with translate_read_errors():
            claim = await find_claim(self._kubernetes, self._options, workspace_id)
            if claim is None:
                return VolumeFact.ABSENT
            await require_reachable(self._kubernetes, claim)
        return VolumeFact.PRESENT

    async def list_all(self) -> Sequence[WorkspaceId]:
        labels = self._options.selector(Component.HOME)
        with translate_read_errors():
            claims = [
                each async for each in self._kubernetes.client.list(PersistentVolumeClaim, labels=labels)
            ]
        found = [(metadata_of(each).name, self._workspace_of(each)) for each in claims]
        return [
            workspace_id for name, workspace_id in found if workspace_id and name == volume_name(workspace_id)
        ]

    async def provision(self, workspace_id: WorkspaceId) -> None:
        with translate_change_errors():
            existing = await self._find_any(workspace_id)
            if existing and metadata_of(existing).deletionTimestamp:
                await self._wait_until_removed(existing)
                existing = None
            if existing is None:
                with ignore_statuses(HTTPStatus.CONFLICT):
                    await self._kubernetes.client.create(wanted_claim(workspace_id, self._options))
                existing = await self._find_any(workspace_id)
            if existing is None or self._workspace_of(existing) != workspace_id:
                raise _foreign(volume_name(workspace_id))
            await grow_claim(self._kubernetes, self._options, existing)

    async def remove(self, workspace_id: WorkspaceId) -> None:
        with translate_change_errors():
            claim = await find_claim(self._kubernetes, self._options, workspace_id)
            if claim is None:
                return
            if metadata_of(claim).deletionTimestamp is None:
                await self._require_unused(workspace_id)
                await self._delete(claim)
            await self._wait_until_removed(claim)

    async def set_aside(self, workspace_id: WorkspaceId) -> None:
        """Keep the volume, then delete its claim; the volume stays on its node with all files."""
        with translate_change_errors():
            claim = await find_claim(self._kubernetes, self._options, workspace_id)
            if claim is None:
                return
            if await find_lost_node(self._kubernetes, claim) is None:
                raise within_reach()
            terminating = metadata_of(claim).deletionTimestamp is not None
            if not terminating:
                await self._require_unused(workspace_id)
            # Whoever deleted the claim: its volume must not go with it.
            await retain_volume(self._kubernetes, self._options, workspace_id, claim)
            if not terminating:
                await self._delete(claim)
            await self._wait_until_removed(claim)

    async def measure(self, workspace_id: WorkspaceId, seconds: float) -> None:
        """Return None: only the kubelets know, and CodeHub has no right to ask them."""

    async def _find_any(self, workspace_id: WorkspaceId) -> PersistentVolumeClaim | None:
        return await self._kubernetes.find(PersistentVolumeClaim, volume_name(workspace_id))

    def _workspace_of(self, claim: PersistentVolumeClaim) -> WorkspaceId | None:
        return self._options.workspace_of(claim.metadata, Component.HOME)

    async def _require_unused(self, workspace_id: WorkspaceId) -> None:
        """Raise Transient(ACTION_FAILED) if a Pod, also an exited one, uses the claim.

        The API would accept a deletion, and nobody could take it back.
        """
        # The Pod of an ended job still uses the claim.
        await end_leftover_job(self._kubernetes, self._options, workspace_id)
        for pod in await self._users(volume_name(workspace_id)):
            raise in_use(metadata_of(pod).name or "")

    async def _users(self, claim_name: str) -> list[Pod]:
        # Without a selector: anybody in the namespace can use the claim.
        listed = self._kubernetes.client.list(Pod, chunk_size=CHUNK)
        return [pod async for pod in listed if claim_name in _claims_of(pod)]

    async def _delete(self, claim: PersistentVolumeClaim) -> None:
        metadata = metadata_of(claim)
        try:
            await self._kubernetes.delete(
                PersistentVolumeClaim,
                metadata.name or "",
                uid=uid_of(claim),
                resource_version=metadata.resourceVersion,
            )
        except httpx2.HTTPStatusError as error:
            if status_of(error) == HTTPStatus.CONFLICT:
                raise Transient(
                    ErrorReason.ACTION_FAILED, "The volume cannot be removed now: it has just been used."
                ) from error
            raise

    async def _wait_until_removed(self, claim: PersistentVolumeClaim) -> None:
        """Wait for a terminating claim. Raise Transient(ACTION_FAILED) with a reason if it stays."""
        limit = timedelta(seconds=self._options.timeouts.claim_removal)
        began = metadata_of(claim).deletionTimestamp or self._kubernetes.now()
        remaining = (began + limit - self._kubernetes.now()).total_seconds()
        wait_seconds = max(remaining, SHORTEST_WAIT_SECONDS)
        if not await wait_until_gone(self._kubernetes, PersistentVolumeClaim, claim, wait_seconds):
            raise await self._still_terminating(claim)

    async def _still_terminating(self, claim: PersistentVolumeClaim) -> Transient:
        metadata = metadata_of(claim)
        users = [metadata_of(pod).name or "" for pod in await self._users(metadata.name or "")]
        reason = (
            f"the Pod {', '.join(users)} still uses it; remove the Pod"
            if users
            else f"it waits for {', '.join(metadata.finalizers or ['its storage'])}; ask who runs the cluster"
        )
        return Transient(ErrorReason.ACTION_FAILED, f"The volume {metadata.name} does not go away: {reason}.")


def in_use(pod: str) -> Transient:
    return Transient(ErrorReason.ACTION_FAILED, f"The volume cannot be removed now: the Pod {pod} uses it.")


def _claims_of(pod: Pod) -> set[str]:
    volumes = (pod.spec.volumes if pod.spec else None) or []
    return {each.persistentVolumeClaim.claimName for each in volumes if each.persistentVolumeClaim}


def _foreign(name: str) -> Transient:
    return Transient(
        ErrorReason.ACTION_FAILED,
        f"CodeHub did not create the claim {name}; check what it holds, then remove it.",
    )
