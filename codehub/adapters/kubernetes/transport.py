"""The HTTP transport of the client: what clients of Kubernetes must do and lightkube does not."""

import asyncio
import contextlib
import ssl
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import httpx2

# A watch that the server should have ended by now, and that said nothing, is dead.
WATCH_MARGIN_SECONDS = 10.0
# An overloaded server refuses requests before it handles them, so they can be repeated.
MAX_REFUSALS = 5
LONGEST_PAUSE_SECONDS = 5.0
# No limit of connections: watches and followed logs hold theirs for long, and other requests would wait.
LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=30.0)


class KubernetesTransport(httpx2.AsyncHTTPTransport):
    """Notices dead watches, waits when an overloaded server says so, and knows the server's time."""

    def __init__(self, verify: ssl.SSLContext) -> None:
        super().__init__(verify=verify, limits=LIMITS, trust_env=False)
        self._ahead = timedelta(0)

    def now(self) -> datetime:
        """Return the time as the server last told it, so that a wrong clock here makes nothing old."""
        return datetime.now(UTC) + self._ahead

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        _bound_watch(request)
        response = await super().handle_async_request(request)
        for _ in range(MAX_REFUSALS):
            if response.status_code != HTTPStatus.TOO_MANY_REQUESTS:
                break
            await response.aclose()
            await asyncio.sleep(_pause(response))
            response = await super().handle_async_request(request)
        self._learn_time(response)
        # lightkube expects it in every error; proxies in front of the server leave it out.
        response.headers.setdefault("Content-Type", "text/plain")
        return response

    def _learn_time(self, response: httpx2.Response) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._ahead = parsedate_to_datetime(response.headers["Date"]) - datetime.now(UTC)


def _bound_watch(request: httpx2.Request) -> None:
    """Give a watch a read timeout, which lightkube switches off."""
    parameters = request.url.params
    if parameters.get("watch") == "true" and (seconds := parameters.get("timeoutSeconds")):
        timeouts = request.extensions.get("timeout") or {}
        limit = float(seconds) + WATCH_MARGIN_SECONDS
        request.extensions["timeout"] = {**timeouts, "read": limit}


def _pause(response: httpx2.Response) -> float:
    text = response.headers.get("Retry-After", "1")
    return min(float(text) if text.isdecimal() else 1.0, LONGEST_PAUSE_SECONDS)
