"""Reads what `codehub doctor` says about a cluster. Nothing here changes anything in it."""

import asyncio
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus

import httpx2
from lightkube import ALL_NS
from lightkube.models.authorization_v1 import ResourceAttributes, SelfSubjectAccessReviewSpec
from lightkube.resources.apps_v1 import DaemonSet
from lightkube.resources.authorization_v1 import SelfSubjectAccessReview
from lightkube.resources.core_v1 import Namespace
from lightkube.resources.networking_v1 import NetworkPolicy
from lightkube.resources.storage_v1 import StorageClass

from codehub.adapters.kubernetes.client import (
    Kubernetes,
    is_absence,
    metadata_of,
    status_of,
    translate_read_errors,
)
from codehub.adapters.kubernetes.rights import Right

DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
DIRECTIONS = frozenset({"Ingress", "Egress"})
# Network plugins that enforce policies, by the name of their DaemonSet.
ENFORCING = frozenset(
    {"anetd", "antrea-agent", "azure-npm", "calico-node", "canal", "cilium", "kube-router", "ovnkube-node"}
)
LONG_AGO = datetime.min.replace(tzinfo=UTC)


class NotPermitted(Exception):
    """This account may not read it."""


@dataclass(frozen=True)
class HomeClass:
    """The storage class of new homes."""

    name: str
    can_grow: bool


@dataclass(frozen=True)
class Plugin:
    """A network plugin that enforces policies."""

    name: str
    nodes: int
    ready: int


async def find_missing_rights(kubernetes: Kubernetes, rights: Iterable[Right]) -> list[Right]:
    """Return those of the rights that this account does not have."""
    rights = list(rights)
    with _translate_errors():
        allowed = await asyncio.gather(*(_is_allowed(kubernetes, right) for right in rights))
    return [right for right, has in zip(rights, allowed, strict=True) if not has]


async def _is_allowed(kubernetes: Kubernetes, right: Right) -> bool:
    resource, _, subresource = right.resource.partition("/")
    attributes = ResourceAttributes(
        verb=right.verb,
        resource=resource,
        subresource=subresource,
        namespace=right.namespace,
        name=right.name,
    )
    # The server answers a review and stores nothing.
    review = SelfSubjectAccessReview(spec=SelfSubjectAccessReviewSpec(resourceAttributes=attributes))
    reviewed = await kubernetes.client.create(review)
    return bool(reviewed.status and reviewed.status.allowed)


async def find_namespace_labels(kubernetes: Kubernetes) -> Mapping[str, str] | None:
    """Return the labels of the namespace, or None if it does not exist."""
    with _translate_errors():
        try:
            namespace = await kubernetes.client.get(Namespace, kubernetes.namespace)
        except httpx2.HTTPStatusError as error:
            if is_absence(error):
                return None
            raise
    return metadata_of(namespace).labels or {}


async def find_home_class(kubernetes: Kubernetes, name: str | None) -> HomeClass | None:
    """Return the class of this name, or the default class; None if it does not exist."""
    with _translate_errors():
        found = [each async for each in kubernetes.client.list(StorageClass)]
    chosen = [each for each in found if (metadata_of(each).name == name if name else _is_default(each))]
    if not chosen:
        return None
    # Of several default classes, the server uses the newest.
    newest = max(chosen, key=lambda each: metadata_of(each).creationTimestamp or LONG_AGO)
    return HomeClass(metadata_of(newest).name or "", can_grow=bool(newest.allowVolumeExpansion))


def _is_default(storage_class: StorageClass) -> bool:
    annotations = metadata_of(storage_class).annotations or {}
    return any(annotations.get(key) == "true" for key in DEFAULT_CLASS)


async def find_open_directions(kubernetes: Kubernetes) -> frozenset[str]:
    """Return the directions in which Pods without policies of their own may connect to anything."""
    with _translate_errors():
        policies = [each async for each in kubernetes.client.list(NetworkPolicy)]
    return DIRECTIONS.difference(*(_denied_by_default(policy) for policy in policies))


def _denied_by_default(policy: NetworkPolicy) -> frozenset[str]:
    """Return the directions that this policy closes for all Pods of its namespace."""
    spec = policy.spec
    selector = spec.podSelector if spec else None
    if spec is None or (selector and (selector.matchLabels or selector.matchExpressions)):
        return frozenset()
    rules = {"Ingress": spec.ingress, "Egress": spec.egress}
    return frozenset(name for name in spec.policyTypes or () if not rules.get(name))


async def find_enforcing_plugin(kubernetes: Kubernetes) -> Plugin | None:
    """Return a network plugin that is known to enforce policies; None says nothing about the others."""
    with _translate_errors():
        found = [each async for each in kubernetes.client.list(DaemonSet, namespace=ALL_NS)]
    known = [each for each in found if metadata_of(each).name in ENFORCING]
    plugins = [
        Plugin(metadata_of(each).name or "", each.status.desiredNumberScheduled, each.status.numberReady)
        for each in known
        if each.status
    ]
    return max(plugins, key=lambda plugin: plugin.ready, default=None)


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise NotPermitted, or Transient(UNREACHABLE) for every other error."""
    with translate_read_errors():
        try:
            yield
        except httpx2.HTTPStatusError as error:
            if status_of(error) == HTTPStatus.FORBIDDEN:
                raise NotPermitted from error
            raise
