"""The only place that knows which HTTP code an error has."""

import logging
import math
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from fastapi import FastAPI, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from api.request_ids import request_id_of
from api.schemas.errors import Code, error_document
from api.security.access import ACCESS
from codehub.services import errors as refusals
from codehub.services.outages import OUTAGES, is_outage

log = logging.getLogger(__name__)

UNAUTHORIZED = 401
OPERATION_RETRY_SECONDS = 2
OUTAGE_RETRY_SECONDS = 2
# A request may have thousands of wrong fields with endless names; nobody wants them all back.
MOST_FIELDS = 20
LONGEST_WORDS = 200


class ApiError(Exception):
    """An answer of 400 and above."""

    def __init__(
        self, status: int, code: Code, message: str, *, retry_after: float | None = None, **more: object
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.more = more
        self.headers: dict[str, str] = {"WWW-Authenticate": "Bearer"} if status == UNAUTHORIZED else {}
        if retry_after is not None:
            seconds = max(1, math.ceil(retry_after))
            self.headers["Retry-After"] = str(seconds)
            self.more["retry_after_seconds"] = seconds


def _operation_in_progress(refused: refusals.OperationInProgress) -> ApiError:
    return ApiError(
        409,
        Code.OPERATION_IN_PROGRESS,
        str(refused),
        retry_after=OPERATION_RETRY_SECONDS,
        operation=refused.operation,
        since=refused.since,
    )


def _invalid_state(refused: refusals.InvalidState) -> ApiError:
    error = ApiError(409, Code.INVALID_STATE, str(refused), phase=refused.phase)
    if refused.choices:
        error.more["choices"] = list(refused.choices)
    return error


def _limit_exceeded(refused: refusals.LimitExceeded) -> ApiError:
    running = [
        {"id": each.workspace_id, "name": each.name, "phase": each.phase, "desired_state": each.desired_state}
        for each in refused.running
    ]
    return ApiError(429, Code.LIMIT_EXCEEDED, str(refused), scope=refused.scope, running=running)


def _locked_out(refused: refusals.LockedOut) -> ApiError:
    return too_many_requests(str(refused), refused.retry_after)


def too_many_requests(message: str, wait: timedelta | float) -> ApiError:
    seconds = wait.total_seconds() if isinstance(wait, timedelta) else wait
    return ApiError(429, Code.TOO_MANY_REQUESTS, message, retry_after=seconds)


def _plain(status: int, code: Code) -> Callable[[Any], ApiError]:
    return lambda refused: ApiError(status, code, str(refused))


TRANSLATIONS: Mapping[type[refusals.RequestRefused], Callable[[Any], ApiError]] = {
    refusals.WorkspaceNotFound: _plain(404, Code.WORKSPACE_NOT_FOUND),
    refusals.OperationInProgress: _operation_in_progress,
    refusals.InvalidState: _invalid_state,
    refusals.LimitExceeded: _limit_exceeded,
    refusals.VersionConflict: _plain(412, Code.PRECONDITION_FAILED),
    refusals.IdempotencyConflict: _plain(409, Code.CONFLICT),
    refusals.SignInRefused: _plain(401, Code.UNAUTHORIZED),
    refusals.LockedOut: _locked_out,
    refusals.CredentialNotFound: _plain(404, Code.NOT_FOUND),
    refusals.UserNotFound: _plain(404, Code.NOT_FOUND),
    refusals.TooManyTokens: _plain(409, Code.CONFLICT),
    refusals.UsernameTaken: _plain(409, Code.CONFLICT),
    refusals.LastAdmin: _plain(409, Code.CONFLICT),
    refusals.InvalidUsername: _plain(400, Code.INVALID_REQUEST),
    refusals.InvalidPassword: _plain(400, Code.INVALID_REQUEST),
    refusals.InvalidTokenName: _plain(400, Code.INVALID_REQUEST),
    refusals.InvalidExpiry: _plain(400, Code.INVALID_REQUEST),
}


def install_error_handlers(app: FastAPI) -> None:
    """Every error becomes the one shape; what nobody foresaw is logged and tells its request id only."""
    app.add_exception_handler(ApiError, _answer_api_error)
    app.add_exception_handler(refusals.RequestRefused, _answer_refusal)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_http)
    for outage in (*OUTAGES, DBAPIError):
        app.add_exception_handler(outage, _answer_outage)
    app.add_exception_handler(Exception, _answer_unforeseen)


def _answer(request: Request, error: ApiError) -> JSONResponse:
    document = error_document(error.code, error.message, request_id=request_id_of(request), **error.more)
    return JSONResponse(jsonable_encoder(document), status_code=error.status, headers=error.headers)


async def _answer_api_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ApiError)  # noqa: S101 (for the type checker)
    return _answer(request, error)


async def _answer_refusal(request: Request, error: Exception) -> JSONResponse:
    return _answer(request, TRANSLATIONS[type(error)](error))  # type: ignore[index]


async def _answer_invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    fields = [
        {
            "field": ".".join(map(str, problem["loc"]))[:LONGEST_WORDS],
            "message": problem["msg"][:LONGEST_WORDS],
        }
        for problem in error.errors()[:MOST_FIELDS]
    ]
    message = "The request is not valid: " + "; ".join(
        f"{each['field']}: {each['message']}" for each in fields[:5]
    )
    return _answer(request, ApiError(400, Code.INVALID_REQUEST, message, fields=fields))


METHOD_NOT_ALLOWED = 405
HTTP_CODES = {404: Code.NOT_FOUND, 405: Code.METHOD_NOT_ALLOWED, 413: Code.BODY_TOO_LARGE}
# Where the framework's own words say nothing about what to do.
SENTENCES = {
    404: "There is nothing at this path; /api/v1/openapi.json lists what there is.",
    405: "This path knows other methods; the Allow header names them.",
}


async def _answer_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101
    code = HTTP_CODES.get(error.status_code, Code.INVALID_REQUEST)
    answer = ApiError(error.status_code, code, SENTENCES.get(error.status_code, str(error.detail)))
    answer.headers.update(error.headers or {})
    if error.status_code == METHOD_NOT_ALLOWED:
        answer.headers["Allow"] = ", ".join(_methods_of(request))
    return _answer(request, answer)


def _methods_of(request: Request) -> list[str]:
    """All that the path knows; the framework names those of one of its routes only."""
    path = getattr(request.scope.get("route"), "path_format", None)
    return sorted(method for method, known in ACCESS if known == path)


async def _answer_outage(request: Request, error: Exception) -> JSONResponse:
    if not is_outage(error):
        return await _answer_unforeseen(request, error)
    log.warning("a dependency is down: %s", error, extra={"fields": {"request_id": request_id_of(request)}})
    message = (
        "A service that CodeHub needs does not answer; it is tried again by itself. Repeat the request soon."
    )
    code = Code.DEPENDENCY_UNAVAILABLE
    return _answer(request, ApiError(503, code, message, retry_after=OUTAGE_RETRY_SECONDS))


async def _answer_unforeseen(request: Request, error: Exception) -> JSONResponse:
    log.error("unforeseen", exc_info=error, extra={"fields": {"request_id": request_id_of(request)}})
    message = "CodeHub made a mistake. Tell an administrator the request id."
    return _answer(request, ApiError(500, Code.INTERNAL_ERROR, message))
