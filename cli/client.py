"""The API client: raises a CommandError that says what to do next."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import httpx

from cli.connection import API, Address, find_address, load_login
from cli.errors import API_EXIT_CODES, CommandError, ExitCode
from cli.formatting import ago
from cli.words import phase_label

Document = Mapping[str, Any]

RESPONSE_SECONDS = 75.0
CONNECT_SECONDS = 10.0
PAGE_SIZE = 200


class Client:
    """A connection to one CodeHub, with or without a token."""

    def __init__(self, address: Address, token: str | None = None) -> None:
        self.address = address
        self._http = httpx.Client(
            base_url=address.url + API,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx.Timeout(RESPONSE_SECONDS, connect=CONNECT_SECONDS),
            # An HTTP proxy for the internet cannot reach this machine.
            trust_env=not address.is_local,
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def set_timeout(self, seconds: float) -> None:
        self._http.timeout = httpx.Timeout(seconds)

    def get(self, path: str, **parameters: Any) -> Any:  # noqa: ANN401
        return self._request("GET", path, params=parameters)

    def post(self, path: str, form: Document | None = None, **headers: str) -> Any:  # noqa: ANN401
        return self._request("POST", path, json=form, headers=headers)

    def put(self, path: str, form: Document) -> Any:  # noqa: ANN401
        return self._request("PUT", path, json=form)

    def patch(self, path: str, form: Document) -> Any:  # noqa: ANN401
        return self._request("PATCH", path, json=form)

    def delete(self, path: str, **parameters: Any) -> Any:  # noqa: ANN401
        return self._request("DELETE", path, params=parameters)

    def items(self, path: str, **parameters: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
        """Yield all items of a list, page by page."""
        cursor = None
        while True:
            page = self.get(path, limit=PAGE_SIZE, **parameters, **({"cursor": cursor} if cursor else {}))
            yield from page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    @contextmanager
    def stream(
        self,
        path: str,
        *,
        read_seconds: float | None = RESPONSE_SECONDS,
        **parameters: Any,  # noqa: ANN401
    ) -> Iterator[httpx.Response]:
        """Open a streaming response; a lost connection raises httpx.TransportError."""
        timeout = httpx.Timeout(read_seconds, connect=CONNECT_SECONDS)
        with self._http.stream("GET", path, params=parameters, timeout=timeout) as response:
            if response.is_error:
                response.read()
                raise error_from_response(response, self.address)
            yield response

    def _request(self, method: str, path: str, **content: Any) -> Any:  # noqa: ANN401
        try:
            response = self._http.request(method, path, **content)
            document = response.json() if response.is_success and response.content else None
        except httpx.RequestError as error:
            raise unreachable_error(self.address, error) from error
        except ValueError as error:
            raise error_from_response(response, self.address) from error
        if not response.is_success:
            raise error_from_response(response, self.address)
        return document


def connect(url: str | None) -> Client:
    """Return a client with the caller's token; a saved token is sent only to its own CodeHub."""
    address = find_address(url)
    if token := os.environ.get("CODEHUB_TOKEN", "").strip():
        if not (token.isascii() and token.isprintable()):
            raise CommandError(
                "CODEHUB_TOKEN is not a valid token.",
                "Create one with: codehub token create NAME",
                code=ExitCode.USAGE,
            )
        return Client(address, token)
    login = load_login()
    if login is None or login.url != address.url:
        elsewhere = f", only to {login.url}" if login else ""
        raise CommandError(
            f"You are not signed in to {address.url}{elsewhere}.",
            f"Sign in with: codehub login{f' --url {address.url}' if elsewhere else ''}",
            code=ExitCode.NOT_SIGNED_IN,
        )
    return Client(address, login.token)


def unreachable_error(address: Address, error: Exception) -> CommandError:
    reason = str(error) or type(error).__name__
    return CommandError(
        f"Cannot reach CodeHub at {address.url} ({reason}).",
        f"This address comes from {address.source}. Use --url for another one, "
        "or check whether CodeHub is running with: codehub status",
        code=ExitCode.UNAVAILABLE,
    )


def error_from_response(response: httpx.Response, address: Address) -> CommandError:
    document = _error_document(response)
    if document is None:
        return CommandError(
            f"The server at {address.url} is not CodeHub (status {response.status_code}).",
            f"This address comes from {address.source}. Use --url for another one.",
            code=ExitCode.UNAVAILABLE,
        )
    code = API_EXIT_CODES.get(document["code"], ExitCode.FAILED)
    describe = NEXT_STEPS.get(document["code"])
    next_step = describe(document) if describe else ""
    return CommandError(
        str(document["message"]),
        next_step,
        code=code,
        details=_running(document),
        api_code=str(document["code"]),
    )


def _error_document(response: httpx.Response) -> Document | None:
    try:
        document = response.json()["error"]
        return document if document["code"] and document["message"] else None
    except (ValueError, KeyError, TypeError):
        return None


def _running(document: Document) -> list[str]:
    """Return the workspaces that take the running slots, if none is left."""
    return [
        f"{each['name']} ({phase_label(each['phase'])}, {each['id']})"
        for each in document.get("running") or []
    ]


def _try_again(document: Document) -> str:
    seconds = document.get("retry_after_seconds")
    return f"Try again in {seconds} s." if seconds else "Try again in a moment."


def _follow_operation(document: Document) -> str:
    since = f" It began {ago(document['since'])}." if document.get("since") else ""
    return f"Follow it with: codehub ws events NAME.{since}"


NEXT_STEPS: Mapping[str, Callable[[Document], str]] = {
    "UNAUTHORIZED": lambda _document: "Sign in with: codehub login",
    "REAUTHENTICATION_REQUIRED": lambda _document: "Use `codehub token create`, which asks for the password.",
    "OPERATION_IN_PROGRESS": _follow_operation,
    "LIMIT_EXCEEDED": lambda _document: "Stop one with: codehub ws stop NAME",
    "TOO_MANY_REQUESTS": _try_again,
    "DEPENDENCY_UNAVAILABLE": _try_again,
    "UPSTREAM_UNAVAILABLE": _try_again,
    "INTERNAL_ERROR": lambda document: f"The request id is {document.get('request_id')}.",
}
