"""The outermost layer: request ids, security headers, metrics, and one log line per request."""

import logging
import re
import secrets
import time

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.metrics import Metrics
from codehub.security_headers import security_headers

log = logging.getLogger("api.requests")

REQUEST_ID_HEADER = "X-Request-ID"
UNKNOWN_ROUTE = "unknown"
HEALTH = frozenset({"/healthz", "/readyz", "/metrics"})
SERVER_ERROR = 500
_ACCEPTED_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")


def request_id_of(request: Request) -> str | None:
    return getattr(request.state, "request_id", None)


def choose_request_id(headers: Headers) -> str:
    """Return the id that the proxy gave the request, or a new one if that is missing or malformed."""
    sent = headers.get(REQUEST_ID_HEADER, "")
    return sent if _ACCEPTED_ID.fullmatch(sent) else secrets.token_hex(8)


class RequestMiddleware:
    """Wraps the whole application, so that responses to unexpected errors pass through it too."""

    def __init__(self, app: ASGIApp, metrics: Metrics, *, https: bool) -> None:
        self._app = app
        self._metrics = metrics
        self._headers = security_headers(https=https)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = choose_request_id(Headers(scope=scope))
        scope.setdefault("state", {})["request_id"] = request_id
        # A request that ends without a response counts as a server error.
        status = SERVER_ERROR

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._set_headers(MutableHeaders(scope=message), request_id)
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except Exception:
            # The error handlers have logged it, and responded unless a response had begun.
            log.debug("request %s ended with an error", request_id, exc_info=True)
        finally:
            self._record(scope, status, time.perf_counter() - began, request_id)

    def _set_headers(self, headers: MutableHeaders, request_id: str) -> None:
        headers[REQUEST_ID_HEADER] = request_id
        for name, value in self._headers.items():
            headers.setdefault(name, value)

    def _record(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        route = getattr(scope.get("route"), "path_format", UNKNOWN_ROUTE)
        self._metrics.observe(scope["method"], route, status, seconds)
        level = logging.DEBUG if scope["path"] in HEALTH else logging.INFO
        fields = {
            "request_id": request_id,
            "method": scope["method"],
            # The route, not the URL: search terms do not belong in a log.
            "route": route,
            "workspace": scope.get("path_params", {}).get("workspace_id"),
            "user": getattr(scope["state"].get("caller"), "username", None),
            "status": status,
            "milliseconds": round(seconds * 1000, 1),
        }
        log.log(
            level,
            "%s %s %s in %.1f ms",
            scope["method"],
            route,
            status,
            seconds * 1000,
            extra={"fields": fields},
        )
