"""The way to Temporal."""

from datetime import timedelta

from temporalio.api.workflowservice.v1 import GetSystemInfoRequest
from temporalio.client import Client
from temporalio.runtime import Runtime
from temporalio.service import TLSConfig

ANSWER_SECONDS = 2


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
    """Connect now, or with `lazy` on the first call; workers cannot be lazy. Without `tls`, in the clear."""
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
        # The library has no class of its own for it.
        how = "with TLS" if tls else "without TLS"
        raise TemporalUnavailable(f"Temporal cannot be reached at {address} {how}: {error}") from error


async def temporal_version(client: Client) -> str:
    """Which server answers."""
    answer = await client.workflow_service.get_system_info(
        GetSystemInfoRequest(), timeout=timedelta(seconds=ANSWER_SECONDS)
    )
    return answer.server_version
