"""The API's error documents as failures that say what to do next."""

from collections.abc import Callable, Mapping
from typing import Any

import httpx

from cli.address import Address
from cli.errors import Failed
from cli.exit_codes import OF_PROBLEM, ExitCode
from cli.formatting import ago

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
    return [f"{each['name']} ({each['phase']}, {each['id']})" for each in problem.get("running") or []]


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
