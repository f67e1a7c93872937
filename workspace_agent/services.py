"""The agent's services. Each listens before the IDE starts, so that the IDE can use it at once."""

import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from workspace_agent.egress_relay import open_relay
from workspace_agent.port_forwarder import open_forwarder


class Service(Protocol):
    """A service whose socket already listens."""

    async def serve(self) -> None:
        """Serve until the process ends."""


# Each function opens a service with its options.
SERVICES: dict[str, Callable[[Mapping[str, str]], Service]] = {
    "egress": open_relay,
    "ports": open_forwarder,
}


def start_services(options: Mapping[str, Mapping[str, str]]) -> None:
    """Open the services that the launcher asked for, and serve them in a thread."""
    opened = [SERVICES[name](options[name]) for name in options]
    if opened:
        threading.Thread(target=_serve, args=(opened,), daemon=True).start()


def _serve(services: list[Service]) -> None:
    # Imported here, because it takes 50 ms, during which the IDE can start.
    import asyncio  # noqa: PLC0415

    async def serve_all() -> None:
        await asyncio.gather(*(service.serve() for service in services))

    asyncio.run(serve_all())
