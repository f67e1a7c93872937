"""A person's requests: each on a connection of its own, with an answer, or a word on whether it was sent."""

import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from io import BytesIO
from types import TracebackType
from typing import Any, Self

import aiohttp
from yarl import URL

from gameday.people.tally import Tally
from gameday.stage.tiny_ide import SIGNATURE

API = "/api/v1"
PATIENCE_SECONDS = 12.0
# The front door says these only before it has passed anything on.
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
class Reply:
    """An answer, whoever gave it."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def is_good(self) -> bool:
        return self.status in range(200, 300)

    @property
    def is_from_ide(self) -> bool:
        return SIGNATURE in self.headers

    @property
    def document(self) -> dict[str, Any]:
        """Empty if it is no JSON object: a part that is going down may say anything."""
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
        at_rest = self.code == "UPSTREAM_UNAVAILABLE" and "phase" in self._error
        return not self.is_from_ide and (at_rest or self.code in BEFORE_THE_IDE)

    @property
    def _error(self) -> dict[str, Any]:
        error = self.document.get("error")
        return error if isinstance(error, dict) else {}


class NoAnswer(Exception):
    """The request may have been carried out, unless it was never sent."""

    def __init__(self, words: str, *, sent: bool) -> None:
        super().__init__(words)
        self.sent = sent


class Requests(AbstractAsyncContextManager["Requests"]):
    """What one person sends, with their token."""

    def __init__(self, url: str, token: str, tally: Tally) -> None:
        self._url = url
        self._authorization = {"Authorization": f"Bearer {token}"}
        self._tally = tally
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=True),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=PATIENCE_SECONDS),
        )
        # Else a change whose connection breaks is sent again unseen, and what comes of the second is taken
        # for what came of the first. aiohttp has no other switch; its own test client uses this one.
        self._session._retry_connection = False  # noqa: SLF001
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def ask(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        form: object = None,
        body: bytes | None = None,
        as_token: bool = True,
    ) -> Reply:
        """Raise NoAnswer if none came, or only a part of one."""
        if self._session is None:
            raise RuntimeError("Requests are opened with `async with` first.")
        sent_headers = {**(self._authorization if as_token else {}), **(headers or {})}
        # Encoded already: names of files come as they are written.
        url = URL(self._url + path, encoded=True)
        data = None if body is None else BytesIO(body)
        try:
            async with self._session.request(
                method, url, headers=sent_headers, json=form, data=data, allow_redirects=False
            ) as answer:
                reply = Reply(answer.status, await answer.read(), answer.headers)
        except aiohttp.ClientConnectorError as error:
            self._tally.add("requests: no connection")
            raise NoAnswer(str(error), sent=False) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._tally.add("requests: no answer")
            raise NoAnswer(str(error), sent=True) from error
        self._tally.add(f"requests: answered {reply.status} {reply.code}".rstrip())
        return reply
