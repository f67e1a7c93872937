"""The way to Temporal."""

from datetime import timedelta

from temporalio.api.workflowservice.v1 import GetSystemInfoRequest
from temporalio.client import Client
from temporalio.runtime import Runtime

ANSWER_SECONDS = 2


async def connect(
    address: str,
    namespace: str,
    api_key: str | None = None,
    *,
    lazy: bool = False,
    runtime: Runtime | None = None,
) -> Client:
    """Connect now, or with `lazy` on the first call; workers cannot be lazy.

    An API key means Temporal Cloud, hence TLS.
    """
    return await Client.connect(
        address,
        namespace=namespace,
        api_key=api_key,
        tls=api_key is not None,
        lazy=lazy,
        runtime=runtime,
    )


async def temporal_version(client: Client) -> str:
    """Which server answers."""
    answer = await client.workflow_service.get_system_info(
        GetSystemInfoRequest(), timeout=timedelta(seconds=ANSWER_SECONDS)
    )
    return answer.server_version
