"""Connects to the API of Kubernetes and translates its errors."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import msgspec
from lightkube import ApiError, AsyncClient, KubeConfig
from lightkube.config.client_adapter import verify_cluster
from lightkube.config.kubeconfig import SingleConfig
from lightkube.config.models import User
from lightkube.core.exceptions import ConfigError
from lightkube.core.generic_client import GenericAsyncClient
from lightkube.core.resource import GlobalResource, NamespacedResource
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import PodLog

from codehub.adapters.kubernetes.transport import KubernetesTransport
from codehub.domain.failures import Failure, Transient
from codehub.domain.states import ErrorReason

Kind = TypeVar("Kind", bound=NamespacedResource)

# The connection takes this long at most, and then each response.
CONNECT_SECONDS = 10.0
RESPONSE_SECONDS = 30.0
MAX_ERROR_LENGTH = 500
# The last one: a body that is not what the API would send, as from a proxy in front of it.
ERRORS = (httpx2.HTTPError, httpx2.StreamError, ConfigError, OSError, TimeoutError, msgspec.MsgspecError)
NOT_SIGNED_IN = {HTTPStatus.UNAUTHORIZED}
OVERLOADED = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}


@dataclass(frozen=True)
class Kubernetes:
    """One namespace of a cluster."""

    client: AsyncClient
    namespace: str
    url: str
    transport: KubernetesTransport

    def now(self) -> datetime:
        """Return the server's time."""
        return self.transport.now()

    async def find(self, kind: type[Kind], name: str) -> Kind | None:
        """Return the object, or None if it does not exist."""
        try:
            return await self.client.get(kind, name)
        except httpx2.HTTPStatusError as error:
            if is_absence(error):
                return None
            raise

    async def delete(
        self,
        kind: type[NamespacedResource],
        name: str,
        *,
        uid: str,
        resource_version: str | None = None,
        grace_seconds: int | None = None,
    ) -> None:
        """Delete this object, never another one of this name; succeed if it does not exist.

        If it has changed since the resource version was read, the error has the status CONFLICT.
        """
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        request = self._generic.prepare_request("delete", kind, name=name)
        # All in the body: the server ignores parameters beside it.
        request.data = {
            "gracePeriodSeconds": grace_seconds,
            "preconditions": {key: value for key, value in preconditions.items() if value},
        }
        response = await self._generic.send(self._generic.build_adapter_request(request))
        with ignore_statuses(HTTPStatus.NOT_FOUND):
            self._generic.raise_for_status(response)

    async def read_log(
        self, pod: str, *, tail: int | None = None, follow: bool = False
    ) -> AsyncIterator[str]:
        """Yield lines with their ends."""
        request = self._generic.prepare_request(
            "get", PodLog, name=pod, params={"tailLines": tail, "follow": follow}
        )
        if follow:
            request.timeout = httpx2.Timeout(RESPONSE_SECONDS, read=None)
        response = await self._generic.send(self._generic.build_adapter_request(request), stream=True)
        try:
            if response.is_error:
                await response.aread()
            self._generic.raise_for_status(response)
            async for line in response.aiter_lines():
                yield f"{line}\n"
        finally:
            await response.aclose()

    async def read_version(self) -> str:
        with translate_read_errors():
            response = await self._http.get("version")
            response.raise_for_status()
            document: dict[str, Any] = response.json()
        return str(document.get("gitVersion", "unknown"))

    def raise_plain_errors(self) -> None:
        """Replace how lightkube raises errors: those that are not JSON would be their own cause.

        Temporal cannot store such an error, so the step would fail without its reason.
        """
        self._generic.raise_for_status = _raise_for_status  # type: ignore[method-assign]

    @property
    def _generic(self) -> GenericAsyncClient:
        # lightkube deletes without preconditions and does not end followed logs.
        return self.client._client  # noqa: SLF001

    @property
    def _http(self) -> httpx2.AsyncClient:
        return self._generic._client  # noqa: SLF001 (the only way to a path without objects)


def _raise_for_status(response: httpx2.Response) -> None:
    try:
        response.raise_for_status()
    except httpx2.HTTPStatusError as error:
        if response.headers["Content-Type"].partition(";")[0] != "application/json":
            raise
        raise _described(error) from error


