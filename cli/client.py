"""Requests to the API; what goes wrong is raised in words for people."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import httpx

from cli.connection import API, Address, find_address, load_login
from cli.errors import OF_PROBLEM, ExitCode, Failed
from cli.formatting import ago
from cli.words import phase_label

Document = Mapping[str, Any]

ANSWER_SECONDS = 75.0
CONNECT_SECONDS = 10.0
PAGE = 200


class Client:
    """One CodeHub, with or without somebody's token."""

    def __init__(self, address: Address, token: str | None = None) -> None:
        self.address = address
        self._http = httpx.Client(
            base_url=address.url + API,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
            # A proxy for the internet does not know this machine.
            trust_env=not address.is_here,
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def limit_patience(self, seconds: float) -> None:
        """Wait no longer than this for anything."""
        self._http.timeout = httpx.Timeout(seconds)

    def get(self, path: str, **parameters: Any) -> Any:  # noqa: ANN401
        return self._ask("GET", path, params=parameters)

    def post(self, path: str, form: Document | None = None, **headers: str) -> Any:  # noqa: ANN401
        return self._ask("POST", path, json=form, headers=headers)

    def patch(self, path: str, form: Document) -> Any:  # noqa: ANN401
        return self._ask("PATCH", path, json=form)

    def delete(self, path: str, **parameters: Any) -> Any:  # noqa: ANN401
        return self._ask("DELETE", path, params=parameters)

    def items(self, path: str, **parameters: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
        """Everything that a list has, page by page."""
        cursor = None
        while True:
            page = self.get(path, limit=PAGE, **parameters, **({"cursor": cursor} if cursor else {}))
            yield from page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    @contextmanager
    def streaming(
        self,
        path: str,
        *,
        silent_seconds: float | None = ANSWER_SECONDS,
        **parameters: Any,  # noqa: ANN401
    ) -> Iterator[httpx.Response]:
        """An answer that goes on, with pauses up to so long; a lost connection raises TransportError."""
        timeout = httpx.Timeout(silent_seconds, connect=CONNECT_SECONDS)
        with self._http.stream("GET", path, params=parameters, timeout=timeout) as response:
            if response.is_error:
                response.read()
                raise failure_of(response, self.address)
            yield response

    def _ask(self, method: str, path: str, **content: Any) -> Any:  # noqa: ANN401
        try:
            response = self._http.request(method, path, **content)
            document = response.json() if response.is_success and response.content else None
        except httpx.RequestError as error:
            raise silence(self.address, error) from error
        except ValueError as error:
            raise failure_of(response, self.address) from error
        if not response.is_success:
            raise failure_of(response, self.address)
        return document


def silence(address: Address, error: Exception) -> Failed:
    reason = str(error) or type(error).__name__
    return Failed(
        f"CodeHub does not answer at {address.url} ({reason}).",
        f"The address comes from {address.source}; name another with --url. Is it up? See: codehub status",
        code=ExitCode.UNAVAILABLE,
    )


def connect(url: str | None) -> Client:
    """A client with the caller's token; it is sent only to the CodeHub that it is for."""
    address = find_address(url)
    if token := os.environ.get("CODEHUB_TOKEN", "").strip():
        if not (token.isascii() and token.isprintable()):
            raise Failed(
                "CODEHUB_TOKEN holds no token.", "Make one with: codehub token create", code=ExitCode.USAGE
            )
        return Client(address, token)
    login = load_login()
    if login is None or login.url != address.url:
        elsewhere = f", only to {login.url}" if login else ""
        raise Failed(
            f"You are not signed in to {address.url}{elsewhere}.",
            f"Sign in with: codehub login{f' --url {address.url}' if elsewhere else ''}",
            code=ExitCode.NOT_SIGNED_IN,
        )
    return Client(address, login.token)


Problem = Mapping[str, Any]


def failure_of(response: httpx.Response, address: Address) -> Failed:
    problem = _problem(response)
    if problem is None:
        return Failed(
            f"What answers at {address.url} is no CodeHub (status {response.status_code}).",
            f"The address comes from {address.source}; name another with --url.",
            code=ExitCode.UNAVAILABLE,
        )
    code = OF_PROBLEM.get(problem["code"], ExitCode.FAILED)
    describe = NEXT_STEPS.get(problem["code"])
    next_step = describe(problem) if describe else ""
    return Failed(str(problem["message"]), next_step, code=code, more=_details(problem))


def _problem(response: httpx.Response) -> Problem | None:
    try:
        problem = response.json()["error"]
        return problem if problem["code"] and problem["message"] else None
    except (ValueError, KeyError, TypeError):
        return None


def _details(problem: Problem) -> list[str]:
    """Which workspaces take the places, where there is none left."""
    return [
        f"{each['name']} ({phase_label(each['phase'])}, {each['id']})"
        for each in problem.get("running") or []
    ]


def _try_again(problem: Problem) -> str:
    seconds = problem.get("retry_after_seconds")
    return f"Try again in {seconds} s." if seconds else "Try again in a moment."


def _wait_for_operation(problem: Problem) -> str:
    since = f" It began {ago(problem['since'])}." if problem.get("since") else ""
    return f"Follow it with: codehub ws events NAME.{since}"


NEXT_STEPS: Mapping[str, Callable[[Problem], str]] = {
    "UNAUTHORIZED": lambda _problem: "Sign in with: codehub login",
    "OPERATION_IN_PROGRESS": _wait_for_operation,
    "LIMIT_EXCEEDED": lambda _problem: "Stop one with: codehub ws stop NAME",
    "TOO_MANY_REQUESTS": _try_again,
    "DEPENDENCY_UNAVAILABLE": _try_again,
    "UPSTREAM_UNAVAILABLE": _try_again,
    "INTERNAL_ERROR": lambda problem: f"The request id is {problem.get('request_id')}.",
}
