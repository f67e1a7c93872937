"""The way to Temporal."""

from temporalio.client import Client
from temporalio.runtime import Runtime


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
