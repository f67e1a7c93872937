"""The services of the agent: each listens before the IDE starts, so that the IDE never finds it missing."""

import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from workspace_agent.egress_relay import open_relay
from workspace_agent.port_forwarder import open_forwarder


class Service(Protocol):
    """A service that already listens."""

    async def serve(self) -> None:
        """Serve until the process ends."""


# Each opens its sockets with the options of its name.
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
    # An import of 50 ms, during which the IDE can already start.
    import asyncio  # noqa: PLC0415

    async def serve_all() -> None:
        await asyncio.gather(*(service.serve() for service in services))

    asyncio.run(serve_all())
