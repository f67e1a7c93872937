"""Connects to Temporal."""

from datetime import timedelta

from temporalio.api.workflowservice.v1 import GetSystemInfoRequest
from temporalio.client import Client
from temporalio.runtime import Runtime
from temporalio.service import RPCError, TLSConfig

from codehub.domain.failures import Transient
from codehub.domain.states import ErrorReason

RESPONSE_SECONDS = 2


class TemporalUnavailable(Exception):
    """Cannot connect; the message is for an operator."""


async def connect(
    address: str,
    namespace: str,
    api_key: str | None = None,
    *,
    tls: TLSConfig | None = None,
    lazy: bool = False,
    runtime: Runtime | None = None,
) -> Client:
    """Connect now, or on the first call if `lazy`; workers cannot be lazy. Without `tls`, do not encrypt."""
    try:
        return await Client.connect(
            address,
            namespace=namespace,
            api_key=api_key,
            tls=tls or False,
            lazy=lazy,
            runtime=runtime,
        )
    except RuntimeError as error:
        # The library has no exception class of its own for this.
        how = "with TLS" if tls else "without TLS"
        raise TemporalUnavailable(f"Temporal cannot be reached at {address} {how}: {error}") from error


async def temporal_version(client: Client) -> str:
    """Return the version of the server. Raise Transient(UNREACHABLE) if it does not respond."""
    timeout = timedelta(seconds=RESPONSE_SECONDS)
    try:
        response = await client.workflow_service.get_system_info(GetSystemInfoRequest(), timeout=timeout)
    # A lazy client that cannot connect raises RuntimeError.
    except (RPCError, RuntimeError) as error:
        raise Transient(ErrorReason.UNREACHABLE, f"Temporal cannot be reached: {error}") from error
    return response.server_version
