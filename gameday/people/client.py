"""A simulated user's HTTP client: every request gets a response, or a statement whether it was sent."""

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from io import BytesIO
from types import TracebackType
from typing import Any, Self

import aiohttp
from yarl import URL

from gameday.stage.tiny_ide import SIGNATURE

API = "/api/v1"
TIMEOUT_SECONDS = 12.0
# The proxy responds with these codes only before it has forwarded anything.
BEFORE_THE_IDE = frozenset(
    {
        "WORKSPACE_STOPPED",
        "WORKSPACE_BUSY",
        "LIMIT_EXCEEDED",
        "UNAUTHORIZED",
        "FORBIDDEN",
        "WORKSPACE_NOT_FOUND",
    }
)


@dataclass(frozen=True)
class Response:
    """A response from the API, the proxy or the IDE."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def is_success(self) -> bool:
        return self.status in range(200, 300)

    @property
    def is_from_ide(self) -> bool:
        return SIGNATURE in self.headers

    @property
    def document(self) -> dict[str, Any]:
        """The JSON object, or an empty one: a process that is being killed may send anything."""
        try:
            document = json.loads(self.body)
        except ValueError:
            return {}
        return document if isinstance(document, dict) else {}

    @property
    def code(self) -> str:
        return str(self._error.get("code", ""))

    @property
    def never_reached_ide(self) -> bool:
        not_running = self.code == "UPSTREAM_UNAVAILABLE" and "phase" in self._error
        return not self.is_from_ide and (not_running or self.code in BEFORE_THE_IDE)

    @property
    def _error(self) -> dict[str, Any]:
        error = self.document.get("error")
        return error if isinstance(error, dict) else {}


class NoResponse(Exception):
    """No response arrived; if the request was sent, it may have been carried out."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class UserClient(AbstractAsyncContextManager["UserClient"]):
    """Sends the requests of one user, each on its own connection."""

    def __init__(self, url: str, token: str, tally: Counter[str]) -> None:
        self._url = url
        self._authorization = {"Authorization": f"Bearer {token}"}
        self._tally = tally
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=True),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS),
        )
        # Otherwise aiohttp silently sends a change again after a broken connection, and the result of the
        # second request looks like that of the first. There is no public switch.
        self._session._retry_connection = False  # noqa: SLF001
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        form: object = None,
        body: bytes | None = None,
        with_token: bool = True,
    ) -> Response:
        """Send a request; raise NoResponse if no complete response arrives."""
        if self._session is None:
            raise RuntimeError("Open the client with `async with` first.")
        all_headers = {**(self._authorization if with_token else {}), **(headers or {})}
        # The path is already encoded.
        url = URL(self._url + path, encoded=True)
        data = None if body is None else BytesIO(body)
        try:
            async with self._session.request(
                method, url, headers=all_headers, json=form, data=data, allow_redirects=False
            ) as received:
                response = Response(received.status, await received.read(), received.headers)
        except aiohttp.ClientConnectorError as error:
            self._tally["requests: no connection"] += 1
            raise NoResponse(str(error), sent=False) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._tally["requests: no response"] += 1
            raise NoResponse(str(error), sent=True) from error
        self._tally[f"requests: response {response.status} {response.code}".rstrip()] += 1
        return response
