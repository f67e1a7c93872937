"""The outermost layer: gives each request an id, sets the headers of every answer, counts and logs."""

import logging
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.metrics import Metrics
from api.request_ids import HEADER, choose_request_id

log = logging.getLogger("api.requests")

SECURITY_HEADERS = {
    # A document of ours that nobody meant as a page loads nothing and can be framed by nobody.
    "Content-Security-Policy": (
        "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Our pages must say where they are: requests that hide it get no identity (api/security/origin.py).
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
HSTS = "max-age=31536000"
UNKNOWN_ROUTE = "unknown"
HEALTH = frozenset({"/healthz", "/readyz", "/metrics"})
SERVER_ERROR = 500


class RequestMiddleware:
    """Around the whole application, so that answers to unforeseen errors pass it too."""

    def __init__(self, app: ASGIApp, metrics: Metrics, *, https: bool) -> None:
        self._app = app
        self._metrics = metrics
        self._headers = SECURITY_HEADERS | ({"Strict-Transport-Security": HSTS} if https else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = choose_request_id(Headers(scope=scope))
        scope.setdefault("state", {})["request_id"] = request_id
        # Until a first line is sent, whatever ends the request is our mistake.
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
            # The error handlers have logged and answered it, unless the answer had begun by then.
            log.debug("request %s ended with an error", request_id, exc_info=True)
        finally:
            self._tell(scope, status, time.perf_counter() - began, request_id)

    def _set_headers(self, headers: MutableHeaders, request_id: str) -> None:
        headers[HEADER] = request_id
        for name, value in self._headers.items():
            headers.setdefault(name, value)

    def _tell(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        route = getattr(scope.get("route"), "path_format", UNKNOWN_ROUTE)
        self._metrics.observe(scope["method"], route, status, seconds)
        level = logging.DEBUG if scope["path"] in HEALTH else logging.INFO
        fields = {
            "request_id": request_id,
            "method": scope["method"],
            # The route and not the path: nobody's search words belong into a log.
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
