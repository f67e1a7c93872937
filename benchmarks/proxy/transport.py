"""The proxy's transport alone, without sessions; the difference is the cost of the rest of the proxy."""

import argparse
import asyncio
from collections.abc import Sequence

import uvloop

from codehub.ports import Upstream
from proxy.transport.request_head import RequestHead
from proxy.transport.routing import Forward, Response, Routed
from proxy.transport.server import ProxyServer


class PrefixRouter:
    """Routes pages by their prefix and everything else to the echo."""

    def __init__(self, prefix: str, pages_port: int, echo_port: int) -> None:
        self._prefix = prefix.encode()
        self._pages = Upstream("127.0.0.1", pages_port, keep_prefix=True)
        self._echo = Upstream("127.0.0.1", echo_port, keep_prefix=True)

    def route(self, head: RequestHead, peer: str) -> Routed:
        del peer
        if head.target.startswith(self._prefix):
            return Forward(self._pages, "pages", head.target)
        return Forward(self._echo, "echo", head.target)

    async def route_again(self, head: RequestHead, failed: Forward) -> Routed:
        del head
        return failed

    def explain_too_large(self, start: bytes) -> Response | None:
        del start
        return None

    def unreachable(self, head: RequestHead, failed: Forward) -> Response:
        del head, failed
        return Response(502)


async def serve(port: int, router: PrefixRouter) -> None:
    await ProxyServer(router).listen("127.0.0.1", port)
    await asyncio.Event().wait()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("prefix")
    parser.add_argument("pages_port", type=int)
    parser.add_argument("echo_port", type=int)
    given = parser.parse_args(arguments)
    uvloop.run(serve(given.port, PrefixRouter(given.prefix, given.pages_port, given.echo_port)))


if __name__ == "__main__":
    main()
