"""A namespace as the home store."""

import time
from http import HTTPStatus
from uuid import uuid4

from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Namespace

from codehub.adapters.kubernetes.client import (
    Kubernetes,
    ignore_statuses,
    metadata_of,
    translate_change_errors,
    translate_read_errors,
)
from codehub.adapters.kubernetes.options import (
    COMPONENT_LABEL,
    PROJECT_LABEL,
    STORE_LABEL,
    Component,
    KubernetesOptions,
)
from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason

# The id changes only with another namespace or cluster.
NAMESPACE_ID_SECONDS = 60.0


class KubernetesHomeStore:
    """The identity is the namespace's own id plus a random id in the label of a marker in it.

    Neither is enough alone: a namespace says nothing about what was set up in it, and a marker can be copied
    or restored into another cluster.
    """

    def __init__(self, kubernetes: Kubernetes, options: KubernetesOptions) -> None:
        self._kubernetes = kubernetes
        self._options = options
        self._namespace_id = ""
        self._read_at = 0.0

    @property
    def location(self) -> str:
        kubernetes, project = self._kubernetes, self._options.project
        return f"the namespace {kubernetes.namespace} of {kubernetes.url} (project {project})"

    async def read_identity(self) -> str | None:
        try:
            with translate_read_errors():
                marker = await self._read_marker()
                return f"{await self._read_namespace_id()}/{marker}" if marker else None
        except Transient:
            # Another cluster may respond next time.
            self._namespace_id = ""
            raise

    async def create_identity(self) -> str:
        labels = {
            PROJECT_LABEL: self._options.project,
            COMPONENT_LABEL: Component.STORE.value,
            STORE_LABEL: str(uuid4()),
        }
        marker = ConfigMap(metadata=ObjectMeta(name=self._options.marker_name, labels=labels))
        with translate_change_errors(), ignore_statuses(HTTPStatus.CONFLICT):
            await self._kubernetes.client.create(marker)
        identity = await self.read_identity()
        if identity is None:
            name = self._options.marker_name
            raise Transient(
                ErrorReason.ACTION_FAILED,
                f"The ConfigMap {name} has lost its label; remove it, then try again.",
            )
        return identity

    async def _read_marker(self) -> str | None:
        marker = await self._kubernetes.find(ConfigMap, self._options.marker_name)
        return (metadata_of(marker).labels or {}).get(STORE_LABEL) if marker else None

    async def _read_namespace_id(self) -> str:
        now = time.monotonic()
        if not self._namespace_id or now - self._read_at > NAMESPACE_ID_SECONDS:
            namespace = await self._kubernetes.client.get(Namespace, self._kubernetes.namespace)
            self._namespace_id = metadata_of(namespace).uid or ""
            self._read_at = now
        return self._namespace_id
