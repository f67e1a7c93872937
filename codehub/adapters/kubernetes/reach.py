"""Finds homes that are out of reach: on a disk of a node that is down."""

from collections.abc import Sequence
from datetime import datetime
from http import HTTPStatus

import httpx2
from lightkube.resources.core_v1 import Node, PersistentVolume, PersistentVolumeClaim

from codehub.adapters.kubernetes.client import Kubernetes, status_of
from codehub.domain.conditions import LostNode
from codehub.domain.failures import OutOfReach

HOSTNAME_LABEL = "kubernetes.io/hostname"


async def require_reachable(kubernetes: Kubernetes, claim: PersistentVolumeClaim) -> None:
    """Raise OutOfReach if the volume is on a node that does not respond.

    The home may still be there, so it is neither present nor lost.
    """
    if lost := await find_lost_node(kubernetes, claim):
        raise OutOfReach(lost.message, lost.since)


async def find_lost_node(kubernetes: Kubernetes, claim: PersistentVolumeClaim) -> LostNode | None:
    """Return the node whose disk holds the volume if it does not respond; None if the volume is in reach."""
    volume = claim.spec.volumeName if claim.spec else None
    if not volume:
        return None
    try:
        hosts = await _hosts_of(kubernetes, volume)
        return await _find_lost(kubernetes, hosts) if hosts else None
    except httpx2.HTTPStatusError as error:
        # CodeHub may not have the right to read volumes and nodes. NOT_FOUND: the volume is being removed.
        if status_of(error) not in {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}:
            raise
        return None


async def _hosts_of(kubernetes: Kubernetes, volume: str) -> Sequence[str]:
    """Return the nodes that have this volume on their disks; none if others can use it too."""
    found = await kubernetes.client.get(PersistentVolume, volume)
    affinity = found.spec.nodeAffinity if found.spec else None
    terms = affinity.required.nodeSelectorTerms if affinity and affinity.required else []
    expressions = [each for term in terms for each in term.matchExpressions or []]
    named = [each for each in expressions if each.key == HOSTNAME_LABEL and each.operator == "In"]
    return [value for each in named for value in each.values or []]


async def _find_lost(kubernetes: Kubernetes, hosts: Sequence[str]) -> LostNode | None:
    """Return since when all these nodes are down, or None if one is up."""
    nodes = [node async for node in kubernetes.client.list(Node, labels={HOSTNAME_LABEL: list(hosts)})]
    where = f"The home is on a disk of the node {', '.join(hosts)}"
    if not nodes:
        return LostNode(f"{where}, which is no longer in the cluster.", since=None)
    conditions = [_ready_condition(node) for node in nodes]
    if any(status == "True" for status, _ in conditions):
        return None
    since = max((since for _, since in conditions if since is not None), default=None)
    when = f" since {since:%Y-%m-%d %H:%M} UTC" if since else ""
    return LostNode(f"{where}, which has not responded{when}.", since)


def _ready_condition(node: Node) -> tuple[str, datetime | None]:
    """Return the status, and since when it is so."""
    for each in (node.status.conditions if node.status else None) or []:
        if each.type == "Ready":
            return each.status, each.lastTransitionTime
    return "Unknown", None