def _described(error: httpx2.HTTPStatusError) -> httpx2.HTTPStatusError:
    """Return the error with what the API says about it, or as it is if the API does not say it that way."""
    try:
        return ApiError(request=error.request, response=error.response)
    except (ValueError, TypeError, AttributeError):
        return httpx2.HTTPStatusError(str(error), request=error.request, response=error.response)


class NoConfiguration(Exception):
    """Nothing says how to reach the cluster; the message says what is missing."""


def _load(kubeconfig: Path | None) -> SingleConfig:
    try:
        found = KubeConfig.from_file(kubeconfig) if kubeconfig else KubeConfig.from_env()
        config = found.get()
    except (ConfigError, OSError, KeyError, TypeError) as error:
        raise NoConfiguration(str(error)) from error
    if config is None:
        raise NoConfiguration("no current context")
    return config._replace(user=config.user or User())


@contextlib.asynccontextmanager
async def open_kubernetes(kubeconfig: Path | None, namespace: str) -> AsyncIterator[Kubernetes]:
    """Prepare a connection. It sends no request yet, so a process can start while the cluster is down.

    Without a file, the service account of this Pod is used, then $KUBECONFIG and ~/.kube/config.
    Raise NoConfiguration if there is none of them.
    """
    config = _load(kubeconfig)
    transport = KubernetesTransport(
        verify_cluster(config.cluster, config.user or User(), config.abs_file, trust_env=False)
    )
    client = AsyncClient(
        config,
        namespace=namespace,
        timeout=httpx2.Timeout(RESPONSE_SECONDS, connect=CONNECT_SECONDS),
        field_manager="codehub",
        trust_env=False,
        transport=transport,
    )
    kubernetes = Kubernetes(client, namespace, config.cluster.server, transport)
    kubernetes.raise_plain_errors()
    async with client:
        yield kubernetes


@contextlib.contextmanager
def translate_read_errors() -> Iterator[None]:
    """Raise Transient(UNREACHABLE) for every error: a failed read says nothing about what exists."""
    try:
        yield
    except ERRORS as error:
        raise unreachable(error) from error


@contextlib.contextmanager
def translate_change_errors() -> Iterator[None]:
    """Raise Transient: ACTION_FAILED if the API refuses a change, UNREACHABLE if it does not respond."""
    try:
        yield
    except ERRORS as error:
        raise failed_change(error) from error


@contextlib.contextmanager
def ignore_statuses(*statuses: HTTPStatus) -> Iterator[None]:
    """Ignore responses with these statuses."""
    try:
        yield
    except httpx2.HTTPStatusError as error:
        if status_of(error) not in statuses:
            raise


def status_of(error: httpx2.HTTPStatusError) -> int:
    """Return the status of a response, or of an error in the middle of a watch, which has no response."""
    if isinstance(error, ApiError) and error.status.code is not None:
        return error.status.code
    return error.response.status_code


def metadata_of(found: NamespacedResource | GlobalResource) -> ObjectMeta:
    """Return the metadata, which every object that the API returns has."""
    metadata: ObjectMeta | None = getattr(found, "metadata", None)
    if metadata is None:
        raise TypeError("an object without metadata")
    return metadata


def uid_of(found: NamespacedResource) -> str:
    return metadata_of(found).uid or ""


def is_absence(error: httpx2.HTTPStatusError) -> bool:
    """Return whether the API itself says that there is none: a proxy in front of it can respond 404 too."""
    return isinstance(error, ApiError) and error.status.reason == "NotFound"


def failed_change(error: Exception) -> Failure:
    refused = isinstance(error, httpx2.HTTPStatusError) and _is_refusal(status_of(error))
    if not refused:
        return unreachable(error)
    return Transient(ErrorReason.ACTION_FAILED, f"Kubernetes refused: {error_text(error)}")


def unreachable(error: Exception) -> Transient:
    return Transient(
        ErrorReason.UNREACHABLE,
        f"Kubernetes does not answer ({error_text(error)}); check its API server, and CodeHub's rights.",
    )


def error_text(error: Exception) -> str:
    status = error.status.message if isinstance(error, ApiError) else None
    return (status or str(error) or type(error).__name__).strip()[:MAX_ERROR_LENGTH]


def _is_refusal(status: int) -> bool:
    client_error = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
    return client_error and status not in NOT_SIGNED_IN | OVERLOADED
